//! Reductions that need another one first: that of the element which keeps powers in range.

use swath_kernels::{self as kernels, PairwiseSum};

use super::super::fold::{Extreme, Loaded, MOST_SHORT, Tree};
use super::super::{CpuBackend, CpuTensor, Output, cast, parallel};
use super::{BLOCK, Plan, fold_shared};
use crate::backend::{Arg, Backend};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops::{BinaryOp, CompareOp, ReduceOp, UnaryOp};

/// Of computing one power.
const COST_PER_POWER: parallel::Cost = parallel::Cost(400);

/// `m + ln Σ e^(x − m)`, of rows and columns where they lie, of short rows as columns, else in a copy where
/// they are rows.
/// 16-bit floats are widened first: the powers are `f32`.
pub(super) fn log_sum_exp<T: Loaded>(plan: &Plan<'_>, dtype: DType) -> Result<CpuTensor> {
    match dtype {
        DType::F32 => of_rows::<f32>(plan),
        DType::F64 => of_rows::<f64>(plan),
        _ => {
            let wide = cast::cast(plan.x, DType::F32)?;
            let wide = of_rows::<f32>(&Plan::new(plan.op, &wide, &plan.axes)?)?;
            cast::cast(&wide, dtype)
        }
    }
}

fn of_rows<E: Loaded<Wide = E> + kernels::Reduce>(plan: &Plan<'_>) -> Result<CpuTensor> {
    let mut out = Output::new(plan.op, &plan.shape, E::DTYPE)?;
    let results = out.elements::<E>();
    if plan.count == 0 {
        results.fill(-<E as kernels::Float>::INFINITY);
        return Ok(out.finish());
    }
    if plan.is_columns() {
        plan.each_columns::<E, E>(COST_PER_POWER, results, &|x, stride, y| {
            kernels::logsumexp_columns(x, plan.count, stride, y);
        });
        return Ok(out.finish());
    }
    let (copied, axes);
    let adjacent = match plan.is_one_run() {
        true => plan,
        false => {
            (copied, axes) = plan.adjacent()?;
            &Plan::new(plan.op, &copied, &axes)?
        }
    };
    let (data, count) = (adjacent.x.elements::<E>(), plan.count);
    if adjacent.is_short(MOST_SHORT) {
        adjacent.each_short::<E, E>(COST_PER_POWER, results, &|x, stride, y| {
            kernels::logsumexp_columns(x, count, stride, y);
        });
        return Ok(out.finish());
    }
    let row = |i: usize| {
        let first = adjacent.position(i);
        &data[first..first + count]
    };
    let cost = COST_PER_POWER.times(count);
    if parallel::shares_each(results.len(), cost, count.div_ceil(BLOCK)) {
        for (i, y) in results.iter_mut().enumerate() {
            *y = of_long(row(i));
        }
    } else {
        parallel::for_each_chunk_mut(results, 1, cost, &|first, results| {
            for (i, y) in results.iter_mut().enumerate() {
                *y = kernels::logsumexp(row(first + i));
            }
        });
    }
    Ok(out.finish())
}

/// As [`kernels::logsumexp`], shared by threads.
fn of_long<E: Loaded<Wide = E> + kernels::Reduce>(x: &[E]) -> E {
    let largest = Extreme {
        of: kernels::max,
        columns: &|_, _, _, _| unreachable!("one slice is folded"),
        none: f64::NEG_INFINITY,
    };
    let largest: E = fold_shared(&largest, x);
    if !kernels::Float::to_f64(largest).is_finite() {
        return largest;
    }
    let sum = |sum: f64| {
        let mut log = [sum];
        kernels::log(&[sum], &mut log);
        kernels::Float::to_f64(largest) + log[0]
    };
    let powers = Tree {
        push: &|sum: &mut PairwiseSum, x| sum.push_exps(x, largest),
        finish: &sum,
        columns: &|_, _, _, _| unreachable!("one slice is folded"),
        part: &|_, _, _, _| unreachable!("one slice is folded"),
    };
    fold_shared(&powers, x)
}

/// `m (Σ e^(p ln(|x|/m)))^(1/p)` in `f64`, with m the largest magnitude, or for negative p the
/// smallest: no power exceeds 1.
pub(super) fn norm(p: f64, plan: &Plan<'_>, dtype: DType) -> Result<CpuTensor> {
    let axes = &plan.axes;
    let number = |x: f64| Arg::Scalar(Scalar::Float(x));
    let wide = cast::cast(plan.x, DType::F64)?;
    let end = ReduceOp::Norm { p: p.signum() * f64::INFINITY };
    let scale = CpuBackend::reduce(end, &wide, axes)?;
    // Where it is 0, ∞ or NaN, it is the result.
    let above = CpuBackend::compare(CompareOp::Gt, &scale, number(0.0))?;
    let below = CpuBackend::compare(CompareOp::Lt, &scale, number(f64::INFINITY))?;
    let usual = CpuBackend::mul(&above, &CpuBackend::cast(&below, DType::F64)?)?;
    let sizes = CpuBackend::unary(UnaryOp::Abs, Arg::Owned(wide))?;
    let ratios = CpuBackend::div(&sizes, &scale)?;
    let logs = CpuBackend::unary(UnaryOp::Log, Arg::Owned(ratios))?;
    let powers = CpuBackend::binary(BinaryOp::Mul, Arg::Owned(logs), number(p))?;
    let powers = CpuBackend::unary(UnaryOp::Exp, Arg::Owned(powers))?;
    let sum = CpuBackend::reduce(ReduceOp::Sum, &powers, axes)?;
    let log = CpuBackend::unary(UnaryOp::Log, Arg::Owned(sum))?;
    let root = CpuBackend::binary(BinaryOp::Div, Arg::Owned(log), number(p))?;
    let root = CpuBackend::unary(UnaryOp::Exp, Arg::Owned(root))?;
    let norm = CpuBackend::binary(BinaryOp::Mul, Arg::Owned(root), &scale)?;
    cast::cast(&CpuBackend::where_cond(&usual, &norm, &scale)?, dtype)
}

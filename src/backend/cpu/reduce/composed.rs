//! logsumexp and general p-norms, which first reduce to the extremum that keeps powers in range.

use swath_kernels::{self as kernels, Float, PairwiseSum, reduce::Max, reduce::Reduction};

use super::super::tensor::{CpuTensor, Output};
use super::super::{CpuBackend, cast};
use super::{BLOCK, Loaded, Path, Plan, shared};
use crate::backend::{Arg, Backend, TensorData};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::{BinaryOp, CompareOp, ReduceOp, UnaryOp};
use crate::runtime::parallel;

/// Cost of an exponential.
const COST_PER_EXP: parallel::Cost = parallel::Cost(400);

/// `m + ln Σ e^(x − m)` of rows and columns in place, of few elements copied into columns, and otherwise of a
/// copy with contiguous rows. 16-bit floats are widened first, because the exponentials are computed in `f32`.
pub(super) fn log_sum_exp(plan: &Plan<'_>, dtype: DType) -> Result<CpuTensor> {
    match dtype {
        DType::F32 => log_sum_exp_wide::<f32>(plan),
        DType::F64 => log_sum_exp_wide::<f64>(plan),
        _ => {
            let wide = cast::cast(plan.x, DType::F32)?;
            let wide = log_sum_exp_wide::<f32>(&Plan::new(plan.op, &wide, &plan.axes))?;
            cast::cast(&wide, dtype)
        }
    }
}

fn log_sum_exp_wide<E: Loaded + kernels::Reduce>(plan: &Plan<'_>) -> Result<CpuTensor> {
    let mut out = Output::new(plan.op, &plan.shape, E::DTYPE)?;
    let (results, count) = (out.elements::<E>(), plan.count);
    let columns = |x: &[E], stride: usize, y: &mut [E]| {
        kernels::logsumexp_columns(x, count, stride, y);
    };
    if results.is_empty() {
        return Ok(out.finish());
    }
    match plan.path() {
        Path::Empty => results.fill(-E::INFINITY),
        Path::Short => plan.each_transposed::<E, E>(COST_PER_EXP, results, &columns),
        Path::Columns => plan.each_columns::<E, E>(COST_PER_EXP, results, &columns),
        Path::Run => each_row::<E>(plan, results),
        Path::Gathered | Path::Adjacent | Path::Contiguous => {
            let (copied, axes) = plan.adjacent()?;
            each_row::<E>(&Plan::new(plan.op, &copied, &axes), results);
        }
    }
    Ok(out.finish())
}

fn each_row<E: Loaded + kernels::Reduce>(plan: &Plan<'_>, results: &mut [E]) {
    let (data, count) = (plan.x.elements::<E>(), plan.count);
    let row = |i: usize| &data[plan.position(i)..][..count];
    let cost = COST_PER_EXP.times(count);
    if parallel::shares_each(results.len(), cost, count.div_ceil(BLOCK)) {
        return results.iter_mut().enumerate().for_each(|(i, y)| *y = shared_log_sum_exp(row(i)));
    }
    parallel::for_each_chunk_mut(results, 1, cost, &|first, results| {
        for (i, y) in results.iter_mut().enumerate() {
            *y = kernels::logsumexp(row(first + i));
        }
    });
}

/// [`kernels::logsumexp`] of one slice, which threads share.
fn shared_log_sum_exp<E: Loaded + kernels::Reduce>(x: &[E]) -> E {
    let largest: E = Reduction::<E>::finish(&Max, shared(x, &|x| Max.fold(x)), x.len());
    let m = Float::to_f64(largest);
    if !m.is_finite() {
        return largest;
    }
    let exps = |x: &[E]| {
        let mut sum = PairwiseSum::new();
        sum.push_exps(x, largest);
        sum.finish()
    };
    let mut log = [0.0];
    kernels::log(&[shared(x, &exps)], &mut log);
    <E as Float>::from_f64(m + log[0])
}

/// p-norm `m (Σ e^(p ln(|x|/m)))^(1/p)` in `f64`, where m is the largest magnitude, or for negative p the
/// smallest, so that no power exceeds 1.
pub(super) fn norm(p: f64, plan: &Plan<'_>, dtype: DType) -> Result<CpuTensor> {
    if p.is_nan() {
        let reason = format!("p is NaN, for a tensor of shape {}", plan.x.shape());
        return Err(Error::InvalidArgument { op: plan.op, reason });
    }
    let axes = &plan.axes;
    let number = |x: f64| Arg::Scalar(Scalar::Float(x));
    let wide = cast::cast(plan.x, DType::F64)?;
    let scale = match p > 0.0 {
        true => CpuBackend::reduce(ReduceOp::Norm { p: f64::INFINITY }, &wide, axes)?,
        false => CpuBackend::reduce(ReduceOp::Norm { p: f64::NEG_INFINITY }, &wide, axes)?,
    };
    // If the scale is 0, ∞ or NaN, it is the result.
    let above = CpuBackend::compare(CompareOp::Gt, &scale, number(0.0))?;
    let below = CpuBackend::compare(CompareOp::Lt, &scale, number(f64::INFINITY))?;
    let is_regular = CpuBackend::mul(&above, &CpuBackend::cast(&below, DType::F64)?)?;
    let magnitudes = CpuBackend::unary(UnaryOp::Abs, Arg::Owned(wide))?;
    let ratios = CpuBackend::div(&magnitudes, &scale)?;
    let logs = CpuBackend::unary(UnaryOp::Log, Arg::Owned(ratios))?;
    let powers = CpuBackend::binary(BinaryOp::Mul, Arg::Owned(logs), number(p))?;
    let powers = CpuBackend::unary(UnaryOp::Exp, Arg::Owned(powers))?;
    let sum = CpuBackend::reduce(ReduceOp::Sum, &powers, axes)?;
    let log = CpuBackend::unary(UnaryOp::Log, Arg::Owned(sum))?;
    let root = CpuBackend::binary(BinaryOp::Div, Arg::Owned(log), number(p))?;
    let root = CpuBackend::unary(UnaryOp::Exp, Arg::Owned(root))?;
    let norm = CpuBackend::binary(BinaryOp::Mul, Arg::Owned(root), &scale)?;
    cast::cast(&CpuBackend::where_cond(&is_regular, &norm, &scale)?, dtype)
}

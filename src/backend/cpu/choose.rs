//! Comparisons, tests of numbers, and the choice between two tensors by a mask.

use bytemuck::Pod;
use swath_kernels::{self as kernels, Arg as Run, Block, BlockArg, Compare, Comparison, Select};

use super::copy::{self, for_size};
use super::elementwise::{Input, common, flat};
use super::pieces::{CHUNK, part};
use super::walk::{TILE_LEN, Walk, write_chunks};
use super::{CpuTensor, Output};
use crate::backend::{Arg, TensorData};
use crate::dtype::{DType, Element, for_dtype};
use crate::error::{Error, Result};
use crate::ops::{CompareOp, NumberTest};
use crate::shape::Shape;

pub(super) fn compare(
    op: CompareOp,
    a: Arg<'_, CpuTensor>,
    b: Arg<'_, CpuTensor>,
) -> Result<CpuTensor> {
    let (shape, dtype) = common(op.name(), &a, &b)?;
    for_dtype!(dtype, T => compare_typed::<T>(op, &a, &b, shape))
}

fn compare_typed<E: Element<Stored: Compare>>(
    op: CompareOp,
    a: &Arg<'_, CpuTensor>,
    b: &Arg<'_, CpuTensor>,
    shape: &Shape,
) -> Result<CpuTensor> {
    let kernel = match op {
        CompareOp::Eq => Comparison::Eq,
        CompareOp::Ne => Comparison::Ne,
        CompareOp::Lt => Comparison::Lt,
        CompareOp::Le => Comparison::Le,
        CompareOp::Gt => Comparison::Gt,
        CompareOp::Ge => Comparison::Ge,
    };
    let mut out = Output::new(op.name(), shape, DType::Bool)?;
    let cost = copy::cost::<E::Stored>();
    if let (Some(a), Some(b)) = (flat::<E>(a), flat::<E>(b)) {
        write_chunks(out.elements::<u8>(), CHUNK, cost, &|first, y| {
            let (start, len) = (first * CHUNK, y.len());
            kernels::compare(kernel, part(a, start, len), part(b, start, len), y);
        });
        return Ok(out.finish());
    }
    let a = Input::new::<E>(op.name(), a, shape)?;
    let b = Input::new::<E>(op.name(), b, shape)?;
    let walk = Walk::new(&[&a.layout, &b.layout]);
    let (a, b) = (a.operand(&walk, 0), b.operand(&walk, 1));
    walk.run(out.elements::<u8>(), cost, &|fetch, y| {
        let shape = fetch.shape();
        let (a, b) = fetch.two(&a, &b);
        kernels::compare_block(kernel, a, b, shape, y);
    });
    Ok(out.finish())
}

pub(super) fn test(op: NumberTest, x: &CpuTensor) -> Result<CpuTensor> {
    for_dtype!(x.dtype(), T => test_typed::<<T as Element>::Stored>(op, x))
}

fn test_typed<T: Compare + Pod + Send + Sync>(op: NumberTest, x: &CpuTensor) -> Result<CpuTensor> {
    let kernel = match op {
        NumberTest::IsNan => kernels::NumberTest::IsNan,
        NumberTest::IsInf => kernels::NumberTest::IsInf,
        NumberTest::IsFinite => kernels::NumberTest::IsFinite,
    };
    let mut out = Output::new(op.name(), x.shape(), DType::Bool)?;
    let walk = Walk::new(&[x.layout()]);
    let operand = walk.operand(0, x.elements::<T>());
    walk.run(out.elements::<u8>(), copy::cost::<T>(), &|fetch, y| {
        let shape = fetch.shape();
        kernels::test_numbers_block(kernel, fetch.one(&operand), shape, y);
    });
    Ok(out.finish())
}

pub(super) fn where_cond(mask: &CpuTensor, a: &CpuTensor, b: &CpuTensor) -> Result<CpuTensor> {
    let op = "where_cond";
    if a.dtype() != b.dtype() {
        return Err(Error::DTypeMismatch { op, lhs: a.dtype(), rhs: b.dtype(), shape: *a.shape() });
    }
    for (lhs, rhs) in [(mask.shape(), a.shape()), (a.shape(), b.shape())] {
        if lhs != rhs {
            return Err(Error::ShapeMismatch { op, lhs: *lhs, rhs: *rhs });
        }
    }
    let mut out = Output::new(op, a.shape(), a.dtype())?;
    for_size!(a.dtype(), T => match mask.dtype() {
        DType::Bool | DType::U8 => select_into::<u8, T>(mask, a, b, &mut out, kernels::select_block),
        dtype => for_dtype!(dtype, M => {
            type Mask = <M as Element>::Stored;
            select_into::<Mask, T>(mask, a, b, &mut out, select);
        }),
    });
    Ok(out.finish())
}

fn select_into<M: Pod + Send + Sync, T: Pod + Send + Sync>(
    mask: &CpuTensor,
    a: &CpuTensor,
    b: &CpuTensor,
    out: &mut Output,
    select: impl Fn(BlockArg<M>, BlockArg<T>, BlockArg<T>, Block, &mut [T]) + Sync,
) {
    let cost = copy::cost::<T>();
    if mask.is_contiguous() && a.is_contiguous() && b.is_contiguous() {
        let (mask, a, b) = (mask.run::<M>(), a.run::<T>(), b.run::<T>());
        write_chunks(out.elements::<T>(), CHUNK, cost, &|first, y| {
            let range = first * CHUNK..first * CHUNK + y.len();
            let mask = Run::Slice(&mask[range.clone()]);
            let (a, b) = (Run::Slice(&a[range.clone()]), Run::Slice(&b[range]));
            select(mask.as_row(), a.as_row(), b.as_row(), Block::row(y.len()), y);
        });
        return;
    }
    let walk = Walk::new(&[mask.layout(), a.layout(), b.layout()]);
    let mask = walk.operand(0, mask.elements::<M>());
    let (a, b) = (walk.operand(1, a.elements::<T>()), walk.operand(2, b.elements::<T>()));
    walk.run(out.elements::<T>(), cost, &|fetch, y| {
        let shape = fetch.shape();
        let (mask, a, b) = fetch.three(&mask, &a, &b);
        select(mask, a, b, shape, y);
    });
}

/// By a mask of numbers.
fn select<M: Compare + Pod, T: Pod + Select>(
    mask: BlockArg<M>,
    a: BlockArg<T>,
    b: BlockArg<T>,
    shape: Block,
    y: &mut [T],
) {
    match shape.rows * shape.cols {
        ..=CHUNK => select_by(&mut [0; CHUNK], mask, a, b, shape, y),
        _ => select_by(&mut [0; TILE_LEN], mask, a, b, shape, y),
    }
}

/// As [`select`], by as many rows as `truth` holds masks of.
fn select_by<M: Compare + Pod, T: Pod + Select>(
    truth: &mut [u8],
    mask: BlockArg<M>,
    a: BlockArg<T>,
    b: BlockArg<T>,
    shape: Block,
    y: &mut [T],
) {
    let zero = Run::Scalar(M::zeroed());
    if mask.is_value {
        // A truth value a row, of as many rows as there is room for.
        for row in (0..shape.rows).step_by(truth.len()) {
            let rows = truth.len().min(shape.rows - row);
            let column = Block { rows, cols: 1, stride: 1 };
            let ne = Comparison::Ne;
            kernels::compare_block(ne, mask.starting_at(row, 0), zero.as_row(), column, truth);
            let truth = BlockArg { data: truth, start: 0, stride: 1, is_value: true };
            let (a, b) = (a.starting_at(row, 0), b.starting_at(row, 0));
            let y = &mut y[row * shape.stride..];
            kernels::select_block(truth, a, b, Block { rows, ..shape }, y);
        }
        return;
    }
    let cols = shape.cols.min(truth.len());
    let rows = truth.len() / cols;
    for row in (0..shape.rows).step_by(rows) {
        let rows = rows.min(shape.rows - row);
        for column in (0..shape.cols).step_by(cols) {
            let cols = cols.min(shape.cols - column);
            let of_truth = Block { rows, cols, stride: cols };
            let mask = mask.starting_at(row, column);
            kernels::compare_block(Comparison::Ne, mask, zero.as_row(), of_truth, truth);
            let truth = BlockArg { data: truth, start: 0, stride: cols as isize, is_value: false };
            let (a, b) = (a.starting_at(row, column), b.starting_at(row, column));
            let y = &mut y[row * shape.stride + column..];
            kernels::select_block(truth, a, b, Block { rows, cols, ..shape }, y);
        }
    }
}

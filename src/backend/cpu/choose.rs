//! Comparisons, tests of numbers, and the choice between two tensors by a mask.

use bytemuck::Pod;
use swath_kernels::{self as kernels, Arg as Run, Compare, Comparison, Select, Truth};

use super::copy::{self, for_size};
use super::elementwise::{CHUNK, Input, common, part};
use super::walk::Walk;
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
    let a = Input::new::<E>(op.name(), a, shape)?;
    let b = Input::new::<E>(op.name(), b, shape)?;
    let walk = Walk::new(&[&a.layout, &b.layout]);
    let (a, b) = (a.operand(&walk, 0), b.operand(&walk, 1));
    walk.run(out.elements::<u8>(), copy::cost::<E::Stored>(), &|fetch, y| {
        let (a, b) = fetch.two(&a, &b);
        kernels::compare(kernel, a, b, y);
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
    walk.run(out.elements::<u8>(), copy::cost::<T>(), &|fetch, y| match fetch.one(&operand) {
        Run::Slice(x) => kernels::test_numbers(kernel, x, y),
        Run::Scalar(x) => {
            let mut passes = [0];
            kernels::test_numbers(kernel, &[x], &mut passes);
            y.fill(passes[0]);
        }
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
        DType::Bool | DType::U8 => select_into::<u8, T>(mask, a, b, &mut out, select_bytes),
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
    select: impl Fn(Run<M>, Run<T>, Run<T>, &mut [T]) + Sync,
) {
    let walk = Walk::new(&[mask.layout(), a.layout(), b.layout()]);
    let mask = walk.operand(0, mask.elements::<M>());
    let (a, b) = (walk.operand(1, a.elements::<T>()), walk.operand(2, b.elements::<T>()));
    walk.run(out.elements::<T>(), copy::cost::<T>(), &|fetch, y| {
        let (mask, a, b) = fetch.three(&mask, &a, &b);
        select(mask, a, b, y);
    });
}

fn select_bytes<T: Pod + Select>(mask: Run<u8>, a: Run<T>, b: Run<T>, y: &mut [T]) {
    match mask {
        Run::Slice(mask) => kernels::select(mask, a, b, y),
        Run::Scalar(mask) => match if mask != 0 { a } else { b } {
            Run::Slice(x) => y.copy_from_slice(x),
            Run::Scalar(x) => y.fill(x),
        },
    }
}

/// By a mask of numbers, whose truth is found a chunk at a time.
fn select<M: Truth, T: Pod + Select>(mask: Run<M>, a: Run<T>, b: Run<T>, y: &mut [T]) {
    let mut truth = [0; CHUNK];
    match mask {
        Run::Slice(mask) => {
            for (i, (mask, y)) in mask.chunks(CHUNK).zip(y.chunks_mut(CHUNK)).enumerate() {
                let (start, len) = (i * CHUNK, y.len());
                let truth = &mut truth[..len];
                kernels::nonzero(mask, truth);
                kernels::select(truth, part(a, start, len), part(b, start, len), y);
            }
        }
        Run::Scalar(mask) => {
            kernels::nonzero(&[mask], &mut truth[..1]);
            select_bytes(Run::Scalar(truth[0]), a, b, y);
        }
    }
}

//! Comparisons, and the choice between two tensors by a mask.

use bytemuck::Pod;
use swath_kernels::Arg as Run;

use super::copy::{self, for_size};
use super::elementwise::{Input, common};
use super::walk::Walk;
use super::{CpuTensor, Output};
use crate::backend::{Arg, TensorData};
use crate::dtype::{DType, Element, Scalar, for_dtype};
use crate::error::{Error, Result};
use crate::ops::CompareOp;
use crate::shape::Shape;

pub(super) fn compare(
    op: CompareOp,
    a: Arg<'_, CpuTensor>,
    b: Arg<'_, CpuTensor>,
) -> Result<CpuTensor> {
    let (shape, dtype) = common(op.name(), &a, &b)?;
    for_dtype!(dtype, T => compare_typed::<T>(op, &a, &b, &shape))
}

fn compare_typed<E: Element>(
    op: CompareOp,
    a: &Arg<'_, CpuTensor>,
    b: &Arg<'_, CpuTensor>,
    shape: &Shape,
) -> Result<CpuTensor> {
    let mut out = Output::new(op.name(), shape, DType::Bool)?;
    let a = Input::new::<E>(op.name(), a, shape)?;
    let b = Input::new::<E>(op.name(), b, shape)?;
    let walk = Walk::new(&[&a.layout, &b.layout]);
    let (a, b) = (a.operand(&walk, 0), b.operand(&walk, 1));
    walk.run(out.elements::<u8>(), copy::cost::<E::Stored>(), &|fetch, y| {
        let (a, b) = fetch.two(&a, &b);
        match op {
            CompareOp::Eq => test(a, b, y, |a, b| a == b),
            CompareOp::Ne => test(a, b, y, |a, b| a != b),
            CompareOp::Lt => test(a, b, y, |a, b| a < b),
            CompareOp::Le => test(a, b, y, |a, b| a <= b),
            CompareOp::Gt => test(b, a, y, |a, b| a < b),
            CompareOp::Ge => test(b, a, y, |a, b| a <= b),
        }
    });
    Ok(out.finish())
}

#[inline(always)]
fn test<T: Copy>(a: Run<T>, b: Run<T>, y: &mut [u8], holds: impl Fn(T, T) -> bool) {
    match (a, b) {
        (Run::Slice(a), Run::Slice(b)) => {
            y.iter_mut().zip(a).zip(b).for_each(|((y, &a), &b)| *y = u8::from(holds(a, b)));
        }
        (Run::Slice(a), Run::Scalar(b)) => {
            y.iter_mut().zip(a).for_each(|(y, &a)| *y = u8::from(holds(a, b)));
        }
        (Run::Scalar(a), Run::Slice(b)) => {
            y.iter_mut().zip(b).for_each(|(y, &b)| *y = u8::from(holds(a, b)));
        }
        (Run::Scalar(a), Run::Scalar(b)) => y.fill(u8::from(holds(a, b))),
    }
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
    let truth;
    let mask = if mask.dtype() == DType::Bool {
        mask
    } else {
        truth = compare(CompareOp::Ne, Arg::Ref(mask), Arg::Scalar(Scalar::Int(0)))?;
        &truth
    };
    let mut out = Output::new(op, a.shape(), a.dtype())?;
    for_size!(a.dtype(), T => {
        let walk = Walk::new(&[&mask.layout, &a.layout, &b.layout]);
        let mask = walk.operand(0, mask.elements::<u8>());
        let (a, b) = (walk.operand(1, a.elements::<T>()), walk.operand(2, b.elements::<T>()));
        walk.run(out.elements::<T>(), copy::cost::<T>(), &|fetch, y| {
            let (mask, a, b) = fetch.three(&mask, &a, &b);
            select(mask, a, b, y);
        });
    });
    Ok(out.finish())
}

fn select<T: Pod>(mask: Run<u8>, a: Run<T>, b: Run<T>, y: &mut [T]) {
    let mask = match mask {
        Run::Slice(mask) => mask,
        Run::Scalar(mask) => {
            return match if mask != 0 { a } else { b } {
                Run::Slice(x) => y.copy_from_slice(x),
                Run::Scalar(x) => y.fill(x),
            };
        }
    };
    let choose = |mask: u8, a: T, b: T| if mask != 0 { a } else { b };
    let y = y.iter_mut().zip(mask);
    match (a, b) {
        (Run::Slice(a), Run::Slice(b)) => {
            y.zip(a).zip(b).for_each(|(((y, &m), &a), &b)| *y = choose(m, a, b));
        }
        (Run::Slice(a), Run::Scalar(b)) => {
            y.zip(a).for_each(|((y, &m), &a)| *y = choose(m, a, b));
        }
        (Run::Scalar(a), Run::Slice(b)) => {
            y.zip(b).for_each(|((y, &m), &b)| *y = choose(m, a, b));
        }
        (Run::Scalar(a), Run::Scalar(b)) => y.for_each(|(y, &m)| *y = choose(m, a, b)),
    }
}

//! Element-wise functions of one and two tensors: the op tables expanded to kernels.
//!
//! `f32` and `f64` run the kernels of `swath_kernels::math` on the runs that [`Walk`] makes of the
//! operands. 16-bit floats are converted to `f32` a chunk at a time, computed there and rounded
//! once. Integers run the table's own formulas, `u8` in `i64` and truncated.
//!
//! An operand that was given away and is unshared, contiguous and of the result's size gives its
//! memory to the result, which is then computed in place.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytemuck::Pod;
use half::{bf16, f16};
use swath_kernels::{Arg as Run, Block, BlockArg, Place};

use super::cast::Half;
use super::parallel::{self, Cost};
use super::pieces::{CHUNK, Function1, Function2, Pair, in_chunks1, in_chunks2, part, widened};
use super::table::{Kernel1, Kernel2, binary_integer, binary_kernel, unary_integer, unary_kernel};
use super::walk::{Operand, Walk, write_chunks};
use super::{CpuTensor, Output};
use crate::backend::{Arg, TensorData};
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops::{BinaryOp, UnaryOp};
use crate::shape::Shape;

/// For a byte of result of a function that loads, computes a step and stores, and of one that computes a
/// polynomial: in the caches, with AVX-512, two threads are as fast as one at 100,000 and at 40,000 `f32`
/// (5 µs of `neg`, 4 of `exp`).
const CHEAP_PER_BYTE: usize = 30;
const DEAR_PER_BYTE: usize = 75;

fn is_cheap1(op: UnaryOp) -> bool {
    use UnaryOp::*;
    matches!(
        op,
        Neg | Abs
            | Sign
            | Square
            | Sqrt
            | Recip
            | Floor
            | Ceil
            | Round
            | Trunc
            | Relu
            | Relu6
            | Hardsigmoid
            | Hardswish
    )
}

fn is_cheap2(op: BinaryOp) -> bool {
    use BinaryOp::*;
    !matches!(
        op,
        Pow | Hypot
            | Rem
            | Elu
            | ErfGrad
            | SiluGrad
            | GeluTanhGrad
            | GeluGrad
            | SoftplusGrad
            | LogSigmoidGrad
            | MishGrad
            | SeluGrad
    )
}

pub(super) fn cost<T>(cheap: bool) -> Cost {
    Cost(size_of::<T>() * if cheap { CHEAP_PER_BYTE } else { DEAR_PER_BYTE })
}

pub(super) fn unary(op: UnaryOp, x: Arg<'_, CpuTensor>) -> Result<CpuTensor> {
    let name = op.name();
    let Some(tensor) = x.tensor() else {
        let reason = "a scalar is not a tensor".to_owned();
        return Err(Error::InvalidArgument { op: name, reason });
    };
    let cheap = is_cheap1(op);
    match tensor.dtype() {
        DType::F32 => apply1(name, x, cost::<f32>(cheap), &unary_kernel::<f32>(op)),
        DType::F64 => apply1(name, x, cost::<f64>(cheap), &unary_kernel::<f64>(op)),
        DType::F16 => unary_half::<f16>(name, unary_kernel(op), cheap, x),
        DType::BF16 => unary_half::<bf16>(name, unary_kernel(op), cheap, x),
        DType::I64 if op.reference_integer().is_some() => unary_int::<i64>(op, x),
        DType::U8 if op.reference_integer().is_some() => unary_int::<u8>(op, x),
        dtype => Err(Error::UnsupportedDType { op: name, dtype, shape: *tensor.shape() }),
    }
}

/// Runs a function over a tensor.
fn apply1<T: Pod + Send + Sync>(
    op: &'static str,
    x: Arg<'_, CpuTensor>,
    cost: Cost,
    f: &impl Function1<T>,
) -> Result<CpuTensor> {
    let x = match Output::reuse(x) {
        Ok(mut out) => {
            parallel::for_each_chunk_mut(out.elements(), CHUNK, cost, &|_, y| {
                f.run(None, &mut Place::cached(y));
            });
            return Ok(out.finish());
        }
        Err(x) => x,
    };
    let x = x.tensor().expect("only tensors are given to apply1");
    let mut out = Output::new(op, x.shape(), x.dtype())?;
    if x.is_contiguous() {
        let x = x.run::<T>();
        write_chunks(out.elements(), CHUNK, cost, &|first, y| {
            f.run(Some(&x[first * CHUNK..][..y.len()]), y);
        });
        return Ok(out.finish());
    }
    let walk = Walk::new(&[x.layout()]);
    let operand = walk.operand(0, x.elements::<T>());
    walk.run(out.elements(), cost, &|fetch, y| {
        let shape = fetch.shape();
        f.block(Some(fetch.one(&operand)), shape, y);
    });
    Ok(out.finish())
}

fn unary_half<T: Half>(
    op: &'static str,
    kernel: Kernel1<f32>,
    cheap: bool,
    x: Arg<'_, CpuTensor>,
) -> Result<CpuTensor> {
    let f = |x: Option<BlockArg<T>>, shape: Block, y: &mut Place<T>| {
        let mut wide = [0f32; CHUNK];
        in_chunks1(x, shape, y, |x, y| {
            let wide = &mut wide[..x.len()];
            T::widen(x, wide);
            (kernel.in_place)(wide);
            T::narrow(wide, y);
        });
    };
    apply1(op, x, cost::<f32>(cheap), &f)
}

fn unary_int<T: Element<Stored = T> + Pod>(
    op: UnaryOp,
    x: Arg<'_, CpuTensor>,
) -> Result<CpuTensor> {
    let f = |x: Option<BlockArg<T>>, shape: Block, y: &mut Place<T>| {
        in_chunks1(x, shape, y, |x, y| unary_integer(op, x, y));
    };
    apply1(op.name(), x, cost::<T>(true), &f)
}

/// Shape and dtype of the result of two operands, at most one of them a scalar.
pub(super) fn common<'t>(
    op: &'static str,
    a: &'t Arg<'_, CpuTensor>,
    b: &'t Arg<'_, CpuTensor>,
) -> Result<(&'t Shape, DType)> {
    match (a.tensor(), b.tensor()) {
        (Some(a), Some(b)) if a.dtype() != b.dtype() => {
            let (lhs, rhs) = (a.dtype(), b.dtype());
            Err(Error::DTypeMismatch { op, lhs, rhs, shape: *a.shape() })
        }
        (Some(a), Some(b)) if a.shape() != b.shape() => {
            Err(Error::ShapeMismatch { op, lhs: *a.shape(), rhs: *b.shape() })
        }
        (Some(x), _) | (_, Some(x)) => Ok((x.shape(), x.dtype())),
        (None, None) => {
            let reason = "at most one operand can be a scalar".to_owned();
            Err(Error::InvalidArgument { op, reason })
        }
    }
}

/// An operand as storage and layout: a scalar is one element that strides of 0 repeat.
pub(super) struct Input<'a, T> {
    data: InputData<'a, T>,
    pub layout: Layout,
}

enum InputData<'a, T> {
    Storage(&'a [T]),
    Scalar([T; 1]),
}

impl<'a, T: Pod> Input<'a, T> {
    pub fn new<E: Element<Stored = T>>(
        op: &'static str,
        x: &'a Arg<'_, CpuTensor>,
        shape: &Shape,
    ) -> Result<Self> {
        Ok(match x {
            Arg::Scalar(value) => Input::scalar::<E>(op, *value, shape)?,
            Arg::Ref(x) => Input { data: InputData::Storage(x.elements()), layout: *x.layout() },
            Arg::Owned(x) => Input { data: InputData::Storage(x.elements()), layout: *x.layout() },
        })
    }

    fn scalar<E: Element<Stored = T>>(
        op: &'static str,
        value: Scalar,
        shape: &Shape,
    ) -> Result<Self> {
        let layout = Layout::contiguous(Shape::scalar()).broadcast_to(op, shape)?;
        Ok(Input { data: InputData::Scalar([E::from_scalar(value).to_stored()]), layout })
    }

    pub fn operand(&self, walk: &Walk, slot: usize) -> Operand<'_, T> {
        match &self.data {
            InputData::Storage(data) => walk.operand(slot, data),
            InputData::Scalar(value) => walk.operand(slot, value),
        }
    }
}

pub(super) fn binary(
    op: BinaryOp,
    a: Arg<'_, CpuTensor>,
    b: Arg<'_, CpuTensor>,
) -> Result<CpuTensor> {
    let name = op.name();
    let (_, dtype) = common(name, &a, &b)?;
    let cheap = is_cheap2(op);
    match dtype {
        DType::F32 => apply2(name, a, b, cost::<f32>(cheap), &binary_kernel::<f32>(op)),
        DType::F64 => apply2(name, a, b, cost::<f64>(cheap), &binary_kernel::<f64>(op)),
        DType::F16 => binary_half::<f16>(name, binary_kernel(op), cheap, a, b),
        DType::BF16 => binary_half::<bf16>(name, binary_kernel(op), cheap, a, b),
        DType::I64 if op.reference_integer().is_some() => binary_int::<i64>(op, a, b),
        DType::U8 if op.reference_integer().is_some() => binary_int::<u8>(op, a, b),
        _ => {
            let shape = *common(name, &a, &b)?.0;
            Err(Error::UnsupportedDType { op: name, dtype, shape })
        }
    }
}

/// The operand, if it is one run or one number: then there is nothing to walk.
pub(super) fn flat<'a, E: Element>(x: &'a Arg<'_, CpuTensor>) -> Option<Run<'a, E::Stored>> {
    match x {
        Arg::Scalar(value) => Some(Run::Scalar(E::from_scalar(*value).to_stored())),
        Arg::Ref(x) if x.is_contiguous() => Some(Run::Slice(x.run())),
        Arg::Owned(x) if x.is_contiguous() => Some(Run::Slice(x.run())),
        _ => None,
    }
}

fn apply2<T: Element<Stored = T> + Pod>(
    op: &'static str,
    a: Arg<'_, CpuTensor>,
    b: Arg<'_, CpuTensor>,
    cost: Cost,
    f: &impl Function2<T>,
) -> Result<CpuTensor> {
    let a = match Output::reuse(a) {
        Ok(mut out) => {
            if let Some(b) = flat::<T>(&b) {
                parallel::for_each_chunk_mut(out.elements(), CHUNK, cost, &|first, y| {
                    let b = part(b, first * CHUNK, y.len());
                    f.run(Pair::Right(b), &mut Place::cached(y));
                });
                return Ok(out.finish());
            }
            let b = Input::new::<T>(op, &b, out.shape())?;
            let walk = Walk::new(&[&b.layout]);
            let operand = b.operand(&walk, 0);
            walk.change(out.elements(), cost, &|fetch, y| {
                let shape = fetch.shape();
                f.block(Pair::Right(fetch.one(&operand)), shape, y);
            });
            return Ok(out.finish());
        }
        Err(a) => a,
    };
    let b = match Output::reuse(b) {
        Ok(mut out) => {
            let a = Input::new::<T>(op, &a, out.shape())?;
            let walk = Walk::new(&[&a.layout]);
            let operand = a.operand(&walk, 0);
            walk.change(out.elements(), cost, &|fetch, y| {
                let shape = fetch.shape();
                f.block(Pair::Left(fetch.one(&operand)), shape, y);
            });
            return Ok(out.finish());
        }
        Err(b) => b,
    };
    let shape = a.tensor().or(b.tensor()).expect("`common` has seen a tensor").shape();
    let mut out = Output::new(op, shape, T::DTYPE)?;
    if let (Some(a), Some(b)) = (flat::<T>(&a), flat::<T>(&b)) {
        write_chunks(out.elements(), CHUNK, cost, &|first, y| {
            let (start, len) = (first * CHUNK, y.len());
            f.run(Pair::Both(part(a, start, len), part(b, start, len)), y);
        });
        return Ok(out.finish());
    }
    let a = Input::new::<T>(op, &a, shape)?;
    let b = Input::new::<T>(op, &b, shape)?;
    let walk = Walk::new(&[&a.layout, &b.layout]);
    let (a, b) = (a.operand(&walk, 0), b.operand(&walk, 1));
    walk.run(out.elements(), cost, &|fetch, y| {
        let shape = fetch.shape();
        let (a, b) = fetch.two(&a, &b);
        f.block(Pair::Both(a, b), shape, y);
    });
    Ok(out.finish())
}

fn binary_half<T: Half>(
    op: &'static str,
    kernel: Kernel2<f32>,
    cheap: bool,
    a: Arg<'_, CpuTensor>,
    b: Arg<'_, CpuTensor>,
) -> Result<CpuTensor> {
    let f = |operands: Pair<BlockArg<T>>, shape: Block, y: &mut Place<T>| {
        let (mut a_wide, mut b_wide, mut y_wide) = ([0f32; CHUNK], [0f32; CHUNK], [0f32; CHUNK]);
        in_chunks2(operands, shape, y, |a, b, y| {
            let y_wide = &mut y_wide[..y.len()];
            let (a, b) = (widened(a, &mut a_wide), widened(b, &mut b_wide));
            (kernel.run)(a, b, &mut Place::cached(y_wide));
            T::narrow(y_wide, y);
        });
    };
    apply2(op, a, b, cost::<f32>(cheap), &f)
}

fn binary_int<T: Element<Stored = T> + Pod>(
    op: BinaryOp,
    a: Arg<'_, CpuTensor>,
    b: Arg<'_, CpuTensor>,
) -> Result<CpuTensor> {
    let failed = AtomicBool::new(false);
    let f = |operands: Pair<BlockArg<T>>, shape: Block, y: &mut Place<T>| {
        in_chunks2(operands, shape, y, |a, b, y| {
            if !binary_integer(op, a, b, y) {
                failed.store(true, Relaxed);
            }
        });
    };
    let out = apply2(op.name(), a, b, cost::<T>(true), &f)?;
    match failed.load(Relaxed) {
        true => Err(Error::IntegerDivision { op: op.name(), shape: *out.shape() }),
        false => Ok(out),
    }
}

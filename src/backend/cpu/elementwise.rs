//! Element-wise functions: the one path from an op to its kernel, whatever its number of operands.
//!
//! ```text
//! the first operand that is owned, unshared and as large as the result gives its memory to the result
//! all others contiguous or scalars:  chunks of the result, shared by threads
//! else:                              pieces that a `Walk` makes of their layouts
//!     each is a block of rows, for which the kernel is called once
//! ```
//!
//! `f32`, `f64` and 16-bit floats run the kernels of `swath_kernels::math`, integers the table's own
//! formulas, `u8` in `i64` and truncated.

use std::array::from_fn;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytemuck::Pod;
use half::{bf16, f16};
use swath_kernels::{Arg as Run, Block, BlockArg, Kernel, Place, Stored};

use super::copy::AsBits;
use super::table::{binary_integer, binary_kernel, ternary_kernel, unary_integer, unary_kernel};
use super::walk::{Fetch, Operand, Walk, write_chunks};
use super::{CpuTensor, Output};
use crate::backend::{Arg, TensorData};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::runtime::parallel::{self, Cost};
use crate::shape::Shape;

/// Elements that threads and conversions take at a time: three `f32` arrays of them stay in the
/// first-level cache.
pub(super) const CHUNK: usize = 1024;

/// Integers of a result that is an operand too, copied out of the way of their formula at a time.
const HELD: usize = 256;

/// For a byte of result of a function that loads, computes a step and stores, and of one that computes a
/// polynomial: in the caches, with AVX-512, two threads are as fast as one at 100,000 and at 40,000 `f32`
/// (5 µs of `neg`, 4 of `exp`).
const CHEAP_PER_BYTE: usize = 30;
const COSTLY_PER_BYTE: usize = 75;

/// Cost of an element, by the type that it is computed in.
pub(super) fn cost<T>(is_cheap: bool) -> Cost {
    Cost(size_of::<T>() * if is_cheap { CHEAP_PER_BYTE } else { COSTLY_PER_BYTE })
}

/// A function of `N` operands on rows of its result, which holds the operand that is `None`.
type Rows<'f, T, const N: usize> =
    &'f (dyn Fn([Option<BlockArg<T>>; N], Block, &mut Place<T>) + Sync);

/// A formula for runs of integers.
type Formula<'f, T, const N: usize> = &'f (dyn Fn([Run<T>; N], &mut [T]) + Sync);

pub(super) fn unary(op: UnaryOp, mut x: [Arg<'_, CpuTensor>; 1]) -> Result<CpuTensor> {
    let task = Task::new(op.name(), &mut x)?;
    match task.dtype {
        DType::I64 if op.reference_integer().is_some() => {
            task.integers::<i64>(&|[x], y| unary_integer(op, x, y))
        }
        DType::U8 if op.reference_integer().is_some() => {
            task.integers::<u8>(&|[x], y| unary_integer(op, x, y))
        }
        _ => task.floats(unary_kernel(op)),
    }
}

pub(super) fn binary(op: BinaryOp, mut operands: [Arg<'_, CpuTensor>; 2]) -> Result<CpuTensor> {
    let task = Task::new(op.name(), &mut operands)?;
    if !matches!(task.dtype, DType::I64 | DType::U8) || op.reference_integer().is_none() {
        return task.floats(binary_kernel(op));
    }
    let failed = AtomicBool::new(false);
    let out = match task.dtype {
        DType::I64 => task.integers::<i64>(&|[a, b], y| {
            failed.fetch_or(!binary_integer(op, a, b, y), Relaxed);
        }),
        _ => task.integers::<u8>(&|[a, b], y| {
            failed.fetch_or(!binary_integer(op, a, b, y), Relaxed);
        }),
    }?;
    match failed.load(Relaxed) {
        true => Err(Error::IntegerDivision { op: op.name(), shape: *out.shape() }),
        false => Ok(out),
    }
}

pub(super) fn ternary(op: TernaryOp, mut operands: [Arg<'_, CpuTensor>; 3]) -> Result<CpuTensor> {
    Task::new(op.name(), &mut operands)?.floats(ternary_kernel(op))
}

/// Shape and dtype that operands have in common; scalars take any.
pub(super) fn common<'t>(
    op: &'static str,
    operands: &[&'t Arg<'_, CpuTensor>],
) -> Result<(&'t Shape, DType)> {
    let mut tensors = operands.iter().filter_map(|x| x.tensor());
    let Some(first) = tensors.next() else {
        let reason = "expected a tensor among the operands, got scalars alone".to_owned();
        return Err(Error::InvalidArgument { op, reason });
    };
    let (shape, dtype) = (first.shape(), first.dtype());
    for x in tensors {
        if x.dtype() != dtype {
            return Err(Error::DTypeMismatch { op, lhs: dtype, rhs: x.dtype(), shape: *shape });
        }
        if x.shape() != shape {
            return Err(Error::ShapeMismatch { op, lhs: *shape, rhs: *x.shape() });
        }
    }
    Ok((shape, dtype))
}

/// Operands as storage and layout: a scalar is one element that strides of 0 repeat.
pub(super) struct Inputs<'a, T, const N: usize> {
    operands: [&'a Arg<'a, CpuTensor>; N],
    scalars: [[T; 1]; N],
}

impl<'a, T: Pod, const N: usize> Inputs<'a, T, N> {
    pub fn new<E: Element<Stored = T>>(operands: [&'a Arg<'a, CpuTensor>; N]) -> Self {
        let scalars = operands.map(|x| match x {
            Arg::Scalar(value) => [E::from_scalar(*value).to_stored()],
            _ => [T::zeroed()],
        });
        Inputs { operands, scalars }
    }

    /// The same operands as bits.
    pub fn into_bits(self) -> Inputs<'a, T::Bits, N>
    where
        T: AsBits,
    {
        let Inputs { operands, scalars } = self;
        Inputs { operands, scalars: scalars.map(|[x]| [bytemuck::cast(x)]) }
    }

    /// The operands as runs and numbers, if all are: then there is nothing to walk.
    pub fn runs(&self) -> Option<[Run<'_, T>; N]> {
        let is_flat = |x: &CpuTensor| x.is_contiguous();
        self.operands.iter().all(|x| x.tensor().is_none_or(is_flat)).then(|| {
            from_fn(|k| match self.operands[k].tensor() {
                Some(x) => Run::Slice(x.run()),
                None => Run::Scalar(self.scalars[k][0]),
            })
        })
    }

    /// A walk over the operands' layouts, and the operands for it.
    pub fn walk(&self, op: &'static str, shape: &Shape) -> Result<(Walk, [Operand<'_, T>; N])> {
        let repeated = Layout::contiguous(Shape::scalar()).broadcast_to(op, shape)?;
        let walk = Walk::new(&self.operands.map(|x| x.tensor().map_or(&repeated, |x| x.layout())));
        let operands = from_fn(|k| {
            let data = self.operands[k].tensor().map_or(&self.scalars[k][..], |x| x.elements());
            walk.operand(k, data)
        });
        Ok((walk, operands))
    }
}

/// An element-wise op on operands that were checked.
struct Task<'t, 'a, const N: usize> {
    op: &'static str,
    operands: &'t mut [Arg<'a, CpuTensor>; N],
    dtype: DType,
}

impl<'t, 'a, const N: usize> Task<'t, 'a, N> {
    fn new(op: &'static str, operands: &'t mut [Arg<'a, CpuTensor>; N]) -> Result<Self> {
        let dtype = common(op, &operands.each_ref())?.1;
        Ok(Task { op, operands, dtype })
    }

    /// Runs a kernel.
    fn floats(self, kernel: &'static Kernel<N>) -> Result<CpuTensor> {
        let cheap = kernel.is_cheap();
        match self.dtype {
            DType::F32 => self.run(cost::<f32>(cheap), &by_kernel::<f32, N>(kernel)),
            DType::F64 => self.run(cost::<f64>(cheap), &by_kernel::<f64, N>(kernel)),
            DType::F16 => self.run(cost::<f32>(cheap), &by_kernel::<f16, N>(kernel)),
            DType::BF16 => self.run(cost::<f32>(cheap), &by_kernel::<bf16, N>(kernel)),
            dtype => {
                let shape = *common(self.op, &self.operands.each_ref())?.0;
                Err(Error::UnsupportedDType { op: self.op, dtype, shape })
            }
        }
    }

    /// Runs a formula on chunks; what the result holds is copied out of its way.
    fn integers<T: Element<Stored = T> + Pod>(
        self,
        formula: Formula<'_, T, N>,
    ) -> Result<CpuTensor> {
        self.run::<T>(cost::<T>(true), &|x, shape, y| {
            let is_held = x.iter().any(Option::is_none);
            let mut held = [T::zeroed(); HELD];
            for r in 0..shape.rows {
                let row = x.map(|x| x.map(|x| x.row(r, shape.cols)));
                let y = &mut y[r * shape.stride..][..shape.cols];
                let step = if is_held { HELD } else { shape.cols.max(1) };
                for (i, y) in y.chunks_mut(step).enumerate() {
                    let held = &mut held[..if is_held { y.len() } else { 0 }];
                    if is_held {
                        held.copy_from_slice(y);
                    }
                    let held = Run::Slice(&*held);
                    formula(row.map(|x| x.map_or(held, |x| part(x, i * step, y.len()))), y);
                }
            }
        })
    }

    fn run<T: Element<Stored = T> + Pod>(self, cost: Cost, f: Rows<'_, T, N>) -> Result<CpuTensor> {
        let Task { op, operands, .. } = self;
        let reused =
            operands.iter_mut().enumerate().find_map(|(k, x)| Some((k, Output::reuse(x)?)));
        let (held, mut out) = match reused {
            Some(reused) => reused,
            None => {
                let shape = common(op, &operands.each_ref())?.0;
                (N, Output::new(op, shape, T::DTYPE)?)
            }
        };
        let is_held = held < N;
        let inputs = Inputs::<T, N>::new::<T>(operands.each_ref());
        if let Some(runs) = inputs.runs() {
            let chunk = |first: usize, y: &mut Place<T>| {
                let parts = runs.map(|run| part(run, first * CHUNK, y.len()));
                let rows = from_fn(|k| (k != held).then(|| parts[k].as_row()));
                f(rows, Block::row(y.len()), y);
            };
            if is_held {
                parallel::for_each_chunk_mut(out.elements(), CHUNK, cost, &|first, y| {
                    chunk(first, &mut Place::cached(y));
                });
            } else {
                write_chunks(out.elements(), CHUNK, cost, &chunk);
            }
            return Ok(out.finish());
        }
        let (walk, walked) = inputs.walk(op, out.shape())?;
        let piece = |fetch: &mut Fetch<'_>, y: &mut Place<T>| {
            let shape = fetch.shape();
            let rows = fetch.rows(&walked);
            f(from_fn(|k| (k != held).then(|| rows[k])), shape, y);
        };
        match is_held {
            true => walk.change(out.elements(), cost, &piece),
            false => walk.run(out.elements(), cost, &piece),
        }
        Ok(out.finish())
    }
}

fn by_kernel<T: Stored, const N: usize>(
    kernel: &'static Kernel<N>,
) -> impl Fn([Option<BlockArg<T>>; N], Block, &mut Place<T>) + Sync {
    move |x, shape, y| kernel.run_block_in_place(x, shape, y)
}

/// `run[start..start + len]`; a scalar stays one.
pub(super) fn part<T: Copy>(run: Run<'_, T>, start: usize, len: usize) -> Run<'_, T> {
    match run {
        Run::Slice(x) => Run::Slice(&x[start..start + len]),
        scalar => scalar,
    }
}

//! Element-wise functions, with one code path for any number of operands.
//!
//! ```text
//! the first operand that is owned, unshared and of the result's size is overwritten by the result
//! if all others are contiguous or numbers:  threads share chunks of the result
//! else:                                     threads share the pieces of a `Walk` over the layouts
//!     each chunk or piece is a block of rows, for which the kernel is called once
//! ```
//!
//! Floats run the kernels of `swath_kernels::math`, integers the formulas of the op table. `u8` is computed
//! in `i64` and truncated; so are `i32` and `u32`, in pieces that are converted to `i64`, which spares formulas
//! of their own. Arithmetic of all but `u8` has kernels. `i8`, `i16` and `u16` are converted to `i32` and the results
//! back. `u64` has the bits of `i64` in sums and products; for the rest, the definition is called for each element.

use std::array::from_fn;
use std::mem::replace;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use half::{bf16, f16};
use swath_kernels::{
    self as kernels, Arg as Run, Block, BlockArg, Function, IntegerOp, Kernel, Place, Stored,
    integer_map, math,
};

use super::cast::{cast, is_narrow, ordered_arg};
use super::copy::AsBits;
use super::table::{
    binary_integer, binary_kernel, integer_function, ternary_kernel, unary_integer, unary_kernel,
    unsigned_function,
};
use super::tensor::{CpuTensor, Output};
use super::walk::{Fetch, Operand, Walk, write_chunks};
use crate::backend::{Arg, TensorData, check_arithmetic, common};
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops::{BinaryOp, IntegerFn, TernaryOp, UnaryOp};
use crate::runtime::parallel::{self, Cost};
use crate::shape::Shape;

/// Elements per unit of work of threads and conversions: three `f32` arrays of this length fit in L1.
pub(super) const CHUNK: usize = 1024;

/// Elements of an operand in the result's memory that integer formulas copy at a time.
const COPIED: usize = 256;

/// Picoseconds per byte of result of functions of a few instructions, and of polynomials: two threads are as
/// fast as one at 100,000 `f32` of `neg` (5 µs) and 40,000 of `exp` (4 µs), in the caches, with AVX-512.
const CHEAP_PER_BYTE: usize = 30;
const COSTLY_PER_BYTE: usize = 75;

/// Cost of an element that is computed in type `T`.
pub(super) fn cost<T>(is_cheap: bool) -> Cost {
    Cost(size_of::<T>() * if is_cheap { CHEAP_PER_BYTE } else { COSTLY_PER_BYTE })
}

/// A function of `N` operands on rows of its result. An operand that is `None` is in the result's memory.
type Rows<'f, T, const N: usize> =
    &'f (dyn Fn([Option<BlockArg<T>>; N], Block, &mut Place<T>) + Sync);

/// A formula on runs of integers.
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
        DType::I32 | DType::U32 if op.reference_integer().is_some() => {
            task.wide_integers(&|[x], y| unary_integer(op, x, y))
        }
        dtype if is_narrow(dtype) && op.reference_integer().is_some() => {
            cast(&unary(op, [ordered_arg(&task.operands[0], dtype)?])?, dtype)
        }
        dtype => match op.reference_integer() {
            Some(definition) if dtype == DType::U64 => task.long_words(&|[x], y| {
                for (i, y) in y.iter_mut().enumerate() {
                    *y = definition(unsigned(x, i)) as i64;
                }
            }),
            _ => task.floats(unary_kernel(op)),
        },
    }
}

/// Element `i` of the bits of `U64`.
fn unsigned(x: Run<'_, i64>, i: usize) -> i128 {
    let bits = match x {
        Run::Slice(x) => x[i],
        Run::Scalar(x) => x,
    };
    bits.cast_unsigned().into()
}

/// Runs the definition of an op on the bits of `U64`; false if it failed for an element.
fn by_definition(op: BinaryOp, a: Run<'_, i64>, b: Run<'_, i64>, y: &mut [i64]) -> bool {
    let Some(definition) = op.reference_integer() else { return false };
    let mut failed = false;
    for (i, y) in y.iter_mut().enumerate() {
        let value = definition(unsigned(a, i), unsigned(b, i));
        failed |= value.is_none();
        *y = value.unwrap_or(0) as i64;
    }
    !failed
}

/// `x`, of `U64` or `I64`, as the other of the two, in the same order.
pub(super) fn with_sign_flipped(x: &CpuTensor, dtype: DType) -> Result<CpuTensor> {
    let task = Task { op: "to_dtype", operands: &mut [Arg::Ref(x)], dtype };
    task.integers::<i64>(&|[x], y| {
        integer_map(IntegerOp::Add, [x, Run::Scalar(i64::MIN)], y);
    })
}

/// An op on `I8`, `I16` or `U16`, in `I32`.
fn narrow(op: BinaryOp, operands: &[Arg<'_, CpuTensor>; 2], dtype: DType) -> Result<CpuTensor> {
    let [a, b] = operands;
    let wide = |op| binary(op, [ordered_arg(a, dtype)?, ordered_arg(b, dtype)?]);
    if op.divides_integers() {
        let quotients = wide(BinaryOp::Div).map_err(|error| error.named(op.name()))?;
        // The least integer divided by -1.
        let (_, largest) = dtype.integer_range();
        if quotients.run::<i32>().iter().any(|&x| i128::from(x) > largest) {
            return Err(Error::IntegerDivision { op: op.name(), shape: *quotients.shape() });
        }
    }
    cast(&wide(op)?, dtype)
}

/// `x = op(x, b)`, in the memory of `x` if nothing else shares it. An error leaves `x` as it was: an integer division
/// by zero is noticed after other quotients are written, so quotients get new memory.
pub(super) fn assign(op: BinaryOp, x: &mut CpuTensor, b: Arg<'_, CpuTensor>) -> Result<()> {
    let is_total = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul);
    if x.must_copy()
        || !x.is_reusable()
        || !(is_total || x.dtype().is_float())
        || is_narrow(x.dtype())
    {
        *x = binary(op, [Arg::Ref(&*x), b])?;
        return Ok(());
    }
    common(op.name(), &[&Arg::Ref(&*x), &b])?;
    check_arithmetic(op.name(), x.dtype(), x.shape())?;
    let held = Output::new(op.name(), &Shape::scalar(), x.dtype())?.finish();
    let owned = std::mem::replace(x, held);
    *x = binary(op, [Arg::Owned(owned), b])?;
    Ok(())
}

pub(super) fn binary(op: BinaryOp, mut operands: [Arg<'_, CpuTensor>; 2]) -> Result<CpuTensor> {
    let task = Task::new(op.name(), &mut operands)?;
    let failed = AtomicBool::new(false);
    let note = |succeeded: bool| _ = failed.fetch_or(!succeeded, Relaxed);
    let has_formula = op.reference_integer().is_some();
    let out = match (task.dtype, arithmetic(op)) {
        (DType::I64, Some(op)) => task.integers::<i64>(&|x, y| note(integer_map(op, x, y)))?,
        (DType::I32, Some(op)) => task.words(&|x, y| {
            note(integer_map::<i32>(op, x.map(signed), cast_slice_mut(y)));
        })?,
        (DType::U32, Some(op)) => task.words(&|x, y| note(integer_map(op, x, y)))?,
        (DType::I64, None) if has_formula => {
            task.integers::<i64>(&|[a, b], y| note(binary_integer(op, a, b, y)))?
        }
        (DType::U64, Some(op @ (IntegerOp::Add | IntegerOp::Sub | IntegerOp::Mul))) => {
            task.long_words(&|x, y| note(integer_map(op, x, y)))?
        }
        (DType::U64, _) if has_formula => {
            task.long_words(&|[a, b], y| note(by_definition(op, a, b, y)))?
        }
        (dtype, _) if is_narrow(dtype) && has_formula => {
            return narrow(op, task.operands, dtype);
        }
        (DType::U8, _) if has_formula => {
            task.integers::<u8>(&|[a, b], y| note(binary_integer(op, a, b, y)))?
        }
        (DType::I32 | DType::U32, None) if has_formula => {
            task.wide_integers(&|[a, b], y| note(binary_integer(op, a, b, y)))?
        }
        _ if op == BinaryOp::Pow => return power(task),
        _ => return task.floats(binary_kernel(op)),
    };
    match failed.load(Relaxed) {
        true => Err(Error::IntegerDivision { op: op.name(), shape: *out.shape() }),
        false => Ok(out),
    }
}

/// A function of two integers without a kernel.
pub(crate) fn integers(f: IntegerFn, mut operands: [Arg<'_, CpuTensor>; 2]) -> Result<CpuTensor> {
    let task = Task::new(f.name(), &mut operands)?;
    match task.dtype {
        DType::I64 => task.integers::<i64>(&|[a, b], y| integer_function(f, a, b, y)),
        DType::U64 => task.long_words(&|[a, b], y| unsigned_function(f, a, b, y)),
        DType::I32 | DType::U32 => task.wide_integers(&|[a, b], y| integer_function(f, a, b, y)),
        DType::U8 | DType::Bool => task.integers::<u8>(&|[a, b], y| integer_function(f, a, b, y)),
        dtype if is_narrow(dtype) => {
            let [a, b] = task.operands.each_ref().map(|x| ordered_arg(x, dtype));
            cast(&integers(f, [a?, b?])?, dtype)
        }
        _ => task.unsupported(),
    }
}

/// A power, to a small number by a product or a root.
fn power(task: Task<'_, '_, 2>) -> Result<CpuTensor> {
    let (op, dtype) = (task.op, task.dtype);
    let general = binary_kernel(BinaryOp::Pow);
    let [_, Arg::Scalar(exponent)] = &*task.operands else { return task.floats(general) };
    let exponent = exponent.rounded(dtype).to_f64();
    let kernel = match exponent {
        2.0 => math::Square::KERNEL,
        3.0 => math::Pow3::KERNEL,
        4.0 => math::Pow4::KERNEL,
        -1.0 => math::Recip::KERNEL,
        -2.0 => math::PowMinus2::KERNEL,
        0.5 => math::PowHalf::KERNEL,
        -0.5 => math::PowMinusHalf::KERNEL,
        1.0 => return task.floats(math::Mul::KERNEL),
        _ => return task.floats(general),
    };
    let base = replace(&mut task.operands[0], Arg::Scalar(Scalar::Int(0)));
    Task { op, operands: &mut [base], dtype }.floats(kernel)
}

/// The kernel of an op on integers.
fn arithmetic(op: BinaryOp) -> Option<IntegerOp> {
    Some(match op {
        BinaryOp::Add => IntegerOp::Add,
        BinaryOp::Sub => IntegerOp::Sub,
        BinaryOp::Mul => IntegerOp::Mul,
        BinaryOp::Div => IntegerOp::Div,
        BinaryOp::Rem => IntegerOp::Rem,
        BinaryOp::Remainder => IntegerOp::Remainder,
        BinaryOp::FloorDivide => IntegerOp::FloorDivide,
        _ => return None,
    })
}

/// The same bits as signed integers.
fn signed(x: Run<'_, u32>) -> Run<'_, i32> {
    match x {
        Run::Slice(x) => Run::Slice(cast_slice(x)),
        Run::Scalar(x) => Run::Scalar(x.cast_signed()),
    }
}

pub(super) fn ternary(op: TernaryOp, mut operands: [Arg<'_, CpuTensor>; 3]) -> Result<CpuTensor> {
    Task::new(op.name(), &mut operands)?.floats(ternary_kernel(op))
}

/// An operation that the program defines. What does not depend on the op is in [`Task::run`], which is compiled
/// once for each element type and number of operands.
#[cfg(feature = "pulp")]
pub(in crate::backend) fn simd_op<O: kernels::SimdOp<N>, const N: usize>(
    op: &O,
    mut operands: [Arg<'_, CpuTensor>; N],
) -> Result<CpuTensor> {
    const { assert!(N <= super::walk::MAX_OPERANDS, "an op of more operands than a walk has") };
    let task = Task::new(O::NAME, &mut operands)?;
    match task.dtype {
        DType::F32 => task.run::<f32>(cost::<f32>(O::IS_CHEAP), &|x, shape, y| {
            kernels::map_block_with(op, x, shape, y);
        }),
        DType::F64 => task.run::<f64>(cost::<f64>(O::IS_CHEAP), &|x, shape, y| {
            kernels::map_block_with(op, x, shape, y);
        }),
        _ => task.unsupported(),
    }
}

/// Operands as storage and layout. A number is one element with strides of 0.
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

    /// The operands as contiguous runs and numbers; `None` if one is neither.
    pub fn runs(&self) -> Option<[Run<'_, T>; N]> {
        let is_run = |x: &CpuTensor| x.is_contiguous();
        self.operands.iter().all(|x| x.tensor().is_none_or(is_run)).then(|| {
            from_fn(|k| match self.operands[k].tensor() {
                Some(x) => Run::Slice(x.run()),
                None => Run::Scalar(self.scalars[k][0]),
            })
        })
    }

    /// A walk over the operands' layouts, and the operands of that walk.
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

/// An element-wise op on checked operands.
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

    /// Runs a kernel of floats.
    fn floats(self, kernel: &'static Kernel<N>) -> Result<CpuTensor> {
        let cheap = kernel.is_cheap();
        match self.dtype {
            DType::F32 => self.run(cost::<f32>(cheap), &by_kernel::<f32, N>(kernel)),
            DType::F64 => self.run(cost::<f64>(cheap), &by_kernel::<f64, N>(kernel)),
            DType::F16 => self.run(cost::<f32>(cheap), &by_kernel::<f16, N>(kernel)),
            DType::BF16 => self.run(cost::<f32>(cheap), &by_kernel::<bf16, N>(kernel)),
            _ => self.unsupported(),
        }
    }

    fn unsupported(self) -> Result<CpuTensor> {
        let shape = *common(self.op, &self.operands.each_ref())?.0;
        Err(Error::UnsupportedDType { op: self.op, dtype: self.dtype, shape })
    }

    /// Runs an integer formula. An operand in the result's memory is copied piece by piece.
    fn integers<T: Element<Stored = T> + Pod>(
        self,
        formula: Formula<'_, T, N>,
    ) -> Result<CpuTensor> {
        self.run::<T>(cost::<T>(true), &|x, shape, y| {
            let is_in_place = x.iter().any(Option::is_none);
            let mut copy = [T::zeroed(); COPIED];
            for r in 0..shape.rows {
                let row = x.map(|x| x.map(|x| x.row(r, shape.cols)));
                let y = &mut y[r * shape.stride..][..shape.cols];
                let step = if is_in_place { COPIED } else { shape.cols.max(1) };
                for (i, y) in y.chunks_mut(step).enumerate() {
                    let copy = &mut copy[..if is_in_place { y.len() } else { 0 }];
                    if is_in_place {
                        copy.copy_from_slice(y);
                    }
                    let copy = Run::Slice(&*copy);
                    formula(row.map(|x| x.map_or(copy, |x| part(x, i * step, y.len()))), y);
                }
            }
        })
    }

    /// Runs an integer formula on the bits of `I32` or `U32`, which go through one instance of [`Task::run`].
    fn words(mut self, formula: Formula<'_, u32, N>) -> Result<CpuTensor> {
        self.wrap_scalars();
        self.integers::<u32>(formula)
    }

    /// Runs an integer formula on the bits of `U64`.
    fn long_words(mut self, formula: Formula<'_, i64, N>) -> Result<CpuTensor> {
        self.wrap_scalars();
        self.integers::<i64>(formula)
    }

    /// Converts the numbers among the operands to integers of the dtype.
    fn wrap_scalars(&mut self) {
        for x in self.operands.iter_mut() {
            if let Arg::Scalar(value) = x {
                *x = Arg::Scalar(value.rounded(self.dtype));
            }
        }
    }

    /// Runs an integer formula on `I32` or `U32`, in pieces that are converted to `i64` and back.
    fn wide_integers(mut self, formula: Formula<'_, i64, N>) -> Result<CpuTensor> {
        self.wrap_scalars();
        let is_signed = self.dtype == DType::I32;
        let widen = |x: &[u32], y: &mut [i64]| match is_signed {
            true => kernels::convert(cast_slice::<u32, i32>(x), y),
            false => kernels::convert(x, y),
        };
        self.run::<u32>(cost::<i64>(true), &|x, shape, y| {
            let (mut wide, mut result) = ([[0; COPIED]; N], [0; COPIED]);
            for r in 0..shape.rows {
                let row = x.map(|x| x.map(|x| x.row(r, shape.cols)));
                let y = &mut y[r * shape.stride..][..shape.cols];
                for (i, y) in y.chunks_mut(COPIED).enumerate() {
                    let mut pieces = [Run::Scalar(0); N];
                    for ((piece, wide), row) in pieces.iter_mut().zip(&mut wide).zip(row) {
                        let run = row.map_or(Run::Slice(&*y), |x| part(x, i * COPIED, y.len()));
                        *piece = match run {
                            Run::Slice(x) => {
                                widen(x, &mut wide[..x.len()]);
                                Run::Slice(&wide[..x.len()])
                            }
                            Run::Scalar(x) => {
                                widen(&[x], &mut wide[..1]);
                                Run::Scalar(wide[0])
                            }
                        };
                    }
                    formula(pieces, &mut result[..y.len()]);
                    kernels::convert(&result[..y.len()], y);
                }
            }
        })
    }

    /// Calls `f` on blocks of rows of the result, which threads share.
    fn run<T: Element<Stored = T> + Pod>(self, cost: Cost, f: Rows<'_, T, N>) -> Result<CpuTensor> {
        let Task { op, operands, dtype } = self;
        let reused =
            operands.iter_mut().enumerate().find_map(|(k, x)| Some((k, Output::reuse(x)?)));
        let (in_place, mut out) = match reused {
            Some(reused) => reused,
            None => {
                let shape = common(op, &operands.each_ref())?.0;
                (N, Output::new(op, shape, dtype)?)
            }
        };
        let is_in_place = in_place < N;
        let inputs = Inputs::<T, N>::new::<T>(operands.each_ref());
        if let Some(runs) = inputs.runs() {
            let chunk = |first: usize, y: &mut Place<T>| {
                let parts = runs.map(|run| part(run, first * CHUNK, y.len()));
                let rows = from_fn(|k| (k != in_place).then(|| parts[k].as_row()));
                f(rows, Block::row(y.len()), y);
            };
            if is_in_place {
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
            f(from_fn(|k| (k != in_place).then(|| rows[k])), shape, y);
        };
        match is_in_place {
            true => walk.run_in_place(out.parts(op), cost, &piece),
            false => walk.run(out.parts(op), cost, &piece),
        }
        Ok(out.finish())
    }
}

fn by_kernel<T: Stored, const N: usize>(
    kernel: &'static Kernel<N>,
) -> impl Fn([Option<BlockArg<T>>; N], Block, &mut Place<T>) + Sync {
    move |x, shape, y| kernel.run_block_in_place(x, shape, y)
}

/// `run[start..start + len]`; a number is returned unchanged.
pub(super) fn part<T: Copy>(run: Run<'_, T>, start: usize, len: usize) -> Run<'_, T> {
    match run {
        Run::Slice(x) => Run::Slice(&x[start..start + len]),
        scalar => scalar,
    }
}

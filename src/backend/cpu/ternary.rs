//! Element-wise functions of three tensors: as those of two in `elementwise.rs`, with one loop for every
//! mix of tensors, numbers, and an operand that gives its memory to the result.

use bytemuck::Pod;
use half::{bf16, f16};
use swath_kernels::{Arg as Run, Block, BlockArg, Place, Ternary, math};

use super::cast::Half;
use super::elementwise::{Input, cost, flat};
use super::parallel;
use super::pieces::{CHUNK, for_each_row, part, widened};
use super::table::BlockInPlace;
use super::walk::{Fetch, Walk, write_chunks};
use super::{CpuTensor, Output};
use crate::backend::{Arg, TensorData};
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Error, Result};
use crate::ops::{TernaryOp, ternary_ops};
use crate::shape::Shape;

type Slices3<E> = fn(Run<E>, Run<E>, Run<E>, &mut Place<'_, E>);
type Blocks3<E> = fn(BlockArg<E>, BlockArg<E>, BlockArg<E>, Block, &mut Place<'_, E>);

/// A function of three slices. Arguments that are `None` are what the result holds.
#[derive(Clone, Copy)]
struct Kernel3<E> {
    run: Slices3<E>,
    in_place: fn([Option<Run<E>>; 3], &mut [E]),
    block: Blocks3<E>,
    block_in_place: BlockInPlace<E, 3>,
}

impl<E: Copy> Kernel3<E> {
    fn of<K: Ternary<E>>() -> Self {
        Kernel3 {
            run: |a, b, c, y| K::run(a, b, c, y),
            in_place: K::run_in_place,
            block: |a, b, c, shape, y| K::run_block(a, b, c, shape, y),
            block_in_place: K::run_block_in_place,
        }
    }
}

/// A function of three operands on pieces of its result, which holds the operand that is missing.
trait Function3<T: Copy>: Sync {
    /// On rows.
    fn block(&self, operands: [Option<BlockArg<T>>; 3], shape: Block, y: &mut Place<T>);

    /// On adjacent elements.
    fn run(&self, operands: [Option<Run<T>>; 3], y: &mut Place<T>) {
        let rows = operands.each_ref().map(|x| x.as_ref().map(Run::as_row));
        self.block(rows, Block::row(y.len()), y);
    }
}

impl<T: Copy, F: Fn([Option<BlockArg<T>>; 3], Block, &mut Place<T>) + Sync> Function3<T> for F {
    fn block(&self, operands: [Option<BlockArg<T>>; 3], shape: Block, y: &mut Place<T>) {
        self(operands, shape, y);
    }
}

impl<T: Copy> Function3<T> for Kernel3<T> {
    fn block(&self, operands: [Option<BlockArg<T>>; 3], shape: Block, y: &mut Place<T>) {
        match operands {
            [Some(a), Some(b), Some(c)] => (self.block)(a, b, c, shape, y),
            operands => (self.block_in_place)(operands, shape, y),
        }
    }

    fn run(&self, operands: [Option<Run<T>>; 3], y: &mut Place<T>) {
        match operands {
            [Some(a), Some(b), Some(c)] => (self.run)(a, b, c, y),
            operands => (self.in_place)(operands, y),
        }
    }
}

macro_rules! ternary_kernels {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        $($rest:tt)*
    })*) => {
        fn ternary_kernel<E: Copy>(op: TernaryOp) -> Kernel3<E>
        where
            $(math::$Variant: Ternary<E>,)*
        {
            match op {
                $(TernaryOp::$Variant => Kernel3::of::<math::$Variant>(),)*
            }
        }
    };
}
ternary_ops!(ternary_kernels);

pub(super) fn ternary(op: TernaryOp, operands: [Arg<'_, CpuTensor>; 3]) -> Result<CpuTensor> {
    let (shape, dtype) = common(op.name(), &operands)?;
    match dtype {
        DType::F32 => apply3(op, operands, shape, &ternary_kernel::<f32>(op)),
        DType::F64 => apply3(op, operands, shape, &ternary_kernel::<f64>(op)),
        DType::F16 => ternary_half::<f16>(op, operands, shape),
        DType::BF16 => ternary_half::<bf16>(op, operands, shape),
        _ => Err(Error::UnsupportedDType { op: op.name(), dtype, shape }),
    }
}

/// Shape and dtype of the operands, of which at least one is a tensor.
fn common(op: &'static str, operands: &[Arg<'_, CpuTensor>; 3]) -> Result<(Shape, DType)> {
    let mut tensors = operands.iter().filter_map(Arg::tensor);
    let Some(first) = tensors.next() else {
        let reason = "at most two operands can be scalars".to_owned();
        return Err(Error::InvalidArgument { op, reason });
    };
    let (shape, dtype) = (*first.shape(), first.dtype());
    for x in tensors {
        if x.dtype() != dtype {
            return Err(Error::DTypeMismatch { op, lhs: dtype, rhs: x.dtype(), shape });
        }
        if *x.shape() != shape {
            return Err(Error::ShapeMismatch { op, lhs: shape, rhs: *x.shape() });
        }
    }
    Ok((shape, dtype))
}

fn is_cheap(op: TernaryOp) -> bool {
    !matches!(op, TernaryOp::EluGrad)
}

/// The operands, but `None` for the one whose memory the result has.
fn present<A>(operands: [A; 3], place: Option<usize>) -> [Option<A>; 3] {
    let mut operands = operands.map(Some);
    if let Some(place) = place {
        operands[place] = None;
    }
    operands
}

fn apply3<T: Element<Stored = T> + Pod>(
    op: TernaryOp,
    operands: [Arg<'_, CpuTensor>; 3],
    shape: Shape,
    f: &impl Function3<T>,
) -> Result<CpuTensor> {
    let (name, cost) = (op.name(), cost::<T>(is_cheap(op)));
    let mut reused = None;
    let mut place = None;
    let mut index = 0;
    let operands = operands.map(|x| {
        let i = index;
        index += 1;
        if reused.is_some() {
            return x;
        }
        match Output::reuse(x) {
            Ok(out) => {
                (reused, place) = (Some(out), Some(i));
                // What stands for the operand is not looked at.
                Arg::Scalar(Scalar::Int(0))
            }
            Err(x) => x,
        }
    });
    let mut out = match reused {
        Some(out) => out,
        None => Output::new(name, &shape, T::DTYPE)?,
    };
    if let [Some(a), Some(b), Some(c)] = operands.each_ref().map(flat::<T>) {
        let run = |first: usize, y: &mut Place<T>| {
            let runs = [a, b, c].map(|run| part(run, first * CHUNK, y.len()));
            f.run(present(runs, place), y);
        };
        match place {
            None => write_chunks(out.elements(), CHUNK, cost, &run),
            Some(_) => parallel::for_each_chunk_mut(out.elements(), CHUNK, cost, &|first, y| {
                run(first, &mut Place::cached(y));
            }),
        }
        return Ok(out.finish());
    }
    let [a, b, c] = &operands;
    let a = Input::new::<T>(name, a, &shape)?;
    let b = Input::new::<T>(name, b, &shape)?;
    let c = Input::new::<T>(name, c, &shape)?;
    let walk = Walk::new(&[&a.layout, &b.layout, &c.layout]);
    let (a, b, c) = (a.operand(&walk, 0), b.operand(&walk, 1), c.operand(&walk, 2));
    let piece = |fetch: &mut Fetch<'_>, y: &mut Place<T>| {
        let shape = fetch.shape();
        let (a, b, c) = fetch.three(&a, &b, &c);
        f.block(present([a, b, c], place), shape, y);
    };
    match place {
        None => walk.run(out.elements(), cost, &piece),
        Some(_) => walk.change(out.elements(), cost, &piece),
    }
    Ok(out.finish())
}

fn ternary_half<T: Half>(
    op: TernaryOp,
    operands: [Arg<'_, CpuTensor>; 3],
    shape: Shape,
) -> Result<CpuTensor> {
    let kernel = ternary_kernel::<f32>(op);
    let f = |operands: [Option<BlockArg<T>>; 3], shape: Block, y: &mut Place<T>| {
        let (mut wide, mut y_wide) = ([[0f32; CHUNK]; 3], [0f32; CHUNK]);
        for_each_row(shape, y, |r, y| {
            let operands = operands.map(|x| x.map(|x| x.row(r, shape.cols)));
            for (i, y) in y.chunks_mut(CHUNK).enumerate() {
                let (start, len) = (i * CHUNK, y.len());
                let [wide_a, wide_b, wide_c] = &mut wide;
                let held: &[T] = y;
                let run = |operand: Option<Run<'_, T>>, wide| match operand {
                    Some(run) => widened(part(run, start, len), wide),
                    None => widened(Run::Slice(held), wide),
                };
                let [a, b, c] = operands;
                let (a, b, c) = (run(a, wide_a), run(b, wide_b), run(c, wide_c));
                let y_wide = &mut y_wide[..len];
                (kernel.run)(a, b, c, &mut Place::cached(y_wide));
                T::narrow(y_wide, y);
            }
        });
    };
    apply3(op, operands, shape, &f)
}

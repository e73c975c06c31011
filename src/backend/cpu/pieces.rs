//! Functions of one and two operands on the pieces that a walk makes of their result: rows of a block, or
//! adjacent elements, which are a block of one row.

use bytemuck::Pod;
use swath_kernels::{Arg as Run, Block, BlockArg, Place};

use super::cast::Half;
use super::table::{Kernel1, Kernel2};

/// Elements converted, or copied out of the way of their result, at a time: three `f32` arrays of
/// them stay in the first-level cache.
pub(super) const CHUNK: usize = 1024;

/// Calls `f` with every row of a block of the result and its number.
pub(super) fn for_each_row<T>(shape: Block, y: &mut [T], mut f: impl FnMut(usize, &mut [T])) {
    for r in 0..shape.rows {
        f(r, &mut y[r * shape.stride..][..shape.cols]);
    }
}

/// A function of one operand on pieces of its result, which holds the operand where that is missing.
pub(super) trait Function1<T: Copy>: Sync {
    /// On rows.
    fn block(&self, x: Option<BlockArg<T>>, shape: Block, y: &mut Place<T>);

    /// On adjacent elements.
    fn run(&self, x: Option<&[T]>, y: &mut Place<T>) {
        let x = x.map(Run::Slice);
        self.block(x.as_ref().map(Run::as_row), Block::row(y.len()), y);
    }
}

impl<T: Copy, F: Fn(Option<BlockArg<T>>, Block, &mut Place<T>) + Sync> Function1<T> for F {
    fn block(&self, x: Option<BlockArg<T>>, shape: Block, y: &mut Place<T>) {
        self(x, shape, y);
    }
}

impl<T: Copy> Function1<T> for Kernel1<T> {
    fn block(&self, x: Option<BlockArg<T>>, shape: Block, y: &mut Place<T>) {
        match x {
            Some(x) => (self.block)(x, shape, y),
            None => for_each_row(shape, y, |_, y| (self.in_place)(y)),
        }
    }

    fn run(&self, x: Option<&[T]>, y: &mut Place<T>) {
        match x {
            Some(x) => (self.run)(x, y),
            None => (self.in_place)(y),
        }
    }
}

/// The operands of a piece of a binary op's result: where one is missing, the result holds it.
#[derive(Clone, Copy)]
pub(super) enum Pair<A> {
    Both(A, A),
    Right(A),
    Left(A),
}

impl<A> Pair<A> {
    fn as_ref(&self) -> Pair<&A> {
        match self {
            Pair::Both(a, b) => Pair::Both(a, b),
            Pair::Right(b) => Pair::Right(b),
            Pair::Left(a) => Pair::Left(a),
        }
    }

    fn map<B>(self, f: impl Fn(A) -> B) -> Pair<B> {
        match self {
            Pair::Both(a, b) => Pair::Both(f(a), f(b)),
            Pair::Right(b) => Pair::Right(f(b)),
            Pair::Left(a) => Pair::Left(f(a)),
        }
    }
}

/// A function of two operands on pieces of its result.
pub(super) trait Function2<T: Copy>: Sync {
    /// On rows.
    fn block(&self, operands: Pair<BlockArg<T>>, shape: Block, y: &mut Place<T>);

    /// On adjacent elements.
    fn run(&self, operands: Pair<Run<T>>, y: &mut Place<T>) {
        self.block(operands.as_ref().map(Run::as_row), Block::row(y.len()), y);
    }
}

impl<T: Copy, F: Fn(Pair<BlockArg<T>>, Block, &mut Place<T>) + Sync> Function2<T> for F {
    fn block(&self, operands: Pair<BlockArg<T>>, shape: Block, y: &mut Place<T>) {
        self(operands, shape, y);
    }
}

impl<T: Copy> Function2<T> for Kernel2<T> {
    fn run(&self, operands: Pair<Run<T>>, y: &mut Place<T>) {
        match operands {
            Pair::Both(a, b) => (self.run)(a, b, y),
            Pair::Right(b) => (self.left)(y, b),
            Pair::Left(a) => (self.right)(a, y),
        }
    }

    fn block(&self, operands: Pair<BlockArg<T>>, shape: Block, y: &mut Place<T>) {
        match operands {
            Pair::Both(a, b) => (self.block)(a, b, shape, y),
            Pair::Right(b) => (self.block_in_place)([None, Some(b)], shape, y),
            Pair::Left(a) => (self.block_in_place)([Some(a), None], shape, y),
        }
    }
}

/// `run[start..start + len]`; a scalar stays one.
pub(super) fn part<T: Copy>(run: Run<'_, T>, start: usize, len: usize) -> Run<'_, T> {
    match run {
        Run::Slice(x) => Run::Slice(&x[start..start + len]),
        scalar => scalar,
    }
}

/// Runs `f` on pieces of at most [`CHUNK`] elements, the operand copied out of the result's way.
pub(super) fn in_chunks1<T: Pod>(
    x: Option<BlockArg<T>>,
    shape: Block,
    y: &mut [T],
    mut f: impl FnMut(&[T], &mut [T]),
) {
    let mut copy = [T::zeroed(); CHUNK];
    for_each_row(shape, y, |r, y| match x.map(|x| x.row(r, shape.cols)) {
        Some(Run::Slice(x)) => {
            x.chunks(CHUNK).zip(y.chunks_mut(CHUNK)).for_each(|(x, y)| f(x, y));
        }
        Some(Run::Scalar(x)) => {
            let mut value = [x];
            f(&[x], &mut value);
            y.fill(value[0]);
        }
        None => {
            for y in y.chunks_mut(CHUNK) {
                let copy = &mut copy[..y.len()];
                copy.copy_from_slice(y);
                f(copy, y);
            }
        }
    });
}

/// As [`in_chunks1`].
pub(super) fn in_chunks2<T: Pod>(
    operands: Pair<BlockArg<T>>,
    shape: Block,
    y: &mut [T],
    mut f: impl FnMut(Run<T>, Run<T>, &mut [T]),
) {
    let mut copy = [T::zeroed(); CHUNK];
    for_each_row(shape, y, |r, y| {
        let operands = operands.map(|x| x.row(r, shape.cols));
        for (i, y) in y.chunks_mut(CHUNK).enumerate() {
            let (start, len) = (i * CHUNK, y.len());
            match operands {
                Pair::Both(a, b) => f(part(a, start, len), part(b, start, len), y),
                Pair::Right(b) => {
                    copy[..len].copy_from_slice(y);
                    f(Run::Slice(&copy[..len]), part(b, start, len), y);
                }
                Pair::Left(a) => {
                    copy[..len].copy_from_slice(y);
                    f(part(a, start, len), Run::Slice(&copy[..len]), y);
                }
            }
        }
    });
}

/// A run of at most [`CHUNK`] elements in `f32`.
pub(super) fn widened<'w, T: Half>(x: Run<T>, scratch: &'w mut [f32; CHUNK]) -> Run<'w, f32> {
    match x {
        Run::Scalar(x) => Run::Scalar(x.to_f64() as f32),
        Run::Slice(x) => {
            T::widen(x, &mut scratch[..x.len()]);
            Run::Slice(&scratch[..x.len()])
        }
    }
}

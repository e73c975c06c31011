//! Arguments and result of element-wise functions, and the loops over them.
//!
//! ```text
//! for each row: ask for the lines of the row some rows ahead
//!     tell arguments in memory from values, and run the kernel's loop
//! ```

use core::marker::PhantomData;

use super::{lengths_differ, lie_alike, load_up_to};
use crate::copy::{Fence, LINE, streaming};
use crate::dispatch::ElementTask;
use crate::output::Output;
use crate::simd::{Float, Lanes, MAX_LANES, Token};
use crate::{Arg, Block, BlockArg};

/// Where an argument's elements come from; strides lead from a row to the next.
#[derive(Clone, Copy)]
pub(super) enum Source<E> {
    Memory(*const E, isize),
    Value(E),
    /// A value a row.
    Column(*const E, isize),
}

/// Inputs and output of a kernel of `N` arguments: `rows` rows of `len` elements each, apart or the
/// same memory.
pub(crate) struct Operands<'a, E, const N: usize> {
    sources: [Source<E>; N],
    y: *mut E,
    rows: usize,
    len: usize,
    /// From a row of `y` to the next.
    stride: usize,
    streams: bool,
    _fence: Option<Fence>,
    borrow: PhantomData<&'a mut E>,
}

impl<'a, E: Float, const N: usize> Operands<'a, E, N> {
    #[inline]
    #[track_caller]
    pub fn new<O: Output<E> + ?Sized>(
        name: &str,
        arguments: [Arg<'a, E>; N],
        y: &'a mut O,
    ) -> Self {
        let (streams, _fence) = streaming(y);
        let (y, len) = y.as_raw();
        let mut sources = [Source::Memory(y.cast_const(), 0); N];
        for (source, argument) in sources.iter_mut().zip(&arguments) {
            *source = Source::new(name, argument, len);
        }
        let (rows, stride) = (1, 0);
        Operands { sources, y, rows, len, stride, streams, _fence, borrow: PhantomData }
    }

    /// As [`Operands::new`]; an argument that is `None` is `y` itself.
    #[inline]
    #[track_caller]
    pub fn in_place(name: &str, arguments: [Option<Arg<'a, E>>; N], y: &'a mut [E]) -> Self {
        let (y, len) = (y.as_mut_ptr(), y.len());
        let mut sources = [Source::Memory(y.cast_const(), 0); N];
        for (source, argument) in sources.iter_mut().zip(&arguments) {
            if let Some(argument) = argument {
                *source = Source::new(name, argument, len);
            }
        }
        let (rows, stride, streams, _fence) = (1, 0, false, None);
        Operands { sources, y, rows, len, stride, streams, _fence, borrow: PhantomData }
    }

    #[inline]
    #[track_caller]
    pub fn of_block<O: Output<E> + ?Sized>(
        name: &str,
        arguments: [BlockArg<'a, E>; N],
        shape: Block,
        y: &'a mut O,
    ) -> Self {
        let (streams, _fence) = streaming(y);
        let (y, len) = y.as_raw();
        let shape = shape.checked(name, len);
        let mut sources = [Source::Memory(y.cast_const(), 0); N];
        for (source, argument) in sources.iter_mut().zip(&arguments) {
            *source = Source::of_block(name, argument, shape);
        }
        let Block { rows, cols: len, stride } = shape;
        Operands { sources, y, rows, len, stride, streams, _fence, borrow: PhantomData }
    }

    /// As [`Operands::of_block`]; an argument that is `None` is `y` itself.
    #[inline]
    #[track_caller]
    pub fn of_block_in_place(
        name: &str,
        arguments: [Option<BlockArg<'a, E>>; N],
        shape: Block,
        y: &'a mut [E],
    ) -> Self {
        let shape = shape.checked(name, y.len());
        let Block { rows, cols: len, stride } = shape;
        let y = y.as_mut_ptr();
        // No stride exceeds the slice, unless there is one row alone.
        let mut sources = [Source::Memory(y.cast_const(), stride as isize); N];
        for (source, argument) in sources.iter_mut().zip(&arguments) {
            if let Some(argument) = argument {
                *source = Source::of_block(name, argument, shape);
            }
        }
        let (streams, _fence) = (false, None);
        Operands { sources, y, rows, len, stride, streams, _fence, borrow: PhantomData }
    }

    /// Runs a kernel.
    #[inline(always)]
    pub(super) fn run<K: RowKernel<E, N>>(self) {
        E::enter(RunRows::<E, K, N>(&self, PhantomData));
    }
}

impl<E: Float> Source<E> {
    #[inline]
    #[track_caller]
    fn new(name: &str, arg: &Arg<E>, len: usize) -> Self {
        match arg {
            Arg::Slice(x) if x.len() != len => lengths_differ(name, x.len(), len),
            Arg::Slice(x) => Source::Memory(x.as_ptr(), 0),
            Arg::Scalar(x) => Source::Value(*x),
        }
    }

    #[inline]
    #[track_caller]
    fn of_block(name: &str, arg: &BlockArg<E>, shape: Block) -> Self {
        arg.check(name, shape);
        let BlockArg { data, start, stride, is_value } = *arg;
        // Inside the slice if there are rows; of all of it, since they may go backwards.
        let first = data.as_ptr().wrapping_add(start);
        if is_value { Source::Column(first, stride) } else { Source::Memory(first, stride) }
    }

    /// What a row takes its elements from, never a column; asks for the lines of one that follows.
    ///
    /// # Safety
    /// The row is there.
    #[inline(always)]
    pub unsafe fn row<S: Token>(&self, simd: S, row: Row) -> Self {
        let at = |stride: isize| row.r as isize * stride;
        // SAFETY: as the caller promised.
        unsafe {
            match *self {
                Source::Memory(from, stride) => {
                    prefetch_row(simd, from, stride, row);
                    Source::Memory(from.offset(at(stride)), stride)
                }
                Source::Column(from, stride) => Source::Value(from.offset(at(stride)).read()),
                Source::Value(x) => Source::Value(x),
            }
        }
    }
}

/// Rows by which lines are asked for ahead, and the longest rows, in bytes, for which they are.
/// `a.t() + b` of 4096², in rows of 512 bytes, over a triad, ahead by 0: 2.4, 1: 2.2, 4: 1.85, 8: 1.8.
const ROWS_AHEAD: usize = 8;
const LONGEST_AHEAD: usize = 1024;

/// A row of a block.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub r: usize,
    /// Rows of the block.
    pub rows: usize,
    /// Elements of a row.
    pub len: usize,
}

/// Asks for the lines of the row that is read [`ROWS_AHEAD`] rows after row `r` of a block, which
/// begins `stride` elements behind the one before, if it does not follow that at once: the hardware
/// fetches ahead along a row alone.
#[inline(always)]
pub(crate) fn prefetch_row<S: Token, T>(simd: S, first: *const T, stride: isize, row: Row) {
    if row.r + ROWS_AHEAD < row.rows && stride != 0 && stride != row.len as isize {
        prefetch_row_ahead(simd, first, stride, row);
    }
}

/// A function of its own, in no need of the level's features: what it takes from strides would be
/// computed for a single row too, a sixth of a call's instructions for 64 elements.
#[inline(never)]
fn prefetch_row_ahead<S: Token, T>(
    simd: S,
    first: *const T,
    stride: isize,
    Row { r, len, .. }: Row,
) {
    let bytes = len * size_of::<T>();
    if bytes <= LONGEST_AHEAD {
        let row = first.wrapping_offset((r + ROWS_AHEAD) as isize * stride).cast::<u8>();
        for at in (0..bytes).step_by(LINE) {
            simd.prefetch(row.wrapping_add(at));
        }
    }
}

/// How a row of a kernel of `N` arguments is run.
pub(super) trait RowKernel<E: Float, const N: usize> {
    /// The kernel, in whose module the compiled code is filed.
    type Home;
    /// Computes a row of `y`; in `values` there is room for a vector of each argument.
    ///
    /// # Safety
    /// Sources in memory have that row and `y` is valid for writes of one; what an argument reads is
    /// what is written or does not overlap it.
    unsafe fn row<S: Lanes<E>>(
        simd: S,
        sources: &[Source<E>; N],
        row: Row,
        values: &mut [[E; MAX_LANES]; N],
        y: *mut E,
        streams: bool,
    );
}

/// By reference: moving the operands through the trampoline would load them in pieces other than
/// they were stored in, which takes longer than adding 64 elements.
struct RunRows<'a, E, K, const N: usize>(&'a Operands<'a, E, N>, PhantomData<K>);

impl<E: Float, K: RowKernel<E, N>, const N: usize> ElementTask<E> for RunRows<'_, E, K, N> {
    type Home = K::Home;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let Operands { ref sources, y, rows, len, stride, streams, .. } = *self.0;
        let mut values = [[E::ZERO; MAX_LANES]; N];
        for r in 0..rows {
            let row = Row { r, rows, len };
            // SAFETY: inputs in memory and `y` are valid for `rows` rows of `len` elements, as the
            // operands' constructors made sure.
            unsafe { K::row(simd, sources, row, &mut values, y.add(r * stride), streams) };
        }
    }
}

/// An argument's vectors.
pub(super) trait Operand<E: Float, S: Lanes<E>>: Copy {
    /// The whole vector from element `i` on.
    ///
    /// # Safety
    /// The elements are there.
    unsafe fn vector(self, simd: S, i: usize) -> S::V;
    /// A vector or, if that is less, `count` elements from element `i` on.
    ///
    /// # Safety
    /// The elements are there.
    unsafe fn up_to(self, simd: S, i: usize, count: usize) -> S::V;
    /// Whether vectors are aligned where those at `y` are, or do not move.
    fn lies_like(self, y: *const E) -> bool;
}

/// The arguments of a kernel: as many operands as it has arguments.
pub(super) trait Arguments<E: Float, S: Lanes<E>, const N: usize>: Copy {
    /// As [`Operand::vector`] of each.
    ///
    /// # Safety
    /// The elements are there.
    unsafe fn vectors(self, simd: S, i: usize) -> [S::V; N];
    /// As [`Operand::up_to`] of each.
    ///
    /// # Safety
    /// The elements are there.
    unsafe fn up_to(self, simd: S, i: usize, count: usize) -> [S::V; N];
    /// As [`Operand::lies_like`], of all.
    fn lie_like(self, y: *const E) -> bool;
}

macro_rules! arguments {
    ($n:literal: $($A:ident $x:ident)*) => {
        impl<E: Float, S: Lanes<E>, $($A: Operand<E, S>),*> Arguments<E, S, $n> for ($($A,)*) {
            #[inline(always)]
            unsafe fn vectors(self, simd: S, i: usize) -> [S::V; $n] {
                let ($($x,)*) = self;
                // SAFETY: the elements are there, as the caller promised.
                unsafe { [$($x.vector(simd, i)),*] }
            }
            #[inline(always)]
            unsafe fn up_to(self, simd: S, i: usize, count: usize) -> [S::V; $n] {
                let ($($x,)*) = self;
                // SAFETY: the elements are there, as the caller promised.
                unsafe { [$($x.up_to(simd, i, count)),*] }
            }
            #[inline(always)]
            fn lie_like(self, y: *const E) -> bool {
                let ($($x,)*) = self;
                $($x.lies_like(y))&&*
            }
        }
    };
}
arguments!(2: A a B b);
arguments!(3: A a B b C c);

/// Elements in memory.
#[derive(Clone, Copy)]
pub(super) struct Elements<E>(pub *const E);

impl<E: Float, S: Lanes<E>> Operand<E, S> for Elements<E> {
    #[inline(always)]
    unsafe fn vector(self, simd: S, i: usize) -> S::V {
        // SAFETY: the elements are there, as the caller promised.
        unsafe { simd.load(self.0.add(i)) }
    }
    #[inline(always)]
    unsafe fn up_to(self, simd: S, i: usize, count: usize) -> S::V {
        // SAFETY: the elements are there, as the caller promised.
        unsafe { load_up_to(simd, self.0.add(i), count) }
    }
    #[inline(always)]
    fn lies_like(self, y: *const E) -> bool {
        lie_alike::<E, S>(self.0, y)
    }
}

/// A value in a register.
pub(super) struct Splat<E: Float, S: Lanes<E>>(S::V);

impl<E: Float, S: Lanes<E>> Splat<E, S> {
    #[inline(always)]
    pub fn new(simd: S, x: E) -> Self {
        Splat(simd.splat(x))
    }
}

impl<E: Float, S: Lanes<E>> Clone for Splat<E, S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<E: Float, S: Lanes<E>> Copy for Splat<E, S> {}

impl<E: Float, S: Lanes<E>> Operand<E, S> for Splat<E, S> {
    #[inline(always)]
    unsafe fn vector(self, _simd: S, _i: usize) -> S::V {
        self.0
    }
    #[inline(always)]
    unsafe fn up_to(self, _simd: S, _i: usize, _count: usize) -> S::V {
        self.0
    }
    #[inline(always)]
    fn lies_like(self, _y: *const E) -> bool {
        true
    }
}

/// An argument of either kind: a value is an array of it, read again and again.
#[derive(Clone, Copy)]
pub(super) struct Stepping<E> {
    from: *const E,
    step: usize,
}

impl<E: Float> Stepping<E> {
    #[inline(always)]
    pub fn new(source: Source<E>, values: &mut [E; MAX_LANES]) -> Self {
        match source {
            Source::Memory(from, _) => Stepping { from, step: 1 },
            Source::Value(x) => {
                values.fill(x);
                Stepping { from: values.as_ptr(), step: 0 }
            }
            Source::Column(..) => unreachable!("a row has no column"),
        }
    }
}

impl<E: Float, S: Lanes<E>> Operand<E, S> for Stepping<E> {
    #[inline(always)]
    unsafe fn vector(self, simd: S, i: usize) -> S::V {
        // SAFETY: the elements are there, as the caller promised; the array of a value holds the
        // longest vector.
        unsafe { simd.load(self.from.add(i * self.step)) }
    }
    #[inline(always)]
    unsafe fn up_to(self, simd: S, i: usize, count: usize) -> S::V {
        // SAFETY: as in `vector`.
        unsafe { load_up_to(simd, self.from.add(i * self.step), count) }
    }
    #[inline(always)]
    fn lies_like(self, y: *const E) -> bool {
        self.step == 0 || lie_alike::<E, S>(self.from, y)
    }
}

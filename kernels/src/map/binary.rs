//! The loop of two-argument kernels, and what their arguments may be.
//!
//! Short kernels have a loop for two slices and one for a value on either side, which stays in a
//! register. Long ones have one loop that reads a value as memory that it does not advance in: the
//! load is lost among their instructions, and their code would be there three times.

use core::marker::PhantomData;

use super::{Map2, lengths_differ, load_up_to, store, store_up_to, unroll, until_aligned};
use crate::copy::{Fence, LINE, streaming};
use crate::dispatch::ElementTask;
use crate::output::Output;
use crate::simd::{Float, Lanes, MAX_LANES};
use crate::{Arg, Block, BlockArg};

/// Where an argument's elements come from; strides lead from a row to the next.
#[derive(Clone, Copy)]
pub(super) enum Source<E> {
    Memory(*const E, isize),
    Value(E),
    /// A value a row.
    Column(*const E, isize),
}

/// Inputs and output of a two-argument kernel: `rows` rows of `len` elements each, apart or the same
/// memory.
pub(crate) struct Operands2<'a, E> {
    a: Source<E>,
    b: Source<E>,
    y: *mut E,
    rows: usize,
    len: usize,
    /// From a row of `y` to the next.
    stride: usize,
    streams: bool,
    _fence: Option<Fence>,
    borrow: PhantomData<&'a mut E>,
}

impl<'a, E: Float> Operands2<'a, E> {
    #[inline]
    #[track_caller]
    pub fn new<O: Output<E> + ?Sized>(
        name: &str,
        a: Arg<'a, E>,
        b: Arg<'a, E>,
        y: &'a mut O,
    ) -> Self {
        let (streams, _fence) = streaming(y);
        let (y, len) = y.as_raw();
        let (a, b) = (Source::new(name, a, len), Source::new(name, b, len));
        Operands2 { a, b, y, rows: 1, len, stride: 0, streams, _fence, borrow: PhantomData }
    }

    #[inline]
    #[track_caller]
    pub fn of_block<O: Output<E> + ?Sized>(
        name: &str,
        a: BlockArg<'a, E>,
        b: BlockArg<'a, E>,
        shape: Block,
        y: &'a mut O,
    ) -> Self {
        let (streams, _fence) = streaming(y);
        let (y, len) = y.as_raw();
        let shape = shape.checked(name, len);
        let (a, b) = (Source::of_block(name, a, shape), Source::of_block(name, b, shape));
        let Block { rows, cols: len, stride } = shape;
        Operands2 { a, b, y, rows, len, stride, streams, _fence, borrow: PhantomData }
    }

    #[track_caller]
    pub fn of_block_in_place(
        name: &str,
        arguments: [Option<BlockArg<'a, E>>; 2],
        shape: Block,
        y: &'a mut [E],
    ) -> Self {
        let shape = shape.checked(name, y.len());
        let y = y.as_mut_ptr();
        let [a, b] = arguments.map(|argument| match argument {
            Some(argument) => Source::of_block(name, argument, shape),
            // No stride exceeds the slice, unless there is one row alone.
            None => Source::Memory(y, shape.stride as isize),
        });
        let Block { rows, cols: len, stride } = shape;
        let streams = false;
        Operands2 { a, b, y, rows, len, stride, streams, _fence: None, borrow: PhantomData }
    }

    #[track_caller]
    pub fn in_place_left(name: &str, a: &'a mut [E], b: Arg<'a, E>) -> Self {
        let (y, len) = (a.as_mut_ptr(), a.len());
        let b = Source::new(name, b, len);
        Operands2::in_place(Source::Memory(y, 0), b, y, len)
    }

    #[track_caller]
    pub fn in_place_right(name: &str, a: Arg<'a, E>, b: &'a mut [E]) -> Self {
        let (y, len) = (b.as_mut_ptr(), b.len());
        let a = Source::new(name, a, len);
        Operands2::in_place(a, Source::Memory(y, 0), y, len)
    }

    fn in_place(a: Source<E>, b: Source<E>, y: *mut E, len: usize) -> Self {
        let (rows, stride, streams) = (1, 0, false);
        Operands2 { a, b, y, rows, len, stride, streams, _fence: None, borrow: PhantomData }
    }

    #[inline(always)]
    pub fn map<K: Map2<E>>(self) {
        E::enter(Run2::<E, K>(&self, PhantomData));
    }
}

impl<E: Float> Source<E> {
    #[inline]
    #[track_caller]
    pub fn new(name: &str, arg: Arg<E>, len: usize) -> Self {
        match arg {
            Arg::Slice(x) if x.len() != len => lengths_differ(name, x.len(), len),
            Arg::Slice(x) => Source::Memory(x.as_ptr(), 0),
            Arg::Scalar(x) => Source::Value(x),
        }
    }

    /// What row `r` takes its elements from: never a column.
    ///
    /// # Safety
    /// The row is there.
    #[inline(always)]
    unsafe fn row(self, r: usize) -> Self {
        let at = |stride: isize| r as isize * stride;
        // SAFETY: as the caller promised.
        unsafe {
            match self {
                Source::Memory(from, stride) => Source::Memory(from.offset(at(stride)), stride),
                Source::Column(from, stride) => Source::Value(from.offset(at(stride)).read()),
                Source::Value(x) => Source::Value(x),
            }
        }
    }

    /// Asks for the lines of a row, if it does not follow the one before: the hardware fetches ahead
    /// along a row alone.
    #[inline(always)]
    fn prefetch<S: Lanes<E>>(self, simd: S, r: usize, len: usize) {
        if let Source::Memory(from, stride) = self
            && stride != 0
            && stride != len as isize
        {
            let row = from.wrapping_offset(r as isize * stride).cast::<u8>();
            for at in (0..len * size_of::<E>()).step_by(LINE) {
                simd.prefetch(row.wrapping_add(at));
            }
        }
    }
}

/// Rows by which lines are asked for ahead, and the longest rows, in bytes, for which they are.
/// `a.t() + b` of 4096², in rows of 512 bytes, over a triad, ahead by 0: 2.4, 1: 2.2, 4: 1.85, 8: 1.8.
const ROWS_AHEAD: usize = 8;
const LONGEST_AHEAD: usize = 1024;

/// By reference: moving the operands through the trampoline would load them in pieces other than
/// they were stored in, which takes longer than adding 64 elements.
struct Run2<'a, E, K>(&'a Operands2<'a, E>, PhantomData<K>);

impl<E: Float, K: Map2<E>> ElementTask<E> for Run2<'_, E, K> {
    type Home = K;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let Operands2 { a, b, y, rows, len, stride, streams, .. } = *self.0;
        let mut values = [[E::ZERO; MAX_LANES]; 2];
        let is_ahead = rows > 1 && len * size_of::<E>() <= LONGEST_AHEAD;
        for r in 0..rows {
            if is_ahead && r + ROWS_AHEAD < rows {
                a.prefetch(simd, r + ROWS_AHEAD, len);
                b.prefetch(simd, r + ROWS_AHEAD, len);
            }
            // SAFETY: inputs in memory and `y` are valid for `rows` rows of `len` elements, as the
            // operands' constructors made sure; `y` holds the first argument once it has been written.
            unsafe {
                let y = y.add(r * stride);
                let (mut a, b) = (a.row(r), b.row(r));
                if const { K::UNROLL < 4 || S::LANES == 1 } {
                    let [for_a, for_b] = &mut values;
                    let (a, b) = (Stepping::new(a, for_a), Stepping::new(b, for_b));
                    run2::<E, S, K>(simd, a, b, y, len, streams);
                    continue;
                }
                if let (Source::Value(value), Source::Value(_)) = (a, b) {
                    for i in 0..len {
                        y.add(i).write(value);
                    }
                    a = Source::Memory(y, 0);
                }
                match (a, b) {
                    (Source::Memory(a, _), Source::Memory(b, _)) => {
                        run2::<E, S, K>(simd, Elements(a), Elements(b), y, len, streams);
                    }
                    (Source::Memory(a, _), Source::Value(b)) => {
                        run2::<E, S, K>(simd, Elements(a), Splat::new(simd, b), y, len, streams);
                    }
                    (Source::Value(a), Source::Memory(b, _)) => {
                        run2::<E, S, K>(simd, Splat::new(simd, a), Elements(b), y, len, streams);
                    }
                    _ => unreachable!("values of both were written to memory, a row has no column"),
                }
            }
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
}

#[derive(Clone, Copy)]
struct Elements<E>(*const E);

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
}

struct Splat<E: Float, S: Lanes<E>>(S::V);

impl<E: Float, S: Lanes<E>> Splat<E, S> {
    #[inline(always)]
    fn new(simd: S, x: E) -> Self {
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
}

/// The loop of a two-argument kernel.
///
/// # Safety
/// `a` and `b` have `len` elements, `y` is valid for writes of as many; an input in memory is `y`
/// itself or does not overlap it.
#[inline(always)]
unsafe fn run2<E: Float, S: Lanes<E>, K: Map2<E>>(
    simd: S,
    a: impl Operand<E, S>,
    b: impl Operand<E, S>,
    y: *mut E,
    len: usize,
    streams: bool,
) {
    let head = if streams { until_aligned::<E, S>(y, len) } else { 0 };
    // SAFETY: as the caller promised; from `head` on `y` is aligned if it is streamed.
    let done = unsafe {
        match const { unroll::<E, S>([K::UNROLL; 2]) } {
            4 => run2_whole::<E, S, K, 4>(simd, a, b, y, head, len, streams),
            2 => run2_whole::<E, S, K, 2>(simd, a, b, y, head, len, streams),
            _ => head,
        }
    };
    let mut i = if head > 0 { 0 } else { done };
    while i < len {
        let (count, next) = if i < head { (head, done) } else { (len - i, i + S::LANES) };
        // SAFETY: `count` elements are left from `i` on.
        unsafe {
            let result = K::apply(simd, a.up_to(simd, i, count), b.up_to(simd, i, count));
            store_up_to(simd, y.add(i), count, result);
        }
        i = next;
    }
}

/// Applies `K` to all runs of `N` whole vectors from `start` on; returns where they end.
///
/// # Safety
/// As for [`run2`]; if it is streamed, `y` is aligned to a vector at `start`.
#[inline(always)]
unsafe fn run2_whole<E: Float, S: Lanes<E>, K: Map2<E>, const N: usize>(
    simd: S,
    a: impl Operand<E, S>,
    b: impl Operand<E, S>,
    y: *mut E,
    start: usize,
    len: usize,
    streams: bool,
) -> usize {
    let mut i = start;
    while len - i >= N * S::LANES {
        let mut v = [(simd.splat(E::ZERO), simd.splat(E::ZERO)); N];
        for (k, v) in v.iter_mut().enumerate() {
            let at = i + k * S::LANES;
            // SAFETY: the run's N vectors end within `len`.
            *v = unsafe { (a.vector(simd, at), b.vector(simd, at)) };
        }
        for v in &mut v {
            v.0 = K::apply(simd, v.0, v.1);
        }
        for (k, v) in v.iter().enumerate() {
            // SAFETY: as for the loads; whole vectors after an aligned one are aligned.
            unsafe { store(simd, y.add(i + k * S::LANES), v.0, streams) };
        }
        i += N * S::LANES;
    }
    i
}

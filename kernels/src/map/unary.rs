//! One-argument functions, and the row of their kernels.
//!
//! A kernel with a short form for most numbers ([`Map1::usual`]) has a run go through that, and only a
//! run with another number in it a vector at a time through the kernel itself: one test a run, and
//! one copy of the long form. Of a value one element is computed.

use core::marker::PhantomData;

use super::operands::{Operands, Row, RowKernel, Source};
use super::{lie_alike, load_up_to, store, store_up_to, unroll, until_aligned};
use crate::output::Output;
use crate::simd::{Float, Lanes, MAX_LANES, Mask, Wide};
use crate::{Block, BlockArg};

/// A one-argument element-wise kernel on lanes.
pub trait Map1<E: Float> {
    /// Vectors in flight with 16 registers: 1, 2 or 4. Four hide the latency of short kernels; long ones have enough
    /// independent work in two, or in one, and would spill with more.
    const UNROLL: usize = 4;
    /// The same with 32 registers.
    const UNROLL_32: usize = Self::UNROLL;
    /// The kernel. `#[inline(always)]` in every implementation.
    fn apply<S: Lanes<E>>(simd: S, x: S::V) -> S::V;
    /// A short form, and the lanes in which it gives what the kernel gives; `None` without one.
    /// `#[inline(always)]` too.
    #[inline(always)]
    fn usual<S: Lanes<E>>(_simd: S, _x: S::V) -> Option<(S::V, S::M)> {
        None
    }
}

/// A one-argument element-wise function of slices of `E`.
///
/// ```
/// use swath_kernels::{Unary, math::Exp};
///
/// fn apply<F: Unary<f32>>(x: &[f32]) -> Vec<f32> {
///     let mut y = vec![0.0; x.len()];
///     F::run(x, &mut y);
///     y
/// }
/// assert_eq!(apply::<Exp>(&[0.0]), [1.0]);
/// ```
pub trait Unary<E> {
    /// The function's name.
    const NAME: &'static str;
    /// `y[i] = f(x[i])`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[track_caller]
    fn run<O: Output<E> + ?Sized>(x: &[E], y: &mut O);
    /// `x[i] = f(x[i])`.
    fn run_in_place(x: &mut [E]);
    /// `y[r · stride + c] = f(x[r, c])` for all rows and columns, and nothing between.
    ///
    /// ```
    /// use swath_kernels::{Block, BlockArg, Unary, math::Square};
    ///
    /// let mut y = [0.0; 5];
    /// let x = BlockArg { data: &[1.0f32, 2.0, 3.0, 4.0], start: 2, stride: -2, is_value: false };
    /// Square::run_block(x, Block { rows: 2, cols: 2, stride: 3 }, &mut y);
    /// assert_eq!(y, [9.0, 16.0, 0.0, 1.0, 4.0]);
    /// ```
    ///
    /// # Panics
    /// If a row of the argument or of the result exceeds its slice, or rows of the result overlap.
    #[track_caller]
    fn run_block<O: Output<E> + ?Sized>(x: BlockArg<E>, shape: Block, y: &mut O);
}

/// A kernel of one argument as one of `N`.
struct One<K>(PhantomData<K>);

impl<E: Float> Operands<'_, E, 1> {
    #[inline(always)]
    pub fn map<K: Map1<E>>(self) {
        self.run::<One<K>>();
    }
}

impl<E: Float, K: Map1<E>> RowKernel<E, 1> for One<K> {
    type Home = K;

    #[inline(always)]
    unsafe fn row<S: Lanes<E>>(
        simd: S,
        [x]: &[Source<E>; 1],
        row: Row,
        [value]: &mut [[E; MAX_LANES]; 1],
        y: *mut E,
        streams: bool,
    ) {
        let len = row.len;
        // SAFETY: as the caller promised.
        let (x, count) = match unsafe { x.row(simd, row) } {
            Source::Memory(x, _) => (x, len),
            Source::Value(x) => {
                value[0] = x;
                (value.as_ptr(), len.min(1))
            }
            Source::Column(..) => unreachable!("a row has no column"),
        };
        // SAFETY: as the caller promised; of a value the first element is written, then read.
        unsafe {
            run1::<E, S, K>(simd, x, y, count, streams);
            for i in count..len {
                y.add(i).write(y.read());
            }
        }
    }
}

/// The loop of a one-argument kernel.
///
/// # Safety
/// `x` is valid for reads and `y` for writes of `len` elements; they are equal or don't overlap.
#[inline(always)]
unsafe fn run1<E: Float, S: Lanes<E>, K: Map1<E>>(
    simd: S,
    x: *const E,
    y: *mut E,
    len: usize,
    streams: bool,
) {
    let in_flight = const { unroll::<E, S>([K::UNROLL, K::UNROLL_32]) };
    let mut i = 0;
    // What goes a vector at a time, up to here.
    let mut single = until_aligned::<E, S>(y, len, streams, || lie_alike::<E, S>(x, y));
    loop {
        while i < single {
            let count = (single - i).min(S::LANES);
            // SAFETY: `x` and `y` are valid for `len` elements, and `single` is at most `len`.
            unsafe {
                let v = load_up_to(simd, x.add(i), count);
                store_up_to(simd, y.add(i), count, K::apply(simd, v));
            }
            i += count;
        }
        if i == len {
            return;
        }
        // SAFETY: as above. Whole vectors were done since `y` was aligned, if it is streamed.
        i = unsafe {
            match in_flight {
                4 => run1_whole::<E, _, K>(Wide(Wide(simd)), x, y, i, len, streams),
                2 => run1_whole::<E, _, K>(Wide(simd), x, y, i, len, streams),
                _ => i,
            }
        };
        single = if in_flight == 1 { len } else { len.min(i + in_flight * S::LANES) };
    }
}

/// Applies `K` to whole vectors from `start` on, up to one for which its short form does not hold;
/// returns where that begins.
///
/// # Safety
/// As for [`run1`]. If it is streamed, `y` is aligned to a register at `start`.
#[inline(always)]
unsafe fn run1_whole<E: Float, S: Lanes<E>, K: Map1<E>>(
    simd: S,
    x: *const E,
    y: *mut E,
    start: usize,
    len: usize,
    streams: bool,
) -> usize {
    let mut i = start;
    while len - i >= S::LANES {
        // SAFETY: the vector ends within `len`; whole vectors are whole registers, and the first one
        // is aligned if it is streamed.
        unsafe {
            let v = simd.load(x.add(i));
            let result = match K::usual(simd, v) {
                Some((result, holds)) if holds.all() => result,
                Some(_) => break,
                None => K::apply(simd, v),
            };
            store(simd, y.add(i), result, streams);
        }
        i += S::LANES;
    }
    i
}

//! Element-wise operations that a program defines, in the vocabulary of the crate `pulp`.
//!
//! ```text
//! map_with, map_block_with      check slices against the result
//!   Blocks                      enters the level; for each row:
//!     run_row                   whole vectors in order; the rest of the row in a padded vector
//! ```

use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use pulp::Simd;

use super::driver::STREAMED;
use super::kernel::lengths_differ;
use super::{Arg, Block, BlockArg};
use crate::copy::{LINE, has_streaming_stores, stream, streaming};
use crate::dispatch::run;
use crate::output::Place;
use crate::simd::{self, Float, MAX_LANES, Task};

/// An element-wise operation of `N` arguments that a program defines, on vectors of [`pulp`], for
/// [`map_with`]. It is compiled for every instruction set and runs on the level of
/// [`isa`](crate::isa).
///
/// It is a trait of its own, and not `pulp::WithSimd`, because it has a method for each of the two element types, a name
/// for errors, and no loop: the vectors of a slice and its tail are handled by this crate.
///
/// Mark both methods, and functions on vectors that they call, `#[inline(always)]`: only then are
/// they compiled with the level's instructions.
///
/// # The same bits everywhere
///
/// The last elements of a row go through the same code in a padded vector, so an element's result
/// depends on its value alone, not on its position or the length of the slice, provided that the
/// operation treats every lane alike and does not move lanes (`rotate_right_f32s`, `reduce_sum_f32s`).
/// Nor does it depend on the instruction set if every function of `pulp` that it calls is exactly
/// specified, as arithmetic, `sqrt_f32s`, `mul_add_f32s`, comparisons, `select_f32s` and operations
/// on bits are. Not the same everywhere are `mul_add_e_f32s`, which rounds once or twice, and
/// `min_f32s` and `max_f32s` of NaN or of zeros of both signs. The same holds for `f64`.
///
/// ```
/// use swath_kernels::{SimdOp, map_with, pulp::Simd};
///
/// /// x³.
/// struct Cube;
///
/// impl SimdOp<1> for Cube {
///     const NAME: &'static str = "cube";
///     const IS_CHEAP: bool = true;
///
///     #[inline(always)]
///     fn f32s<S: Simd>(&self, simd: S, [x]: [S::f32s; 1]) -> S::f32s {
///         simd.mul_f32s(simd.mul_f32s(x, x), x)
///     }
///
///     #[inline(always)]
///     fn f64s<S: Simd>(&self, simd: S, [x]: [S::f64s; 1]) -> S::f64s {
///         simd.mul_f64s(simd.mul_f64s(x, x), x)
///     }
/// }
///
/// let mut y = [0.0f32; 3];
/// map_with(&Cube, [(&[1.0, -2.0, 3.0][..]).into()], &mut y);
/// assert_eq!(y, [1.0, -8.0, 27.0]);
/// ```
pub trait SimdOp<const N: usize>: Sync {
    /// The name in messages.
    const NAME: &'static str;
    /// True if an element costs a few instructions, false if it costs a polynomial or more. The cost
    /// decides how work is shared among threads, never a result.
    const IS_CHEAP: bool = false;
    /// Computes the function of `f32`.
    fn f32s<S: Simd>(&self, simd: S, x: [S::f32s; N]) -> S::f32s;
    /// Computes the function of `f64`.
    fn f64s<S: Simd>(&self, simd: S, x: [S::f64s; N]) -> S::f64s;
}

impl<O: SimdOp<N>, const N: usize> SimdOp<N> for &O {
    const NAME: &'static str = O::NAME;
    const IS_CHEAP: bool = O::IS_CHEAP;
    #[inline(always)]
    fn f32s<S: Simd>(&self, simd: S, x: [S::f32s; N]) -> S::f32s {
        (**self).f32s(simd, x)
    }
    #[inline(always)]
    fn f64s<S: Simd>(&self, simd: S, x: [S::f64s; N]) -> S::f64s {
        (**self).f64s(simd, x)
    }
}

/// Element types of operations that programs define: `f32` and `f64`. Sealed.
pub trait SimdFloat: Float + Pod {
    /// The vectors of a level.
    #[doc(hidden)]
    type Vector<S: Simd>: Pod;
    /// Applies the operation to vectors.
    #[doc(hidden)]
    fn apply<S: Simd, O: SimdOp<N>, const N: usize>(
        op: &O,
        simd: S,
        x: [Self::Vector<S>; N],
    ) -> Self::Vector<S>;
}

macro_rules! floats {
    ($($float:ident $vectors:ident)*) => {$(
        impl SimdFloat for $float {
            type Vector<S: Simd> = S::$vectors;
            #[inline(always)]
            fn apply<S: Simd, O: SimdOp<N>, const N: usize>(
                op: &O,
                simd: S,
                x: [S::$vectors; N],
            ) -> S::$vectors {
                op.$vectors(simd, x)
            }
        }
    )*};
}
floats!(f32 f32s f64 f64s);

/// Writes `y[i] = op(x[0][i], …)`.
///
/// # Panics
/// If a slice's length is not that of `y`.
#[track_caller]
pub fn map_with<E: SimdFloat, O: SimdOp<N>, const N: usize>(op: &O, x: [Arg<E>; N], y: &mut [E]) {
    for x in &x {
        match x {
            Arg::Slice(x) if x.len() != y.len() => lengths_differ(O::NAME, x.len(), y.len()),
            _ => {}
        }
    }
    let shape = Block::row(y.len());
    map_block_with(op, x.each_ref().map(|x| Some(x.as_row())), shape, &mut Place::cached(y));
}

/// Writes `y[r · stride + c] = op(x[0][r, c], …)` for all rows and columns, and leaves the elements
/// between rows alone. An argument that is `None` stands for `y` itself.
///
/// ```
/// use swath_kernels::{Block, BlockArg, Place, SimdOp, map_block_with, pulp::Simd};
///
/// /// √(a² + b²), of arguments whose squares do not overflow.
/// struct Length;
///
/// impl SimdOp<2> for Length {
///     const NAME: &'static str = "length";
///
///     #[inline(always)]
///     fn f32s<S: Simd>(&self, simd: S, [a, b]: [S::f32s; 2]) -> S::f32s {
///         simd.sqrt_f32s(simd.mul_add_f32s(a, a, simd.mul_f32s(b, b)))
///     }
///
///     #[inline(always)]
///     fn f64s<S: Simd>(&self, simd: S, [a, b]: [S::f64s; 2]) -> S::f64s {
///         simd.sqrt_f64s(simd.mul_add_f64s(a, a, simd.mul_f64s(b, b)))
///     }
/// }
///
/// let mut y = [3.0f64, 6.0, 5.0, 8.0];
/// let column = BlockArg { data: &[4.0, 12.0], start: 0, stride: 1, is_value: true };
/// let shape = Block { rows: 2, cols: 1, stride: 2 };
/// map_block_with(&Length, [None, Some(column)], shape, &mut Place::cached(&mut y));
/// assert_eq!(y, [5.0, 6.0, 13.0, 8.0]);
/// ```
///
/// # Panics
/// If a row of an argument or of the result exceeds its slice, or if rows of the result overlap.
#[track_caller]
pub fn map_block_with<E: SimdFloat, O: SimdOp<N>, const N: usize>(
    op: &O,
    x: [Option<BlockArg<E>>; N],
    shape: Block,
    y: &mut Place<E>,
) {
    let shape = shape.checked(O::NAME, y.len());
    x.iter().flatten().for_each(|x| x.check(O::NAME, shape));
    let is_held = x.iter().any(Option::is_none);
    let (streams, _fence) = if is_held { (false, None) } else { streaming(y) };
    if !streams || !has_streaming_stores() {
        return run(Blocks { op, x, shape, y });
    }
    #[repr(align(64))]
    struct Buffer<E>([E; STREAMED]);
    let mut buffer = Buffer([E::ZERO; STREAMED]);
    for r in 0..shape.rows {
        let row = &mut y[r * shape.stride..][..shape.cols];
        let mut at = 0;
        while at < row.len() {
            let y = &mut row[at..];
            // The first chunk ends at the end of a cache line.
            let len = y.len().min(STREAMED - y.as_ptr().addr() % LINE / size_of::<E>());
            let x = x.map(|x| {
                x.map(|x| {
                    let column = if x.is_value { 0 } else { at };
                    let start = x.start.wrapping_add_signed(r as isize * x.stride) + column;
                    BlockArg { start, stride: 0, ..x }
                })
            });
            run(Blocks { op, x, shape: Block::row(len), y: &mut buffer.0[..len] });
            // SAFETY: both slices hold `len` elements, and the buffer is not a part of the result.
            unsafe { stream(buffer.0.as_ptr(), y.as_mut_ptr(), len) };
            at += len;
        }
    }
}

/// The task that applies an operation to checked arguments, row by row.
struct Blocks<'a, E, O, const N: usize> {
    op: &'a O,
    x: [Option<BlockArg<'a, E>>; N],
    shape: Block,
    y: &'a mut [E],
}

impl<E: SimdFloat, O: SimdOp<N>, const N: usize> Task for Blocks<'_, E, O, N> {
    type Home = O;
    type Output = ();

    #[inline(always)]
    fn run<S: simd::Simd>(self, simd: S) {
        let Blocks { op, x, shape, y } = self;
        for r in 0..shape.rows {
            let mut rows = [None; N];
            let mut k = 0;
            while k < N {
                if let Some(x) = &x[k] {
                    x.prefetch_ahead(r, shape);
                    let elements = x.elements(r, shape.cols);
                    rows[k] = Some(if x.is_value {
                        Arg::Scalar(elements[0])
                    } else {
                        Arg::Slice(elements)
                    });
                }
                k += 1;
            }
            run_row(op, simd.into_pulp(), rows, &mut y[r * shape.stride..][..shape.cols]);
        }
    }
}

/// An argument of a row as vectors.
#[derive(Clone, Copy)]
enum Vectors<'a, V> {
    Slice(&'a [V]),
    Value(V),
    /// The result's previous elements.
    Result,
}

/// Computes a row. Loops over arguments are `while` loops, because the calls of an iterator might
/// not be inlined here, with the level's instructions.
#[inline(always)]
fn run_row<E: SimdFloat, S: Simd, O: SimdOp<N>, const N: usize>(
    op: &O,
    simd: S,
    x: [Option<Arg<E>>; N],
    y: &mut [E],
) {
    let lanes = const {
        let lanes = size_of::<E::Vector<S>>() / size_of::<E>();
        assert!(lanes <= MAX_LANES && align_of::<E::Vector<S>>() <= align_of::<E>());
        lanes
    };
    let whole = y.len() - y.len() % lanes;
    let (y, rest) = y.split_at_mut(whole);
    let y: &mut [E::Vector<S>] = cast_slice_mut(y);
    let mut vectors = [Vectors::Result; N];
    let mut last = [E::Vector::<S>::zeroed(); N];
    let mut k = 0;
    while k < N {
        // The lanes beyond the row repeat an element of it.
        let (tail, filler) = match x[k] {
            Some(Arg::Scalar(value)) => (&[][..], value),
            Some(Arg::Slice(x)) => {
                vectors[k] = Vectors::Slice(cast_slice(&x[..whole]));
                (&x[whole..], E::ZERO)
            }
            None => (&*rest, E::ZERO),
        };
        let mut padded = [tail.first().copied().unwrap_or(filler); MAX_LANES];
        padded[..tail.len()].copy_from_slice(tail);
        last[k] = cast_slice(&padded[..lanes])[0];
        if let Some(Arg::Scalar(_)) = x[k] {
            vectors[k] = Vectors::Value(last[k]);
        }
        k += 1;
    }
    for i in 0..y.len() {
        let mut v = last;
        let mut k = 0;
        while k < N {
            v[k] = match vectors[k] {
                Vectors::Slice(x) => x[i],
                Vectors::Value(x) => x,
                Vectors::Result => y[i],
            };
            k += 1;
        }
        y[i] = E::apply(op, simd, v);
    }
    if !rest.is_empty() {
        let result = [E::apply(op, simd, last)];
        rest.copy_from_slice(&cast_slice::<E::Vector<S>, E>(&result)[..rest.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::{levels, with_isa};

    /// x² + √|y| where x < y, else (x + y) / y.
    struct Sample;

    impl SimdOp<2> for Sample {
        const NAME: &'static str = "sample";

        #[inline(always)]
        fn f32s<S: Simd>(&self, simd: S, [x, y]: [S::f32s; 2]) -> S::f32s {
            let sum = simd.mul_add_f32s(x, x, simd.sqrt_f32s(simd.abs_f32s(y)));
            let quotient = simd.div_f32s(simd.add_f32s(x, y), y);
            simd.select_f32s(simd.less_than_f32s(x, y), sum, quotient)
        }

        #[inline(always)]
        fn f64s<S: Simd>(&self, simd: S, [x, y]: [S::f64s; 2]) -> S::f64s {
            let sum = simd.mul_add_f64s(x, x, simd.sqrt_f64s(simd.abs_f64s(y)));
            let quotient = simd.div_f64s(simd.add_f64s(x, y), y);
            simd.select_f64s(simd.less_than_f64s(x, y), sum, quotient)
        }
    }

    macro_rules! same_on_every_level {
        ($($name:ident $float:ident)*) => {$(
            #[test]
            fn $name() {
                let number = |i: usize| (i as $float * 0.37).sin() * 5.0;
                let x: Vec<$float> = (0..67).map(number).collect();
                let y: Vec<$float> = (5..72).map(number).collect();
                let expected = |x: &$float, y: &$float| {
                    if x < y { x.mul_add(*x, y.abs().sqrt()) } else { (x + y) / y }
                };
                let all: Vec<$float> = x.iter().zip(&y).map(|(x, y)| expected(x, y)).collect();
                for isa in levels() {
                    for len in 0..x.len() {
                        let (x, y) = (Arg::Slice(&x[..len]), Arg::Slice(&y[..len]));
                        let mut out = vec![$float::NAN; len];
                        with_isa(isa, || map_with(&Sample, [x, y], &mut out));
                        assert_eq!(out, all[..len], "{isa}, {len} elements");
                    }
                    let mut block = y.clone();
                    let x = BlockArg { data: &x, start: 60, stride: -20, is_value: false };
                    let held = Block { rows: 3, cols: 5, stride: 7 };
                    with_isa(isa, || {
                        map_block_with(&Sample, [Some(x), None], held, &mut Place::cached(&mut block));
                    });
                    for (i, value) in block.into_iter().enumerate() {
                        let (r, c) = (i / 7, i % 7);
                        let is_inside = r < 3 && c < 5;
                        let x = if is_inside { x.data[60 - 20 * r + c] } else { 0.0 };
                        let wanted = if is_inside { expected(&x, &y[i]) } else { y[i] };
                        assert_eq!(value, wanted, "{isa}, element {i}");
                    }
                }
            }
        )*};
    }
    same_on_every_level! {
        operations_on_f32_are_the_same_on_every_level f32
        operations_on_f64_are_the_same_on_every_level f64
    }

    #[test]
    #[should_panic(expected = "sample: an input has 2 elements, the output 3")]
    fn slices_of_other_lengths_panic() {
        map_with(&Sample, [Arg::Slice(&[1.0f32; 2]), Arg::Scalar(1.0)], &mut [0.0; 3]);
    }
}

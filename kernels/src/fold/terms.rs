//! How lanes take elements: one unit type per reduction. Elements arrive widened to `f64`.

use core::ops::{Add, Mul};

use super::columns::FoldColumns;
use super::floats::Format;
use super::partial::{Finished, Moments, Partial, Product, SquareSum};
use super::{F64, fold_source};
use crate::dispatch::run;
use crate::simd::{IntVector, Lanes, Mask, Simd, Vector};

/// A reduction of elements into lanes, with `M` numbers per lane. Blocks merge through
/// [`Term::Acc`].
pub(crate) trait Term<const M: usize>: Copy + 'static {
    /// The accumulator of a block.
    type Acc: Finished;
    /// True if the first number of lanes is multiplied; all others are added.
    const PRODUCT: bool = false;
    /// True if elements are measured from the first one of their block.
    const SHIFTED: bool = false;
    /// True if terms combine the elements of two slices.
    const TWO: bool = false;

    /// Adds a vector of elements to their lanes; elements of one slice come as `[x, x]`.
    fn take<S: Simd>(simd: S, x: [F64<S>; 2], shift: F64<S>, lanes: [F64<S>; M]) -> [F64<S>; M];
    /// The accumulator of a block of `count` elements with these lanes.
    fn finish(shift: f64, count: usize, lanes: [f64; M]) -> Self::Acc;

    /// Folds slices. Not generic in any impl, like [`Term::columns`], so that kernels are compiled
    /// with this crate and not again in each crate that uses it.
    ///
    /// # Safety
    /// `x` and `y` are valid for reads of `len` elements of the format.
    unsafe fn fold(x: *const u8, y: *const u8, len: usize, format: Format) -> Self::Acc;
    /// Folds columns.
    fn columns(task: FoldColumns<Self, M>);
}

/// Implements the methods of [`Term`] that run it.
macro_rules! runs {
    ($m:literal) => {
        unsafe fn fold(x: *const u8, y: *const u8, len: usize, format: Format) -> Self::Acc {
            // SAFETY: the caller promises the same.
            unsafe { fold_source::<Self, $m>(x, y, len, format) }
        }
        fn columns(task: FoldColumns<Self, $m>) {
            // There is no reduction of the columns of two matrices.
            if !Self::TWO {
                run(task);
            }
        }
    };
}

/// Joins two lanes, or vectors of lanes.
#[inline(always)]
pub(super) fn join<V: Add<Output = V> + Mul<Output = V>>(a: V, b: V, product: bool) -> V {
    if product { a * b } else { a + b }
}

/// Terms with one number per lane.
macro_rules! terms {
    ($($(#[$doc:meta])* $name:ident $acc:ty
        $({ $($constant:ident)* })?, |$simd:ident, [$x:ident, $y:ident], $sum:ident| $take:expr,
        |$total:ident| $finish:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name;

        impl Term<1> for $name {
            type Acc = $acc;
            $($(const $constant: bool = true;)*)?
            #[inline(always)]
            fn take<S: Simd>(
                $simd: S,
                [$x, $y]: [F64<S>; 2],
                _: F64<S>,
                [$sum]: [F64<S>; 1],
            ) -> [F64<S>; 1] {
                [$take]
            }
            #[inline(always)]
            fn finish(_shift: f64, _count: usize, [$total]: [f64; 1]) -> $acc {
                $finish
            }
            runs!(1);
        }
    )*};
}
terms! {
    /// Σ x
    Sums f64, |_simd, [x, _y], sum| sum + x, |sum| sum;
    /// Σ |x|
    Magnitudes f64, |_simd, [x, _y], sum| sum + x.abs(), |sum| sum;
    /// The number of elements that are not 0; NaN is not 0.
    Nonzeros f64, |simd, [x, _y], sum| {
        let zero = Lanes::<f64>::splat(simd, 0.0);
        sum + zero.select(x.eq(zero), simd.splat(1.0))
    }, |sum| sum;
    /// Σ x y: products are exact in `f64` for narrower elements, and fused with the addition for
    /// `f64`.
    Products f64 { TWO }, |_simd, [x, y], sum| x.mul_add(y, sum), |sum| sum;
    /// Σ x² of elements whose squares neither overflow nor underflow in `f64`
    Squares SquareSum, |_simd, [x, _y], sum| x.mul_add(x, sum),
        |medium| SquareSum { medium, ..SquareSum::EMPTY };
}

/// Σ d and Σ d² of d = x − shift
#[derive(Clone, Copy)]
pub(crate) struct Distances;

impl Term<2> for Distances {
    type Acc = Moments;
    const SHIFTED: bool = true;
    #[inline(always)]
    fn take<S: Simd>(
        _: S,
        [x, _]: [F64<S>; 2],
        shift: F64<S>,
        [sum, squares]: [F64<S>; 2],
    ) -> [F64<S>; 2] {
        let d = x - shift;
        [sum + d, d.mul_add(d, squares)]
    }
    #[inline(always)]
    fn finish(shift: f64, count: usize, sums: [f64; 2]) -> Moments {
        Moments::about(shift, count as f64, sums)
    }
    runs!(2);
}

/// Σ x² of any elements; see [`SquareSum`]
#[derive(Clone, Copy)]
pub(crate) struct ScaledSquares;

impl Term<3> for ScaledSquares {
    type Acc = SquareSum;
    #[inline(always)]
    fn take<S: Simd>(
        simd: S,
        [x, _]: [F64<S>; 2],
        _: F64<S>,
        [large, medium, small]: [F64<S>; 3],
    ) -> [F64<S>; 3] {
        let splat = |x| Lanes::<f64>::splat(simd, x);
        let size = x.abs();
        let is_large = splat(SquareSum::LARGE).lt(size);
        let is_small = size.lt(splat(SquareSum::SMALL));
        let others = is_large | is_small;
        if !others.any() {
            return [large, x.mul_add(x, medium), small];
        }
        let zero = splat(0.0);
        let down = (x * splat(SquareSum::DOWN)).select(is_large, zero);
        let up = (x * splat(SquareSum::UP)).select(is_small, zero);
        let x = zero.select(others, x);
        [down.mul_add(down, large), x.mul_add(x, medium), up.mul_add(up, small)]
    }
    #[inline(always)]
    fn finish(_shift: f64, _count: usize, [large, medium, small]: [f64; 3]) -> SquareSum {
        SquareSum { large, medium, small }
    }
    runs!(3);
}

/// Π x, as a number near 1 and a power of two; see [`Product`]
#[derive(Clone, Copy)]
pub(crate) struct Factors;

impl Term<2> for Factors {
    type Acc = Product;
    const PRODUCT: bool = true;
    #[inline(always)]
    fn take<S: Simd>(
        simd: S,
        [x, _]: [F64<S>; 2],
        _: F64<S>,
        [product, exponent]: [F64<S>; 2],
    ) -> [F64<S>; 2] {
        let next = product * x;
        let size = next.abs();
        let [low, high] = Lanes::<f64>::splat_all(simd, [1.0 / Product::LANE, Product::LANE]);
        if !(size.lt(low) | high.lt(size)).any() {
            return [next, exponent];
        }
        let ([product, shift], [x, power]) = (parts(simd, product), parts(simd, x));
        [product * x, exponent + (shift + power)]
    }
    #[inline(always)]
    fn finish(_shift: f64, _count: usize, [number, exponent]: [f64; 2]) -> Product {
        Product { number, exponent }
    }
    runs!(2);
}

/// `x` as a number of a magnitude from √½ to √2 and a power of two; a number that is zero, infinite
/// or NaN as itself and 0.
#[inline(always)]
fn parts<S: Simd>(simd: S, x: F64<S>) -> [F64<S>; 2] {
    let [zero, tiny, infinity] =
        Lanes::<f64>::splat_all(simd, [0.0, f64::MIN_POSITIVE, f64::INFINITY]);
    // Subnormal numbers become normal ones.
    let is_tiny = x.abs().lt(tiny);
    let [up, down] = Lanes::<f64>::splat_all(simd, [Product::UP, -Product::UP_POWER]);
    let (scaled, start) = ((x * up).select(is_tiny, x), down.select(is_tiny, zero));
    let [offset, one] =
        [Product::OFFSET, 1023 << 52].map(|bits| Lanes::<f64>::splat_int(simd, bits));
    // The exponent, biased, as bits and as a number.
    let biased = (scaled.abs().to_bits() + offset).shr::<52>();
    let number = F64::<S>::from_bits(scaled.to_bits() - biased.shl::<52>() + one);
    let magic = simd.splat(Product::MAGIC);
    let power = F64::<S>::from_bits(biased | magic.to_bits()) - simd.splat(Product::MAGIC + 1023.0);
    let is_number = zero.lt(x.abs()) & x.abs().lt(infinity);
    [number.select(is_number, x), (power + start).select(is_number, zero)]
}

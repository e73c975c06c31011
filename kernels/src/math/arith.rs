//! Arithmetic that the hardware rounds correctly, and its cases of sign, zero and NaN.
//!
//! ```text
//! maximum(a, b):  a > b ? a : b, then
//!                 where a = b:   the bits a AND b   (differ only for zeros: +0 if either is +0)
//!                 where a is NaN: a                 (a NaN in b is the comparison's result)
//! minimum(a, b):  the mirror image, with OR: −0 if either is −0
//! ```

use crate::map::Map;
use crate::simd::{Float, Lanes, Vector};

/// `−x`.
///
/// Exact. Flips the sign of zeros and infinities; NaN gives NaN.
pub struct Neg;

/// `|x|`.
///
/// Exact. −0 gives +0, −∞ gives +∞; NaN gives NaN.
pub struct Abs;

/// −1, +1, or `x` itself if it is zero.
///
/// Exact. ±0 gives ±0; NaN gives NaN; subnormal numbers give ±1.
pub struct Sign;

/// `x²`.
///
/// Correctly rounded, subnormal results included; overflow gives +∞; NaN gives NaN.
pub struct Square;

/// `√x`.
///
/// Correctly rounded, also for subnormal `x`. −0 gives −0, +∞ gives +∞; negative numbers and NaN
/// give NaN.
pub struct Sqrt;

/// `1 / x`.
///
/// Correctly rounded (a division, not an estimate), subnormal results included. ±0 gives ±∞, ±∞
/// gives ±0; NaN gives NaN.
pub struct Recip;

/// `x` where positive, zero elsewhere.
///
/// Exact. NaN gives NaN; −0 stays −0 (it is not below zero).
pub struct Relu;

/// The gradient of [`Relu`]: `g` where `x > 0`, +0 elsewhere, also at zero; NaN where `x` is.
///
/// Exact.
pub struct ReluGrad;

/// `a + b`.
///
/// Correctly rounded, subnormal results included. ∞ − ∞ gives NaN; NaN in either gives NaN.
pub struct Add;

/// `a − b`.
///
/// Correctly rounded, subnormal results included. ∞ − ∞ gives NaN; NaN in either gives NaN.
pub struct Sub;

/// `a × b`.
///
/// Correctly rounded, subnormal results included. 0 × ∞ gives NaN; NaN in either gives NaN.
pub struct Mul;

/// `a / b`.
///
/// Correctly rounded, subnormal results included. 0 / 0 and ∞ / ∞ give NaN, x / ±0 an infinity; NaN
/// in either gives NaN.
pub struct Div;

/// The larger of the two.
///
/// Exact. NaN in either gives NaN; −0 is below +0.
pub struct Maximum;

/// The smaller of the two.
///
/// Exact. NaN in either gives NaN; −0 is below +0.
pub struct Minimum;

/// Implements `Map` for all element types, one expression per row.
macro_rules! arithmetic {
    ($($n:literal $name:ident($simd:ident, $($x:ident),+) $result:expr;)*) => {$(
        impl<E: Float> Map<E, $n> for $name {
            #[inline(always)]
            fn apply<S: Lanes<E>>($simd: S, [$($x),+]: [S::V; $n]) -> S::V {
                $result
            }
        }
    )*};
}

arithmetic! {
    1 Neg(_simd, x) -x;
    1 Abs(_simd, x) x.abs();
    1 Sign(simd, x) sign(simd, x);
    1 Square(_simd, x) x * x;
    1 Sqrt(_simd, x) x.sqrt();
    1 Recip(simd, x) simd.splat(E::ONE) / x;
    1 Relu(simd, x) simd.splat(E::ZERO).max_or_other(x);
    2 ReluGrad(simd, g, x) {
        let zero = simd.splat(E::ZERO);
        // Where no comparison holds, x is NaN.
        zero.select(x.le(zero), g.select(zero.lt(x), x))
    };
    2 Add(_simd, a, b) a + b;
    2 Sub(_simd, a, b) a - b;
    2 Mul(_simd, a, b) a * b;
    2 Div(_simd, a, b) a / b;
    2 Maximum(_simd, a, b) {
        let tied = S::V::from_bits(a.to_bits() & b.to_bits());
        a.select(a.is_nan(), tied.select(a.eq(b), a.max_or_other(b)))
    };
    2 Minimum(_simd, a, b) {
        let tied = S::V::from_bits(a.to_bits() | b.to_bits());
        a.select(a.is_nan(), tied.select(a.eq(b), a.min_or_other(b)))
    };
}

#[inline(always)]
fn sign<E: Float, S: Lanes<E>>(simd: S, x: S::V) -> S::V {
    let (zero, one) = (simd.splat(E::ZERO), simd.splat(E::ONE));
    one.select(zero.lt(x), (-one).select(x.lt(zero), x))
}

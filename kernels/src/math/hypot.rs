//! The length of a vector in the plane.
//!
//! ```text
//! a = max(|x|, |y|), b = min(|x|, |y|)          both divided by the power of two in a
//! a² + b² = high + low                          errors of both squares and of the sum kept
//! √(x² + y²) = 2^e √(high + low)
//! ```
//!
//! The sum is rounded once (which moves its root by a quarter ULP) and the root once. Scaling by a
//! power of two is exact, or drops bits below 2^-126 (2^-1022) of the sum.

use crate::map::Map;
use crate::simd::{Float, Lanes, Vector};

/// `√(a² + b²)`, without intermediate overflow or underflow.
///
/// * Largest error: 0.853 ULP, 0.895 where the result is subnormal (f32, 2^30 pairs); f64 within 1
///   float.
/// * An infinity gives +∞, even beside NaN; else NaN in either gives NaN; zeros give +0.
pub struct Hypot;

trait HypotConstants: Float {
    /// The powers of two whose inverses are normal too: the smallest, and one past the largest.
    const RANGE: [Self; 2];
    /// The power of two in a number of that range, and its inverse.
    fn scale<S: Lanes<Self>>(simd: S, a: S::V) -> [S::V; 2];
}

macro_rules! constants {
    ($t:ident, $mantissa:literal, $bias:literal) => {
        impl HypotConstants for $t {
            const RANGE: [$t; 2] = [$t::MIN_POSITIVE, $t::MAX / 4.0];
            #[inline(always)]
            fn scale<S: Lanes<$t>>(simd: S, a: S::V) -> [S::V; 2] {
                let exponent = a.to_bits() & simd.splat($t::INFINITY).to_bits();
                let inverse = simd.splat_int((2 * $bias) << $mantissa) - exponent;
                [S::V::from_bits(exponent), S::V::from_bits(inverse)]
            }
        }
    };
}
constants!(f32, 23, 127);
constants!(f64, 52, 1023);

impl<E: HypotConstants> Map<E, 2> for Hypot {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [a, b]: [S::V; 2]) -> S::V {
        let (x, y) = (a.abs(), b.abs());
        let [least, most] = simd.splat_all(E::RANGE);
        let (a, b) = (x.max_or_other(y), x.min_or_other(y));
        let [scale, inverse] = E::scale(simd, most.min_or_other(least.max_or_other(a)));
        let (a, b) = (a * inverse, b * inverse);
        let (a_square, b_square) = (a * a, b * b);
        let low = a.mul_add(a, -a_square) + b.mul_add(b, -b_square);
        let high = a_square + b_square;
        let low = low + ((a_square - high) + b_square);
        let root = (high + low).sqrt() * scale;

        let (sum, infinity) = (x + y, simd.splat(E::INFINITY));
        let root = sum.select(sum.is_nan(), root);
        infinity.select(x.eq(infinity) | y.eq(infinity), root)
    }
}

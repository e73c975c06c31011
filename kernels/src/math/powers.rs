//! Powers to fixed exponents as products, quotients and roots, within one float of the exact result.
//!
//! ```text
//! h + l = x²    e = 1 − r x for r = 1/x rounded     exact, by fused multiply-adds
//! x³  = h x + l x       x⁴ = h² + 2 h l      x^−2 = r² + 2 r² e
//! ```
//!
//! 1. *The second term is added in the last rounding*, so that one rounding counts, but for results that are so small
//!    that the second term is not exact; what is left out is below 2^-45 (f64: 2^-103) of the result.
//! 2. *Where x² or 1/x is 0, or so large that its square overflows,* the first term is the result: the second one may
//!    be infinite or NaN there.

use super::Rsqrt;
use crate::map::Map;
use crate::simd::{Float, Lanes, Vector};

/// `x³`, with the special cases of C's `pow`.
///
/// Largest error: 1.000 ULP, 0.750 where the result is subnormal (f32, all inputs); f64 within 1 float. ±0 and ±∞ give themselves; NaN gives NaN.
pub struct Pow3;

/// `x⁴`, with the special cases of C's `pow`.
///
/// Largest error: 1.000 ULP, 0.992 where the result is subnormal (f32, all inputs), and x² loses bits; f64 within 1
/// float. ±0 gives +0, ±∞ gives +∞; NaN gives NaN.
pub struct Pow4;

/// `x^−2`, with the special cases of C's `pow`.
///
/// Largest error: 1.000 ULP, 0.994 where the result is subnormal (f32, all inputs); f64 within 1 float. ±0 gives +∞, ±∞
/// gives +0; NaN gives NaN.
pub struct PowMinus2;

/// `x^½`: the root, with the special cases of C's `pow`.
///
/// Correctly rounded. ±0 gives +0, ±∞ gives +∞; other negative numbers and NaN give NaN.
pub struct PowHalf;

/// `x^−½`: [`Rsqrt`], with the special cases of C's `pow`.
///
/// Largest error: 0.501 ULP (f32, all inputs); f64 within 1 float. ±0 gives +∞, ±∞ gives +0; other negative numbers and
/// NaN give NaN.
pub struct PowMinusHalf;

/// `exact`, or `product` where `part`, x² or 1/x, is 0, NaN, or at least `large` (of f32 and f64), from where on the
/// product overflows; below, no term of `exact` does.
#[inline(always)]
fn finite<E: Float, S: Lanes<E>>(
    simd: S,
    part: S::V,
    large: [f64; 2],
    exact: S::V,
    product: S::V,
) -> S::V {
    let large = E::from_f64(large[usize::from(size_of::<E>() == 8)]);
    let [zero, large] = simd.splat_all([E::ZERO, large]);
    exact.select(zero.lt(part.abs()) & part.abs().lt(large), product)
}

/// x² as a sum of two floats.
#[inline(always)]
fn square<V: Vector>(x: V) -> [V; 2] {
    let high = x * x;
    [high, x.mul_add(x, -high)]
}

/// +0 for −0 and +∞ for −∞.
#[inline(always)]
fn unsigned<E: Float, S: Lanes<E>>(simd: S, x: S::V) -> S::V {
    x.abs().select(x.abs().eq(simd.splat(E::INFINITY)), x + simd.splat(E::ZERO))
}

impl<E: Float> Map<E, 1> for Pow3 {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let [high, low] = square(x);
        finite(simd, high, [1e28, 1e210], high.mul_add(x, low * x), high * x)
    }
}

impl<E: Float> Map<E, 1> for Pow4 {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let [high, low] = square(x);
        let exact = high.mul_add(high, high * (low + low));
        finite(simd, high, [1e21, 1e158], exact, high * high)
    }
}

impl<E: Float> Map<E, 1> for PowMinus2 {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let one = simd.splat(E::ONE);
        let inverse = one / x;
        let rest = inverse.neg_mul_add(x, one);
        let exact = inverse.mul_add(inverse, inverse * (inverse * (rest + rest)));
        finite(simd, inverse, [1e21, 1e158], exact, inverse * inverse)
    }
}

impl<E: Float> Map<E, 1> for PowHalf {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        unsigned(simd, x).sqrt()
    }
}

impl<E: Float> Map<E, 1> for PowMinusHalf
where
    Rsqrt: Map<E, 1>,
{
    const VECTORS: [usize; 2] = <Rsqrt as Map<E, 1>>::VECTORS;

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        Rsqrt::apply(simd, [unsigned(simd, x)])
    }
}

//! The hyperbolic tangent.
//!
//! ```text
//! e^(2|x|) = b (1 + p)               b = 2^k 2^(j/8), p = e^r − 1: the parts of exp.rs
//! tanh |x| = (e^(2|x|) − 1) / (e^(2|x|) + 1)
//!          = (b − 1 + b p) / (b + 1 + b p)
//! ```
//!
//! 1. *One formula from zero to the end.* Where 2|x| < ln 2 / 16, b = 1 and the numerator is p
//!    alone: nothing cancels, relative accuracy reaches down to subnormal numbers.
//! 2. *Numerator and denominator as sums of two floats*: b ± 1 with its rounding error (b >= 1, so
//!    subtracting in that order is exact), plus b p with the error of that addition; p itself is a
//!    sum of two floats, since near zero its rounding would add half a place to the result's.
//! 3. *One division*: q = high / high by a reciprocal, then q + (numerator − q · denominator) ·
//!    reciprocal, whose bracket is exact up to its own tiny last place.
//! 4. Past the clamp the result rounds to 1. The sign bit of x is put back at the end.

use super::exp::{ExpConstants, exp_parts};
use super::{copy_sign, divide};
use crate::map::{Map1, Map2};
use crate::simd::{Float, Lanes, Vector};

/// `tanh x`.
///
/// * Domain: all numbers.
/// * ±0 gives ±0, ±∞ gives ±1, NaN gives NaN; subnormal numbers give themselves.
/// * Largest error: 0.729 ULP at 0.02170172 (f32, all inputs); f64 within 1 float on 67 million
///   spread inputs, correctly rounded on 98.5 %.
/// * Coefficients: those of `exp.rs`.
pub struct Tanh;

/// The gradient of [`Tanh`] from its output: `g (1 − y²)`.
///
/// * 1 − y² is rounded once, the product once: within 1 ULP of `g (1 − y²)` where that is normal.
/// * y = ±1 gives a zero with the sign of g; NaN in either gives NaN, as does g = ±∞ at y = ±1.
pub struct TanhGrad;

trait TanhConstants: ExpConstants {
    /// From here on tanh rounds to 1.
    const SATURATED: Self;
}

impl TanhConstants for f32 {
    const SATURATED: f32 = 9.25;
}

impl TanhConstants for f64 {
    const SATURATED: f64 = 19.5;
}

impl<E: TanhConstants> Map1<E> for Tanh {
    const UNROLL: usize = 2;

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, x: S::V) -> S::V {
        let one = simd.splat(E::ONE);
        let magnitude = simd.splat(E::SATURATED).min_or_other(x.abs());
        let parts = exp_parts(simd, magnitude + magnitude, None);
        let [p, p_low] = parts.expm1();
        let b = parts.t.scale_by_power_of_two(parts.k);
        let above = b + one;
        let below = b - one;
        let above_error = (b - above) + one;
        let below_error = (b - below) - one;
        let high = b.mul_add(p, below);
        let low = b.mul_add(p_low, b.mul_add(p, below - high) + below_error);
        let under_high = b.mul_add(p, above);
        let under_low = b.mul_add(p_low, b.mul_add(p, above - under_high) + above_error);
        copy_sign(simd, divide(simd, [high, low], [under_high, under_low]), x)
    }
}

impl<E: Float> Map2<E> for TanhGrad {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, g: S::V, y: S::V) -> S::V {
        g * y.neg_mul_add(y, simd.splat(E::ONE))
    }
}

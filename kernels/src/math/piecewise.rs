//! Piecewise linear and quadratic activations, and their derivatives.
//!
//! ```text
//! hardsigmoid x = (x + 3) / 6     hardswish x = x (x + 3) / 6     for −3 < x < 3
//! ```
//!
//! 1. *x is clamped first*: outside of −3 … 3 both are constant or linear, given by the value at
//!    the end, and no step can overflow.
//! 2. *x + 3 is a sum of two floats*, s + e, by Knuth's TwoSum: near −3 the rounding error of x + 3
//!    would be most of the result.
//! 3. *Division by 6* is a product with 1/6, corrected by the remainder p − 6 q plus the low part
//!    of the dividend: only one rounding counts.

use super::copy_sign;
use crate::map::Map;
use crate::simd::{Float, Lanes, Vector};

/// `x` clamped to `0..=6`.
///
/// Exact. −0 gives −0, NaN gives NaN.
pub struct Relu6;

/// The gradient of [`Relu6`] from upstream gradient `g` and input or output `x`: `g` where
/// `0 < x < 6`, else +0, also at 0 and at 6; NaN where `x` is.
pub struct Relu6Grad;

/// `(x + 3) / 6` between −3 and 3, 0 below, 1 above.
///
/// Largest error: 0.501 ULP (f32, all inputs). NaN gives NaN.
pub struct Hardsigmoid;

/// The gradient of [`Hardsigmoid`] from upstream gradient `g` and input `x`: `g / 6` where
/// `−3 < x < 3`, else +0, also at −3 and at 3; NaN where `x` is. Correctly rounded.
pub struct HardsigmoidGrad;

/// `x (x + 3) / 6` between −3 and 3, −0 below, `x` above.
///
/// Largest error: 0.501 ULP (f32, all inputs); f64 within 1 float. ±0 and +∞ give themselves, −∞ gives
/// −0, NaN gives NaN.
pub struct Hardswish;

/// The gradient of [`Hardswish`] from upstream gradient `g` and input `x`: `g (2 x + 3) / 6` where
/// `−3 < x < 3`; +0 for x ≤ −3, `g` for x ≥ 3. Within 2 ULP; `g` · NaN gives NaN.
pub struct HardswishGrad;

/// `a` where `a ≥ 0`, else `a b`.
///
/// Correctly rounded. ±0 gives itself whatever the slope `b`; NaN gives NaN, as does −∞ · 0.
pub struct LeakyRelu;

/// `x` clamped to `−3..=3`; keeps NaN.
#[inline(always)]
fn clamped<E: Float, S: Lanes<E>>(simd: S, x: S::V) -> S::V {
    let three = simd.splat(E::from_f64(3.0));
    three.min_or_other((-three).max_or_other(x))
}

/// `x + 3` as a sum of two floats.
#[inline(always)]
fn plus_three<E: Float, S: Lanes<E>>(simd: S, x: S::V) -> [S::V; 2] {
    let three = simd.splat(E::from_f64(3.0));
    let sum = x + three;
    let part = sum - x;
    [sum, (x - (sum - part)) + (three - part)]
}

/// `(high + low) / 6`.
#[inline(always)]
fn sixth<E: Float, S: Lanes<E>>(simd: S, [high, low]: [S::V; 2]) -> S::V {
    let inverse = simd.splat(E::from_f64(1.0 / 6.0));
    let quotient = high * inverse;
    let rest = quotient.neg_mul_add(simd.splat(E::from_f64(6.0)), high) + low;
    rest.mul_add(inverse, quotient)
}

/// `g` where `low < x < high`, +0 outside, NaN for NaN.
#[inline(always)]
fn between<E: Float, S: Lanes<E>>(simd: S, g: S::V, x: S::V, [low, high]: [f64; 2]) -> S::V {
    let inside = simd.splat(E::from_f64(low)).lt(x) & x.lt(simd.splat(E::from_f64(high)));
    g.select(inside, x.select(x.is_nan(), simd.splat(E::ZERO)))
}

impl<E: Float> Map<E, 1> for Relu6 {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let x = simd.splat(E::ZERO).max_or_other(x);
        simd.splat(E::from_f64(6.0)).min_or_other(x)
    }
}

impl<E: Float> Map<E, 2> for Relu6Grad {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [g, x]: [S::V; 2]) -> S::V {
        between(simd, g, x, [0.0, 6.0])
    }
}

impl<E: Float> Map<E, 1> for Hardsigmoid {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        sixth(simd, plus_three(simd, clamped(simd, x)))
    }
}

impl<E: Float> Map<E, 2> for HardsigmoidGrad {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [g, x]: [S::V; 2]) -> S::V {
        between(simd, g / simd.splat(E::from_f64(6.0)), x, [-3.0, 3.0])
    }
}

impl<E: Float> Map<E, 1> for Hardswish {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let inner = clamped(simd, x);
        let [sum, sum_low] = plus_three(simd, inner);
        let product = inner * sum;
        let product_low = inner.mul_add(sum, -product) + inner * sum_low;
        // At −3 the sums give +0.
        let curve = copy_sign(simd, sixth(simd, [product, product_low]), x);
        curve.select(x.lt(simd.splat(E::from_f64(3.0))), x)
    }
}

impl<E: Float> Map<E, 2> for HardswishGrad {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [g, x]: [S::V; 2]) -> S::V {
        let [two, three] = simd.splat_all([E::from_f64(2.0), E::from_f64(3.0)]);
        let slope = sixth(simd, [clamped(simd, x).mul_add(two, three), simd.splat(E::ZERO)]);
        let below_end = g.select(three.le(x), g * slope);
        simd.splat(E::ZERO).select(x.le(-three), below_end)
    }
}

impl<E: Float> Map<E, 2> for LeakyRelu {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x, slope]: [S::V; 2]) -> S::V {
        x.select(simd.splat(E::ZERO).le(x), x * slope)
    }
}

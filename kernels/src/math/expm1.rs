//! `e^x − 1`, accurate near zero too, and the activations built on it.
//!
//! ```text
//! e^x = t e^(r + low)                  the parts of exp.rs, t with its power of two
//! d = t − 1                            exact except for t below 1/4: its error is kept
//! v = d + t r                          rounded once, its error kept
//! e^x − 1 = v + (t (low + (r + low)² q) + errors)
//! ```
//!
//! 1. *If |x| <= 0.0433*, n is 0: t = 1, d = 0 and the sum is x + x² q(x).
//! 2. *Otherwise d and t r may cancel* by half, without loss: r is exact, and so is v with its
//!    error.
//! 3. Above 16 (f64: 36), where 1 is at most an ULP of t, 1 is subtracted from t p instead, behind
//!    one branch.
//! 4. The sign bit of x is set in the result, which only changes the sign of a zero.

use super::exp::{Exp, ExpConstants, Parts, ScaledParts, exp_parts, scaled_parts};
use super::horner;
use crate::map::Map;
use crate::simd::{Lanes, Mask, Vector};

/// `e^x − 1`.
///
/// * Domain: all numbers; ±0 and subnormal numbers give themselves.
/// * −∞ gives −1, +∞ gives +∞, NaN gives NaN.
/// * Largest error: 0.616 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: those of `exp.rs`.
pub struct Expm1;

/// `a` where `a ≥ 0`, else `b (e^a − 1)`.
///
/// * Domain: all numbers; ±0 and positive `a` give themselves whatever the scale `b`.
/// * −∞ gives −`b`. NaN in `a`, or in `b` beside a negative `a`, gives NaN.
/// * Largest error: 0.750 ULP, 0.787 where the result is subnormal (f32, 2^30 pairs); f64 within 1
///   float.
/// * Method: the two parts of e^a − 1 times `b`, with the first product's rounding error. Coefficients:
///   those of `exp.rs`.
pub struct Elu;

/// `λ x` where `x ≥ 0`, else `λ α (e^x − 1)`: the self-normalizing unit of Klambauer et al. (2017),
/// λ = 1.05070098735548, α = 1.673263242354377.
///
/// * Domain: all numbers; ±0 give themselves, subnormal results are computed, not flushed.
/// * −∞ gives −λ α = −1.7580993, +∞ gives +∞, NaN gives NaN.
/// * Largest error: 0.721 ULP, 0.611 where the result is subnormal (f32, all inputs); f64 within 1 float.
/// * Method: `x + (λ − 1) x` for x ≥ 0; otherwise the two parts of e^x − 1 times λ α, a sum of two
///   floats. Coefficients: those of `exp.rs`; λ and α to 31 digits as in the authors' program.
pub struct Selu;

/// The gradient of [`Selu`] from upstream gradient `g` and input `x`: `λ g` where `x > 0`, else
/// `g λ α e^x`. Within 2.5 ULP if no step leaves the normal numbers; NaN in either gives NaN.
pub struct SeluGrad;

trait Expm1Constants: ExpConstants {
    /// Below it the result rounds to −1.
    const LOWEST: Self;
    /// Up to it, t − 1 is exact if t is above 1/4.
    const ORDINARY: Self;
    /// A scale below the first is multiplied by the second, its inverse. The rounding error of a
    /// product is then subnormal only where e^a − 1 itself is tiny, and there it equals a to the
    /// last bit.
    const SMALL_SCALE: [Self; 2];
    /// λ − 1 of [`Selu`].
    const SELU_ABOVE: Self;
    /// λ α as a sum of two floats.
    const SELU_BELOW: [Self; 2];
}

impl Expm1Constants for f32 {
    const LOWEST: f32 = -20.0;
    const ORDINARY: f32 = 16.5;
    const SMALL_SCALE: [f32; 2] = [1.0842022e-19, 9.223372e18];
    const SELU_ABOVE: f32 = 0.05070099;
    const SELU_BELOW: [f32; 2] = [1.7580993, 2.3296717e-8];
}

impl Expm1Constants for f64 {
    const LOWEST: f64 = -40.0;
    const ORDINARY: f64 = 36.25;
    const SMALL_SCALE: [f64; 2] = [1.4916681462400413e-154, 6.703903964971299e153];
    const SELU_ABOVE: f64 = 0.050700987355480495;
    const SELU_BELOW: [f64; 2] = [1.7580993408473768, 1.41535193800845e-17];
}

impl<E: Expm1Constants> Map<E, 1> for Expm1 {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let [v, rest] = near(simd, x);
        let mut y = v + rest;
        let ordinary = simd.splat(E::ORDINARY);
        if !x.le(ordinary).all() {
            y = large(simd, x).select(ordinary.lt(x), y);
        }
        let sign = x.to_bits() & simd.splat(-E::ZERO).to_bits();
        S::V::from_bits(y.to_bits() | sign)
    }
}

/// `e^x − 1` up to `ORDINARY`, as a sum of two floats; the high part of −0 is zero too.
#[inline(always)]
fn near<E: Expm1Constants, S: Lanes<E>>(simd: S, x: S::V) -> [S::V; 2] {
    let one = simd.splat(E::ONE);
    let ScaledParts { t, r, low } = scaled_parts(simd, simd.splat(E::LOWEST).max_or_other(x));
    let d = t - one;
    let d_error = t - (d + one);
    let v = t.mul_add(r, d);
    let errors = t.mul_add(r, (d - v) + d_error);
    let rounded = r + low;
    let s = (rounded * rounded).mul_add(horner(simd, rounded, E::POLY), low);
    [v, t.mul_add(s, errors)]
}

/// `e^x − 1` above `ORDINARY`.
#[inline(always)]
fn large<E: Expm1Constants, S: Lanes<E>>(simd: S, x: S::V) -> S::V {
    let x = simd.splat(E::EXP_RANGE[1]).min_or_other(x);
    let Parts { k, t, r, s } = exp_parts(simd, x, None);
    let minus_k = simd.splat(E::ZERO).to_bits() - k;
    let minus_one = simd.splat(-E::ONE).scale_by_power_of_two(minus_k);
    (t + t.mul_add(r + s, minus_one)).scale_by_power_of_two(k)
}

impl<E: Expm1Constants> Map<E, 2> for Elu {
    const VECTORS: [usize; 2] = [2, 4];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x, scale]: [S::V; 2]) -> S::V {
        let [v, rest] = near(simd, x);
        let [small, large] = simd.splat_all(E::SMALL_SCALE);
        let tiny = scale.abs().lt(small);
        let scale = (scale * large).select(tiny, scale);
        let product = v * scale;
        let error = v.mul_add(scale, -product);
        let sum = product + rest.mul_add(scale, error);
        let zero = simd.splat(E::ZERO);
        let magnitude = product.abs();
        // The error of an infinite product would be NaN, and that of a zero would lose the sign.
        let ordinary = zero.lt(magnitude) & magnitude.lt(simd.splat(E::INFINITY));
        let y = sum.select(ordinary, product);
        (y * small).select(tiny, y).select(x.lt(zero), x)
    }
}

impl<E: Expm1Constants> Map<E, 1> for Selu {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let [below, below_low] = simd.splat_all(E::SELU_BELOW);
        let [v, rest] = near(simd, x);
        let curve = v.mul_add(below, v.mul_add(below_low, rest * below));
        let line = x.mul_add(simd.splat(E::SELU_ABOVE), x);
        curve.select(x.lt(simd.splat(E::ZERO)), line)
    }
}

impl<E: Expm1Constants> Map<E, 2> for SeluGrad {
    const VECTORS: [usize; 2] = [2, 4];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [g, x]: [S::V; 2]) -> S::V {
        let zero = simd.splat(E::ZERO);
        let [below, below_low] = simd.splat_all(E::SELU_BELOW);
        let e = <Exp as Map<E, 1>>::apply(simd, [zero.min_or_other(x)]);
        let slope = e.mul_add(below, e * below_low);
        g.mul_add(simd.splat(E::SELU_ABOVE), g).select(zero.lt(x), g * slope)
    }
}

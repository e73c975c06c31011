//! The logistic function and silu, the product of a number with it.
//!
//! ```text
//! E = e^(−|v|) = 2^k t (1 + p)                          the parts of exp.rs
//! v >= 0:  σ(v) = 1 / (1 + E)
//! v < 0:   σ(v) = E / (1 + E) = 2^k (t + t p) / (1 + E)
//! silu(x) = x σ(x)
//! ```
//!
//! 1. *The exponential never overflows*, and in the tail of negative v, where the result is E
//!    itself, its power of two is multiplied in last: subnormal results keep their accuracy.
//! 2. *Every rounding that would cost a place is carried along*: 1 + E, E and x · numerator are
//!    sums of two floats, and the quotient is corrected by its residual. Left plain, those four
//!    roundings add up to 3.2 ULP.
//! 3. `gate` serves gelu too, whose argument is itself a sum of two floats.

use super::exp::{ExpConstants, Parts, exp_parts};
use super::{copy_sign, divide};
use crate::map::{Map1, Map2};
use crate::simd::{IntVector, Lanes, Vector};

/// `σ(x) = 1 / (1 + e^−x)`.
///
/// * Domain: all numbers; subnormal results are computed, not flushed.
/// * −∞ gives +0, +∞ gives 1, ±0 gives 1/2, NaN gives NaN.
/// * Largest error: 0.533 ULP at −79.75543 (f32, every 7th input), 0.760 where the result is
///   subnormal, at −87.5429; f64 within 1 float on 12 million spread inputs, correctly rounded on
///   99.7 %.
/// * Coefficients: those of `exp.rs`.
pub struct Sigmoid;

/// `x σ(x)`.
///
/// * Domain: all numbers; subnormal results are computed, not flushed.
/// * ±0 gives ±0, +∞ gives +∞, −∞ gives −0 (the limit), NaN gives NaN.
/// * Largest error: 0.532 ULP at −13.723418 (f32, every 7th input), 0.755 where the result is
///   subnormal, at −92.04191; f64 within 1 float on 12 million spread inputs, correctly rounded on
///   99.7 %.
/// * Coefficients: those of `exp.rs`.
pub struct Silu;

/// The gradient of [`Sigmoid`] from its output: `g y (1 − y)`.
///
/// * Three roundings: within 2 ULP of `g y (1 − y)` where that is normal.
/// * y = 0 or 1 gives a zero; NaN in either gives NaN, as does g = ±∞ there.
pub struct SigmoidGrad;

/// The gradient of [`Silu`] from its input: `g σ(x) (1 + x (1 − σ(x)))`.
///
/// * The factor of g has a zero near x = −1.278, around which its error is absolute: 3 units of
///   1's last place; elsewhere it stays within 6 ULP, tails included.
/// * −∞ gives a factor of −0, +∞ of 1; NaN in either gives NaN.
pub struct SiluGrad;

pub(super) trait GateConstants: ExpConstants {
    /// Past it, x e^(−|x|) rounds to zero and σ(x) to 1.
    const GATE_MAX: Self;
}

impl GateConstants for f32 {
    const GATE_MAX: f32 = 110.0;
}

impl GateConstants for f64 {
    const GATE_MAX: f64 = 760.0;
}

/// `σ(v) = 2^k (numerator) / (denominator)`, both sums of two floats, high part first.
pub(super) struct Gate<V: Vector> {
    pub k: V::Int,
    pub numerator: [V; 2],
    pub denominator: [V; 2],
}

/// The gate at `v + v_low`.
#[inline(always)]
pub(super) fn gate<E: ExpConstants, S: Lanes<E>>(
    simd: S,
    v: S::V,
    v_low: Option<S::V>,
) -> Gate<S::V> {
    let (zero, one) = (simd.splat(E::ZERO), simd.splat(E::ONE));
    let negative = v.lt(zero);
    let v_low = v_low.map(|low| low.select(negative, -low));
    let parts = exp_parts(simd, -v.abs(), v_low);
    let [p, p_low] = parts.expm1();
    let Parts { k, t, .. } = parts;
    let b = t.scale_by_power_of_two(k);
    let sum = one + b;
    let sum_error = (one - sum) + b;
    let under_high = b.mul_add(p, sum);
    let under_low = b.mul_add(p_low, b.mul_add(p, sum - under_high) + sum_error);
    let high = t.mul_add(p, t);
    let low = t.mul_add(p_low, t.mul_add(p, t - high));
    Gate {
        k: k.select(negative, zero.to_bits()),
        numerator: [high.select(negative, one), low.select(negative, zero)],
        denominator: [under_high, under_low],
    }
}

impl<V: Vector> Gate<V> {
    /// `x σ(v)`; `x` finite.
    #[inline(always)]
    pub(super) fn times<E: ExpConstants, S: Lanes<E, V = V, I = V::Int, M = V::Mask>>(
        self,
        simd: S,
        x: V,
    ) -> V {
        let [high, low] = self.numerator;
        let product = x * high;
        let product_low = x.mul_add(low, x.mul_add(high, -product));
        divide(simd, [product, product_low], self.denominator).scale_by_power_of_two(self.k)
    }
}

/// `x` moved into `-limit..=limit`; NaN stays.
#[inline(always)]
pub(super) fn clamp<E: ExpConstants, S: Lanes<E>>(simd: S, x: S::V, limit: E) -> S::V {
    let limit = simd.splat(limit);
    limit.min_or_other((-limit).max_or_other(x))
}

/// `(σ(v), 1 − σ(v))`, both accurate where small.
#[inline(always)]
pub(super) fn gate_and_rest<E: ExpConstants, S: Lanes<E>>(simd: S, v: S::V) -> (S::V, S::V) {
    let one = simd.splat(E::ONE);
    let Parts { k, t, r, s } = exp_parts(simd, -v.abs(), None);
    let e = (r + s).mul_add(t, t).scale_by_power_of_two(k);
    let large = one / (one + e);
    let small = e * large;
    let negative = v.lt(simd.splat(E::ZERO));
    (small.select(negative, large), large.select(negative, small))
}

impl<E: GateConstants> Map1<E> for Sigmoid {
    const UNROLL: usize = 2;

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, x: S::V) -> S::V {
        let Gate { k, numerator, denominator } = gate(simd, clamp(simd, x, E::GATE_MAX), None);
        divide(simd, numerator, denominator).scale_by_power_of_two(k)
    }
}

impl<E: GateConstants> Map1<E> for Silu {
    const UNROLL: usize = 2;

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, x: S::V) -> S::V {
        let clamped = clamp(simd, x, E::GATE_MAX);
        let y = gate(simd, clamped, None).times::<E, S>(simd, clamped);
        copy_sign(simd, x.select(simd.splat(E::GATE_MAX).lt(x), y), x)
    }
}

impl<E: ExpConstants> Map2<E> for SigmoidGrad {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, g: S::V, y: S::V) -> S::V {
        g * (y * (simd.splat(E::ONE) - y))
    }
}

impl<E: GateConstants> Map2<E> for SiluGrad {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, g: S::V, x: S::V) -> S::V {
        let x = clamp(simd, x, E::GATE_MAX);
        let (gate, rest) = gate_and_rest(simd, x);
        g * (gate * x.mul_add(rest, simd.splat(E::ONE)))
    }
}

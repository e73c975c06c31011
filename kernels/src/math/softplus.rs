//! Softplus and the logarithm of the logistic function.
//!
//! ```text
//! E = e^(−|x|)                         a sum of two floats, by the parts of exp.rs
//! softplus(x) = max(x, 0) + ln(1 + E)
//! ln(1 + E)   = r + c(r),  r = E                  E <= 1/2
//!             = ln 2 + r + c(r),  r = (E − 1)/2   E > 1/2; c as in log1p.rs
//! log_sigmoid(x) = −softplus(−x)
//! ```
//!
//! 1. *The three large terms lose nothing*: max(x, 0), ln 2 and r are added in order of size, which
//!    is known (x < 0.7 where ln 2 is added, and above 0.69 where not), with the errors of both
//!    additions.
//! 2. *E loses nothing either*: its low part joins the errors.
//! 3. For arguments whose exponential is not normal the result is x, or e^x rounded once, behind
//!    one branch.

use super::exp::{ExpConstants, exp_everywhere, scaled_parts};
use super::log1p::{Log1pConstants, correction};
use super::sigmoid::Sigmoid;
use crate::map::Map;
use crate::simd::{Float, Lanes, Mask, Vector};

/// `ln(1 + e^x)`.
///
/// * Domain: all numbers; subnormal results are computed, not flushed, and rounded once.
/// * −∞ gives +0, +∞ gives +∞, NaN gives NaN.
/// * Largest error: 0.925 ULP, 0.533 where the result is subnormal (f32, all inputs); f64 within 1
///   float.
/// * Coefficients: those of `exp.rs` and `log1p.rs`.
pub struct Softplus;

/// `ln σ(x) = −ln(1 + e^−x)`.
///
/// * Mirrors [`Softplus`]: +∞ gives −0, −∞ gives −∞, NaN gives NaN.
/// * Largest error: 0.925 ULP, 0.533 where the result is subnormal (f32, all inputs); f64 within 1
///   float.
pub struct LogSigmoid;

/// The gradient of [`Softplus`] from its input: `g σ(x)`.
///
/// * Two roundings, that of [`Sigmoid`] and that of the product: within 2 ULP if both are normal.
/// * −∞ gives a factor of +0, +∞ of 1; NaN in either gives NaN.
pub struct SoftplusGrad;

/// The gradient of [`LogSigmoid`] from its input: `g σ(−x)`, which is [`SoftplusGrad`] at −x.
pub struct LogSigmoidGrad;

trait SoftplusConstants: ExpConstants + Log1pConstants {
    const HALF: Self;
}

impl SoftplusConstants for f32 {
    const HALF: f32 = 0.5;
}

impl SoftplusConstants for f64 {
    const HALF: f64 = 0.5;
}

impl<E: SoftplusConstants> Map<E, 1> for Softplus {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let (zero, half) = (simd.splat(E::ZERO), simd.splat(E::HALF));
        let (t, p) = scaled_parts(simd, -x.abs()).factors(simd);
        let e = p.mul_add(t, t);
        let e_low = p.mul_add(t, t - e);

        let halve = half.lt(e);
        let r = e.mul_add(half, -half).select(halve, e);
        let r_low = (e_low * half).select(halve, e_low);
        let [ln2, ln2_low] = simd.splat_all(E::LN2);
        let (ln2, ln2_low) = (ln2.select(halve, zero), ln2_low.select(halve, zero));
        let positive = x.max_or_other(zero);
        let main = ln2 + positive;
        let main_error = (ln2 - main) + positive;
        let sum = main + r;
        let sum_error = (main - sum) + r;
        let errors = (main_error + sum_error) + (ln2_low + r_low);
        let y = sum + correction(simd, r, errors);

        let ordinary = x.abs().le(simd.splat(E::EXP_ORDINARY));
        if ordinary.all() {
            return y;
        }
        y.select(ordinary, exp_everywhere(simd, x).select(x.lt(zero), x))
    }
}

impl<E: SoftplusConstants> Map<E, 1> for LogSigmoid {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        -Softplus::apply(simd, [-x])
    }
}

impl<E: Float> Map<E, 2> for SoftplusGrad
where
    Sigmoid: Map<E, 1>,
{
    const VECTORS: [usize; 2] = [2, 4];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [g, x]: [S::V; 2]) -> S::V {
        g * Sigmoid::apply(simd, [x])
    }
}

impl<E: Float> Map<E, 2> for LogSigmoidGrad
where
    Sigmoid: Map<E, 1>,
{
    const VECTORS: [usize; 2] = [2, 4];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [g, x]: [S::V; 2]) -> S::V {
        g * Sigmoid::apply(simd, [-x])
    }
}

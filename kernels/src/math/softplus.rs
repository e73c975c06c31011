//! Softplus and the logarithm of the logistic function.
//!
//! ```text
//! E = e^(−|x|)                         a sum of two floats, by the parts of exp.rs
//! softplus(x) = max(x, 0) + ln(1 + E)
//! ln(1 + E) = E + E² P(E)              0 < E <= 1
//! log_sigmoid(x) = −softplus(−x)
//! ```
//!
//! 1. *No reduction of 1 + E*: a polynomial for all of E's interval converges as fast as that of a
//!    reduced logarithm, because the singularity at −1 is as far from it in proportion.
//! 2. *max(x, 0) + E keeps its error*, and the low part of E joins it (times 1 − E/2, near enough to
//!    the slope 1 / (1 + E)), so that only the last addition and E² P(E), at most 0.44 of the result,
//!    round.
//! 3. Beyond the arguments whose exponential is normal the result is x, or e^x rounded once, behind
//!    one branch.

use super::exp::{ExpConstants, exp_everywhere, scaled_parts};
use super::horner;
use super::sigmoid::Sigmoid;
use crate::map::{Map1, Map2};
use crate::simd::{Float, Lanes, Mask, Vector};

/// `ln(1 + e^x)`.
///
/// * Domain: all numbers; subnormal results are computed, not flushed, and rounded once.
/// * −∞ gives +0, +∞ gives +∞, NaN gives NaN.
/// * Largest error: SOFTPLUS_ERROR.
/// * Coefficients: `tools/coefficients.py softplus`; the error relative to ln(1 + E) is 2^-29.9
///   (f32), 2^-63.3 (f64).
pub struct Softplus;

/// `ln σ(x) = −ln(1 + e^−x)`.
///
/// * As [`Softplus`], mirrored twice: the same error at −x; +∞ gives −0, −∞ gives −∞, NaN gives NaN.
pub struct LogSigmoid;

/// The gradient of [`Softplus`] from its input: `g σ(x)`.
///
/// * Two roundings, that of [`Sigmoid`] and that of the product: within 1.04 ULP where both are
///   normal.
/// * −∞ gives a factor of +0, +∞ of 1; NaN in either gives NaN.
pub struct SoftplusGrad;

/// The gradient of [`LogSigmoid`] from its input: `g σ(−x)`; as [`SoftplusGrad`] at −x.
pub struct LogSigmoidGrad;

/// The polynomial, from `tools/coefficients.py softplus`.
trait SoftplusConstants: ExpConstants {
    /// P(E) = (ln(1 + E) − E) / E², lowest power first.
    const SQUARE: &'static [Self];
    const HALF: Self;
}

impl SoftplusConstants for f32 {
    const HALF: f32 = 0.5;
    const SQUARE: &'static [f32] = &[
        -0.49999985,
        0.3333261,
        -0.24987549,
        0.19891278,
        -0.16104765,
        0.12411924,
        -0.082306236,
        0.041335396,
        -0.013330349,
        0.0020132358,
    ];
}

impl SoftplusConstants for f64 {
    const HALF: f64 = 0.5;
    const SQUARE: &'static [f64] = &[
        -0.49999999999999994,
        0.33333333333332194,
        -0.24999999999912628,
        0.1999999999646418,
        -0.1666666657843907,
        0.14285712800703537,
        -0.12499982121676675,
        0.11110950706746613,
        -0.09998894768736587,
        0.0908492610306218,
        -0.08307434160311249,
        0.07601384314392969,
        -0.06880954760713322,
        0.06041359972238889,
        -0.05000408393156796,
        0.03769999824951067,
        -0.024951356405479918,
        0.013953250462366522,
        -0.006326809304385586,
        0.0022131832752014828,
        -0.0005567609199346967,
        8.923205678221012e-5,
        -6.821294057750834e-6,
    ];
}

impl<E: SoftplusConstants> Map1<E> for Softplus {
    const UNROLL: usize = 2;

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, x: S::V) -> S::V {
        let zero = simd.splat(E::ZERO);
        let (t, p) = scaled_parts(simd, -x.abs()).factors(simd);
        let e = p.mul_add(t, t);
        let e_low = p.mul_add(t, t - e);
        let positive = x.max_or_other(zero);
        let (large, small) = (positive.max_or_other(e), positive.min_or_other(e));
        let sum = large + small;
        let error = (large - sum) + small;
        let slope = e.neg_mul_add(simd.splat(E::HALF), simd.splat(E::ONE));
        let errors = e_low.mul_add(slope, error);
        let y = sum + (e * e).mul_add(horner(simd, e, E::SQUARE), errors);
        let ordinary = x.abs().le(simd.splat(E::EXP_ORDINARY));
        if ordinary.all() {
            return y;
        }
        y.select(ordinary, exp_everywhere(simd, x).select(x.lt(zero), x))
    }
}

impl<E: SoftplusConstants> Map1<E> for LogSigmoid {
    const UNROLL: usize = 2;

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, x: S::V) -> S::V {
        -Softplus::apply(simd, -x)
    }
}

impl<E: Float> Map2<E> for SoftplusGrad
where
    Sigmoid: Map1<E>,
{
    const UNROLL: usize = 2;

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, g: S::V, x: S::V) -> S::V {
        g * Sigmoid::apply(simd, x)
    }
}

impl<E: Float> Map2<E> for LogSigmoidGrad
where
    Sigmoid: Map1<E>,
{
    const UNROLL: usize = 2;

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, g: S::V, x: S::V) -> S::V {
        g * Sigmoid::apply(simd, -x)
    }
}

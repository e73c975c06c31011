//! Inverse hyperbolic functions.
//!
//! ```text
//! |x| < 1/2:     arsinh x = x + x³ A(x²),  artanh x = x + x³ T(x²)
//! x < 3/2:       arcosh x = s + s d C(d),   d = x − 1,  s = √(2 d)
//! elsewhere:     arsinh |x| = ln(√(x² + 1) + |x|)
//!                arcosh x   = ln(√(x² − 1) + x)
//!                artanh |x| = ln((1 + |x|) / (1 − |x|)) / 2
//! ```
//!
//! 1. *The logarithms are at least 0.96*, those of arsinh 0.48, so rounding their arguments would
//!    move the result by two ULP. Argument u and its error δ are kept apart, and ln(u + δ) = ln u +
//!    δ/u joins the low part of the logarithm of log.rs.
//! 2. *Corrections need few bits*: δ/u and the error of a square root are divided by subtracting
//!    bits, see inverse_trig.rs.
//! 3. From 2^30 on (f64: 2^60) √(x² ± 1) is x: the logarithm of 2 x.

use super::inverse_trig::{RootConstants, half_reciprocal, root};
use super::log::{LogConstants, Reduced};
use super::{copy_sign, horner};
use crate::map::Map;
use crate::simd::{Lanes, Vector};

/// `arsinh x`, the inverse of [`Sinh`](super::Sinh).
///
/// * Domain: all numbers.
/// * ±0 gives ±0, subnormal numbers give themselves; ±∞ gives ±∞, NaN gives NaN.
/// * Largest error: 0.597 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: `tools/coefficients.py inverse_hyperbolic`; A minimises the error relative to the
///   result: 2^-33.9 (f32), 2^-64.5 (f64). Beyond 1/2 those of log.rs.
pub struct Asinh;

/// `arcosh x`, at least 0, the inverse of [`Cosh`](super::Cosh).
///
/// * Domain: from 1 on; NaN below. arcosh 1 = +0.
/// * +∞ gives +∞, NaN gives NaN.
/// * Largest error: 0.582 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: those of [`Asinh`]; C: 2^-33.9 (f32), 2^-60.2 (f64).
pub struct Acosh;

/// `artanh x`, the inverse of [`Tanh`](super::Tanh).
///
/// * Domain: −1 … 1; ±1 gives ±∞, NaN outside.
/// * ±0 gives ±0, subnormal numbers give themselves; NaN gives NaN.
/// * Largest error: 0.636 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: those of [`Asinh`]; T: 2^-32.7 (f32), 2^-64.8 (f64).
pub struct Atanh;

/// Constants from `tools/coefficients.py inverse_hyperbolic`.
trait InverseHyperbolicConstants: LogConstants + RootConstants {
    /// A(z) = (arsinh √z / √z − 1) / z, lowest power first.
    const ASINH: &'static [Self];
    /// T(z) = (artanh √z / √z − 1) / z, lowest power first.
    const ATANH: &'static [Self];
    /// C(d) = (arcosh(1 + d) / √(2 d) − 1) / d, lowest power first.
    const ACOSH: &'static [Self];
    const HALF: Self;
    const THREE_HALVES: Self;
    /// From here on √(x² ± 1) rounds to x.
    const FAR: Self;
}

impl InverseHyperbolicConstants for f32 {
    const ASINH: &'static [f32] =
        &[-0.16666666, 0.074999064, -0.044615887, 0.030031545, -0.020041352, 0.00924464];
    const ATANH: &'static [f32] =
        &[0.33333337, 0.19999653, 0.14296469, 0.1095027, 0.10374866, 0.022000248, 0.17867896];
    const ACOSH: &'static [f32] =
        &[-0.08333333, 0.018749766, -0.005576986, 0.0018769716, -0.00062629225, 0.0001444475];
    const HALF: f32 = 0.5;
    const THREE_HALVES: f32 = 1.5;
    const FAR: f32 = 1_073_741_824.0;
}

impl InverseHyperbolicConstants for f64 {
    const ASINH: &'static [f64] = &[
        -0.16666666666666663,
        0.07499999999998856,
        -0.04464285714160268,
        0.030381944374574622,
        -0.022372156781521275,
        0.01735271509550634,
        -0.01396412752433587,
        0.01154451699067423,
        -0.009708922427052402,
        0.008118322348832183,
        -0.00631763527266499,
        0.00391502081510503,
        -0.0013586196590478945,
    ];
    const ATANH: &'static [f64] = &[
        0.33333333333333337,
        0.19999999999998486,
        0.14285714285931905,
        0.11111111095271091,
        0.0909090977629032,
        0.07692288430544045,
        0.06667037685358165,
        0.05877289493409128,
        0.053130556581235035,
        0.04404228391666315,
        0.06205137660613713,
        -0.028608963460322122,
        0.21030829429504144,
        -0.24102640239338183,
        0.2572996389869114,
    ];
    const ACOSH: &'static [f64] = &[
        -0.08333333333333302,
        0.018749999999958272,
        -0.005580357140877201,
        0.001898871480356224,
        -0.0006991293023191811,
        0.00027113089477172504,
        -0.00010906360680654916,
        4.4970382428766604e-5,
        -1.8616798335760146e-5,
        7.284616631044225e-6,
        -2.3135814863822445e-6,
        4.1795168757476674e-7,
    ];
    const HALF: f64 = 0.5;
    const THREE_HALVES: f64 = 1.5;
    const FAR: f64 = 1_152_921_504_606_846_976.0;
}

/// `ln(sum + sum_low)`, or ln(2 x) where `far`.
#[inline(always)]
fn log_of_sum<E: LogConstants + RootConstants, S: Lanes<E>>(
    simd: S,
    [sum, sum_low]: [S::V; 2],
    far: S::M,
    x: S::V,
) -> S::V {
    let zero = simd.splat(E::ZERO);
    let low = (sum_low + sum_low) * half_reciprocal(simd, sum);
    let exponent = simd.splat(E::ONE).select(far, zero);
    Reduced::new(simd, x.select(far, sum), exponent).ln(simd, Some(zero.select(far, low)))
}

impl<E: InverseHyperbolicConstants> Map<E, 1> for Asinh {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let one = simd.splat(E::ONE);
        let magnitude = x.abs();
        let square = magnitude * magnitude;
        let series = (magnitude * square).mul_add(horner(simd, square, E::ASINH), magnitude);

        let far = simd.splat(E::FAR).lt(magnitude);
        let square_low = magnitude.mul_add(magnitude, -square);
        let (larger, smaller) = (square.max_or_other(one), square.min_or_other(one));
        let sum = larger + smaller;
        let sum_low = ((larger - sum) + smaller) + square_low;
        let [root, root_low] = root(simd, sum, Some(sum_low));
        let u = root + magnitude;
        let u_low = ((root - u) + magnitude) + root_low;
        let log = log_of_sum(simd, [u, u_low], far, magnitude);

        let y = series.select(magnitude.lt(simd.splat(E::HALF)), log);
        copy_sign(simd, y.select(magnitude.lt(simd.splat(E::INFINITY)), magnitude), x)
    }
}

impl<E: InverseHyperbolicConstants> Map<E, 1> for Acosh {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let one = simd.splat(E::ONE);
        let near = x.lt(simd.splat(E::THREE_HALVES));
        let far = simd.splat(E::FAR).lt(x);
        let d = x - one;
        let square = x * x;
        let square_low = x.mul_add(x, -square);
        let difference = square - one;
        let difference_low = ((square - difference) - one) + square_low;
        let [root, root_low] = root(
            simd,
            (d + d).select(near, difference),
            Some(simd.splat(E::ZERO).select(near, difference_low)),
        );
        let series = root + (root * d).mul_add(horner(simd, d, E::ACOSH), root_low);
        let u = x + root;
        let u_low = ((x - u) + root) + root_low;
        let log = log_of_sum(simd, [u, u_low], far, x);
        series.select(near, log).select(x.lt(simd.splat(E::INFINITY)), x)
    }
}

impl<E: InverseHyperbolicConstants> Map<E, 1> for Atanh {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let (one, half) = (simd.splat(E::ONE), simd.splat(E::HALF));
        let magnitude = x.abs();
        let square = magnitude * magnitude;
        let series = (magnitude * square).mul_add(horner(simd, square, E::ATANH), magnitude);

        let over = one + magnitude;
        let over_low = (one - over) + magnitude;
        let under = one - magnitude;
        let quotient = over / under;
        let residual = quotient.neg_mul_add(under, over) + over_low;
        // Both are relative errors of the values they correct.
        let low = (residual + residual) * half_reciprocal(simd, over);
        let log = Reduced::new(simd, quotient, simd.splat(E::ZERO)).ln(simd, Some(low));

        let end = simd.splat(E::INFINITY).select(magnitude.eq(one), simd.splat(E::NAN));
        let y = series.select(magnitude.lt(half), half * log);
        copy_sign(simd, y.select(magnitude.lt(one), end), x)
    }
}

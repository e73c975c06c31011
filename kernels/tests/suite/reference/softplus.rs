//! Softplus and mish in twice the precision of `f64`: the logarithm by a step of Newton's method,
//! tanh of softplus as a rational function of the exponential.

use super::double_double::{DoubleDouble, Scaled, exp};
use super::times;

fn number(x: f64) -> DoubleDouble {
    x.into()
}

/// Softplus of an f32 argument, with an error far below an f32's ULP.
pub fn softplus_wide(x: f64) -> f64 {
    if x.is_nan() { x } else { x.max(0.0) + core_math::log1p(core_math::exp(-x.abs())) }
}

/// Mish; otherwise like [`softplus_wide`].
pub fn mish_wide(x: f64) -> f64 {
    if x < -200.0 || x == f64::INFINITY {
        return if x < 0.0 { -0.0 } else { x };
    }
    // tanh(s) = 1 − 2 / (1 + e^(2 s)) where it does not cancel.
    let w = 1.0 + core_math::exp(x.min(200.0));
    if x > 0.0 { x * (1.0 - 2.0 / (1.0 + w * w)) } else { x * core_math::tanh(softplus_wide(x)) }
}

/// `e^(−|x|)`, also as a plain number, which is 0 below 2^-1000.
fn decay(x: f64) -> (Scaled, DoubleDouble) {
    let e = exp(number(-x.abs()));
    (e, if e.exponent < -1000 { number(0.0) } else { e.mantissa * number(2f64.powi(e.exponent)) })
}

/// `ln(1 + e)` for e from 2^-80 to 1.
fn log1p(e: DoubleDouble) -> DoubleDouble {
    if e.high < 1e-10 {
        return e - e * e * number(0.5) + e * e * e / number(3.0);
    }
    let first = core_math::log1p(e.high);
    let Scaled { mantissa, exponent } = exp(number(-first));
    let rest = (number(1.0) + e) * mantissa * number(2f64.powi(exponent)) - number(1.0);
    number(first) + rest - rest * rest * number(0.5)
}

pub fn softplus(x: f64) -> f64 {
    if x.is_nan() || x > 1000.0 {
        return x;
    }
    let (scaled, e) = decay(x.max(-1000.0));
    if x < -50.0 { scaled.round() } else { (number(x.max(0.0)) + log1p(e)).high }
}

/// Numerator (without the factor `e^(−|x|)` of negative numbers) and denominator of the tangent.
fn ratio(x: f64, e: DoubleDouble) -> (DoubleDouble, DoubleDouble) {
    let (one, two) = (number(1.0), number(2.0));
    if x < 0.0 {
        (two + e, (two + e) * e + two)
    } else {
        (one + two * e, one + two * e + two * e * e)
    }
}

pub fn mish(x: f64) -> f64 {
    if x.is_nan() || x > 1000.0 || x == 0.0 {
        return x;
    }
    if x < -1000.0 {
        return -0.0;
    }
    let (scaled, e) = decay(x);
    let (above, below) = ratio(x, e);
    let quotient = above / below;
    if x < 0.0 {
        times(x, Scaled { mantissa: scaled.mantissa * quotient, exponent: scaled.exponent })
    } else {
        times(x, Scaled { mantissa: quotient, exponent: 0 })
    }
}

/// The derivative of [`mish`].
pub fn mish_slope(x: f64) -> f64 {
    let (scaled, e) = decay(x);
    let (above, below) = ratio(x, e);
    let curvature = number(4.0 * x) * (number(1.0) + e) / (below * below);
    if x < 0.0 {
        let mantissa = scaled.mantissa * (above / below + curvature);
        Scaled { mantissa, exponent: scaled.exponent }.round()
    } else {
        (above / below + curvature * e * e).high
    }
}

//! References for the functions: CORE-MATH's correctly rounded functions and, for composed functions, other
//! formulas than the kernels', in a much higher precision.

mod double_double;
mod normal;
mod softplus;

pub use double_double::DoubleDouble;
use double_double::{Scaled, exp_minus_one, gated_slope, gelu_argument, logistic};
use normal::{density, normal_tail};
pub use softplus::{mish, mish_slope, mish_wide, softplus, softplus_wide};

/// `|y − exact|` in units of f32's spacing at `exact`; at most 0.5 if correctly rounded.
pub fn error_in_ulp(y: f32, exact: f64) -> f64 {
    let exponent = (exact.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    let unit = 2f64.powi(exponent.max(-126) - 23);
    (f64::from(y) - exact).abs() / unit
}

/// Sigmoid of an f32 argument, with an error far below an f32's ULP.
pub fn sigmoid_wide(x: f64) -> f64 {
    1.0 / (1.0 + core_math::exp(-x))
}

/// Silu; otherwise like [`sigmoid_wide`].
pub fn silu_wide(x: f64) -> f64 {
    if x < -200.0 { -0.0 } else { x / (1.0 + core_math::exp(-x)) }
}

/// Gelu in its tanh form; otherwise like [`sigmoid_wide`].
pub fn gelu_tanh_wide(x: f64) -> f64 {
    if x < -30.0 {
        return -0.0;
    }
    let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
    if x > -0.5 {
        0.5 * x * (1.0 + core_math::tanh(u))
    } else {
        x / (1.0 + core_math::exp(-2.0 * u))
    }
}

/// Gelu; otherwise like [`sigmoid_wide`].
pub fn gelu_wide(x: f64) -> f64 {
    if x < -30.0 { -0.0 } else { 0.5 * x * core_math::erfc(-x * std::f64::consts::FRAC_1_SQRT_2) }
}

/// Elu; otherwise like [`sigmoid_wide`].
pub fn elu_wide(x: f64, scale: f64) -> f64 {
    if x < 0.0 { scale * core_math::expm1(x) } else { x }
}

pub fn elu(x: f64, scale: f64) -> f64 {
    let plain = elu_wide(x, scale);
    // Results that overflow, and operations on infinities and NaN.
    if x >= 0.0 || !plain.is_finite() || plain == 0.0 || x.is_infinite() {
        return plain;
    }
    // The scale's exponent is separated, so that a large or subnormal scale does not lose bits.
    let exponent = ((scale.abs().to_bits() >> 52) as i32 - 1023).max(-1022);
    let half = exponent / 2;
    let scale = scale * 2f64.powi(-half) * 2f64.powi(half - exponent);
    let curve = scaled_exp_minus_one(x);
    Scaled { mantissa: curve.mantissa * scale.into(), exponent: exponent + curve.exponent }.round()
}

/// `e^x − 1` of a negative number; the exponent of a tiny argument, which is also that of the result, is kept
/// separately, so that no bits are lost.
fn scaled_exp_minus_one(x: f64) -> Scaled {
    if x > -1e-30 {
        Scaled { mantissa: DoubleDouble::from(x * 2f64.powi(1000)), exponent: -1000 }
    } else {
        Scaled { mantissa: exp_minus_one(x), exponent: 0 }
    }
}

const SELU_SCALE: DoubleDouble =
    DoubleDouble { high: 1.0507009873554805, low: 3.9874847667154144e-17 };
const SELU_ALPHA: DoubleDouble =
    DoubleDouble { high: 1.6732632423543772, low: 1.0657222547717531e-16 };

/// Selu; otherwise like [`sigmoid_wide`].
pub fn selu_wide(x: f64) -> f64 {
    let curve = if x < 0.0 { SELU_ALPHA.high * core_math::expm1(x) } else { x };
    SELU_SCALE.high * curve
}

pub fn selu(x: f64) -> f64 {
    match x {
        x if x == 0.0 || !selu_wide(x).is_finite() => selu_wide(x),
        x if x < 0.0 => {
            let Scaled { mantissa, exponent } = scaled_exp_minus_one(x);
            Scaled { mantissa: mantissa * SELU_ALPHA * SELU_SCALE, exponent }.round()
        }
        x => times(x, Scaled { mantissa: SELU_SCALE, exponent: 0 }),
    }
}

/// Calls `formula`, or returns the limit of a gated function where the formula would overflow or underflow.
fn gated(x: f64, limit: f64, formula: impl FnOnce() -> f64) -> f64 {
    if x.is_nan() || x > limit {
        x
    } else if x < -limit {
        -0.0
    } else if x == 0.0 {
        x
    } else {
        formula()
    }
}

fn times(x: f64, gate: Scaled) -> f64 {
    // The errors of products must not be subnormal.
    let (x, scale) = if x.abs() < 1e-200 { (x * 2f64.powi(300), -300) } else { (x, 0) };
    let mantissa = gate.mantissa * DoubleDouble::from(x);
    Scaled { mantissa, exponent: gate.exponent + scale }.round()
}

pub fn sigmoid(x: f64) -> f64 {
    match x {
        x if x.is_nan() => x,
        x => logistic(x.clamp(-1000.0, 1000.0).into()).0.round(),
    }
}

pub fn silu(x: f64) -> f64 {
    gated(x, 1000.0, || times(x, logistic(x.into()).0))
}

pub fn gelu_tanh(x: f64) -> f64 {
    gated(x, 30.0, || times(x, logistic(gelu_argument(x).0).0))
}

pub fn gelu(x: f64) -> f64 {
    gated(x, 45.0, || {
        let tail = normal_tail(x.abs());
        if x < 0.0 { times(x, tail) } else { times(x, tail.one_minus()) }
    })
}

pub fn hardsigmoid_wide(x: f64) -> f64 {
    (x.clamp(-3.0, 3.0) + 3.0) / 6.0
}

pub fn hardswish_wide(x: f64) -> f64 {
    match x {
        x if x <= -3.0 => -0.0,
        x if x >= 3.0 => x,
        x => x * hardsigmoid_wide(x),
    }
}

pub fn hardsigmoid(x: f64) -> f64 {
    let three = DoubleDouble::from(3.0);
    let sixth = (three + x.clamp(-3.0, 3.0).into()) / (three + three);
    sixth.high
}

pub fn hardswish(x: f64) -> f64 {
    match x {
        x if x.is_nan() || x == 0.0 || x.abs() >= 3.0 => hardswish_wide(x),
        x => {
            let three = DoubleDouble::from(3.0);
            let mantissa = (three + x.into()) / (three + three);
            times(x, Scaled { mantissa, exponent: 0 })
        }
    }
}

/// Φ(x) + x φ(x).
pub fn gelu_slope(x: f64) -> f64 {
    let a = x.abs();
    let (tail, density) = (normal_tail(a), density(a));
    let scale = 2f64.powi(tail.exponent - density.exponent).into();
    let mantissa = tail.mantissa * scale - DoubleDouble::from(a) * density.mantissa;
    let below = Scaled { mantissa, exponent: density.exponent };
    if x < 0.0 { below.round() } else { below.one_minus().round() }
}

/// The derivative of erf, 2/√π e^(−x²).
pub fn erf_slope(x: f64) -> f64 {
    const TWO_BY_SQRT_PI: DoubleDouble =
        DoubleDouble { high: std::f64::consts::FRAC_2_SQRT_PI, low: 1.533545961316588e-17 };
    let x = DoubleDouble::from(x);
    let bell = double_double::exp(x * x * DoubleDouble::from(-1.0));
    Scaled { mantissa: bell.mantissa * TWO_BY_SQRT_PI, exponent: bell.exponent }.round()
}

/// The derivative of selu.
pub fn selu_slope(x: f64) -> f64 {
    if x > 0.0 {
        return SELU_SCALE.high;
    }
    let Scaled { mantissa, exponent } = double_double::exp(x.max(-1000.0).into());
    Scaled { mantissa: mantissa * SELU_ALPHA * SELU_SCALE, exponent }.round()
}

/// The derivative of tanh where its value is `y`.
pub fn tanh_slope(y: f64) -> f64 {
    let (one, y) = (DoubleDouble::from(1.0), DoubleDouble::from(y));
    ((one - y) * (one + y)).high
}

/// The derivative of the logistic function where its value is `y`.
pub fn sigmoid_slope(y: f64) -> f64 {
    let (one, y) = (DoubleDouble::from(1.0), DoubleDouble::from(y));
    (y * (one - y)).high
}

pub fn silu_slope(x: f64) -> f64 {
    gated_slope(x, x.into(), 1.0.into())
}

pub fn gelu_tanh_slope(x: f64) -> f64 {
    let (v, slope) = gelu_argument(x);
    gated_slope(x, v, slope)
}

/// −1, the zero itself, or 1.
pub fn sign(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() { x } else { 1f64.copysign(x) }
}

/// The maximum in the order of IEEE 754's totalOrder, in which −0 is below +0.
pub fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a.total_cmp(&b).is_lt() {
        b
    } else {
        a
    }
}

/// The minimum in the order of [`maximum`].
pub fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a.total_cmp(&b).is_gt() {
        b
    } else {
        a
    }
}

/// The remainder with the sign of `b`, by comparing signs.
pub fn remainder(a: f64, b: f64) -> f64 {
    let rest = a % b;
    match rest == 0.0 || rest.is_nan() || rest.is_sign_negative() == b.is_sign_negative() {
        true => rest,
        false => rest + b,
    }
}

/// The integer below the quotient, from the remainder with the sign of `b`, in 106 bits.
pub fn floor_divide(a: f64, b: f64) -> f64 {
    if b == 0.0 || a.is_nan() || b.is_nan() || a.is_infinite() {
        return if a.is_infinite() && b != 0.0 { f64::NAN } else { a / b };
    }
    if b.is_infinite() {
        return if a != 0.0 && (a < 0.0) != (b < 0.0) { -1.0 } else { 0f64.copysign(a / b) };
    }
    if (a / b).is_infinite() {
        return a / b;
    }
    let rest = a % b;
    let whole = DoubleDouble::from(a) - rest.into();
    let truncated = (whole / b.into()).high.round();
    let below = if rest != 0.0 && (rest < 0.0) != (b < 0.0) { truncated - 1.0 } else { truncated };
    if below == 0.0 { below.copysign(a / b) } else { below }
}

/// `a ln b`; 0 where `a` is zero.
pub fn xlogy(a: f64, b: f64) -> f64 {
    match a == 0.0 && !b.is_nan() {
        true => 0.0,
        false => a * core_math::log(b),
    }
}

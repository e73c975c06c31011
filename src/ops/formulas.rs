//! Definitions in `f64` used by rows of the op table.

/// √(2/π), the inner factor of `UnaryOp::GeluTanh`.
pub(crate) const GELU_TANH_FACTOR: f64 = 0.797_884_560_802_865_4;
/// The cubic coefficient of `UnaryOp::GeluTanh` (Hendrycks & Gimpel, 2016).
pub(crate) const GELU_TANH_CUBIC: f64 = 0.044_715;

/// λ of `UnaryOp::Selu` (Klambauer et al., 2017).
pub(crate) const SELU_SCALE: f64 = 1.050_700_987_355_480_5;
/// α of `UnaryOp::Selu`.
pub(crate) const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;

/// 1/√(2π).
pub(crate) const NORMAL_DENSITY_AT_0: f64 = 0.398_942_280_401_432_7;

pub(super) fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

/// `g` where `low < x < high`, 0 outside, NaN for NaN.
pub(super) fn within(g: f64, x: f64, low: f64, high: f64) -> f64 {
    match x {
        x if x.is_nan() => x,
        x if low < x && (x < high || high.is_infinite()) => g,
        _ => 0.0,
    }
}

/// `x σ(v)` for `x` and `v` of the same sign; −0, the limit, where σ(v) is 0.
pub(super) fn gate(x: f64, v: f64) -> f64 {
    match sigmoid(v) {
        0.0 => -0.0,
        s => x * s,
    }
}

/// Derivative of [`gate`] for `v` a function of `x`: `σ(v) (1 + x (1 - σ(v)) v′)`, or its limit
/// where σ(v) is 0 or 1. `1 - σ(v)` is computed as `σ(-v)`, without cancellation.
pub(super) fn gate_slope(x: f64, v: f64, v_slope: f64) -> f64 {
    let s = sigmoid(v);
    match v.abs() > 800.0 {
        true => s.copysign(v),
        false => s * (1.0 + x * sigmoid(-v) * v_slope),
    }
}

/// `ln(1 + e^x)`.
pub(super) fn softplus(x: f64) -> f64 {
    let positive = if x < 0.0 { 0.0 } else { x };
    positive + (-x.abs()).exp().ln_1p()
}

/// The remainder of the quotient rounded down.
pub(super) fn remainder(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
}

/// The quotient rounded down, from the exact remainder.
pub(super) fn floor_divide(a: f64, b: f64) -> f64 {
    let rest = a % b;
    let truncated = ((a - rest) / b).round();
    let is_above = rest != 0.0 && (rest < 0.0) != (b < 0.0);
    match if is_above { truncated - 1.0 } else { truncated } {
        _ if b == 0.0 => a / b,
        0.0 => 0f64.copysign(a / b),
        below => below,
    }
}

/// Numerator and denominator of `tanh(softplus(x))`, and `e^-|x|`.
pub(super) fn mish_ratio(x: f64) -> [f64; 3] {
    let e = (-x.abs()).exp();
    if x < 0.0 {
        [e * (2.0 + e), e * (2.0 + e) + 2.0, e]
    } else {
        [1.0 + 2.0 * e, 1.0 + 2.0 * e + 2.0 * e * e, e]
    }
}

/// `x tanh(softplus(x))`; −0, the limit, where the tanh is 0.
pub(super) fn mish(x: f64) -> f64 {
    match mish_ratio(x) {
        [0.0, ..] => -0.0,
        [above, below, _] => x * (above / below),
    }
}

/// Derivative of [`mish`], or its limit.
pub(super) fn mish_slope(x: f64) -> f64 {
    let [above, below, e] = mish_ratio(x);
    let bend = 4.0 * e * (1.0 + e) * if x < 0.0 { 1.0 } else { e };
    match x.abs() > 800.0 {
        true => above / below,
        false => above / below + x * bend / (below * below),
    }
}

/// Argument of the tanh in `UnaryOp::GeluTanh`, and its derivative.
pub(super) fn gelu_tanh_argument(x: f64) -> (f64, f64) {
    let square = x * x;
    (
        GELU_TANH_FACTOR * x * (1.0 + GELU_TANH_CUBIC * square),
        GELU_TANH_FACTOR * (1.0 + 3.0 * GELU_TANH_CUBIC * square),
    )
}

/// The upper tail `1 − Φ(a)` of the normal distribution, for `a >= 0`.
pub(super) fn normal_tail(a: f64) -> f64 {
    if a < 1.0 {
        // Φ(a) = 1/2 + φ(a) (a + a³/3 + a⁵/15 + …)
        let (mut term, mut sum, mut n) = (a, a, 1.0);
        while term > 1e-18 * sum {
            n += 2.0;
            term *= a * a / n;
            sum += term;
        }
        return 0.5 - normal_density(a) * sum;
    }
    // Laplace's continued fraction, φ(a) / (a + 1/(a + 2/(a + 3/…))). This number of terms leaves
    // an error of 2^-55 at 1, and less elsewhere.
    let terms = (350.0 / (a * a)) as i32 + 50;
    normal_density(a) / (1..=terms).rev().fold(a, |below, n| a + f64::from(n) / below)
}

/// The normal density φ(a). The rounding error of a² is corrected by a factor.
pub(super) fn normal_density(a: f64) -> f64 {
    let square = a * a;
    let rounded_away = if square.is_finite() { a.mul_add(a, -square) } else { 0.0 };
    (-0.5 * square).exp() * (1.0 - 0.5 * rounded_away) / std::f64::consts::TAU.sqrt()
}

/// `x Φ(x)`; its limit where the tail is 0.
pub(super) fn gelu(x: f64) -> f64 {
    match normal_tail(x.abs()) {
        0.0 if x < 0.0 => -0.0,
        0.0 => x,
        tail if x < 0.0 => x * tail,
        tail => x * (1.0 - tail),
    }
}

/// Derivative of [`gelu`], `Φ(x) + x φ(x)`.
pub(super) fn gelu_slope(x: f64) -> f64 {
    let a = x.abs();
    let below = if a > 40.0 { 0.0 } else { normal_tail(a) - a * normal_density(a) };
    if x < 0.0 { below } else { 1.0 - below }
}

/// Inverse hyperbolic sine; ln 2x where x² would overflow.
pub(super) fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let y = match a > 1e150 {
        true => a.ln() + std::f64::consts::LN_2,
        false => (a + a * a / (1.0 + (a * a + 1.0).sqrt())).ln_1p(),
    };
    y.copysign(x)
}

/// Inverse hyperbolic cosine; ln 2x where x² would overflow.
pub(super) fn acosh(x: f64) -> f64 {
    let d = x - 1.0;
    if x < 1.0 {
        f64::NAN
    } else if x > 1e150 {
        x.ln() + std::f64::consts::LN_2
    } else {
        (d + (d * (d + 2.0)).sqrt()).ln_1p()
    }
}

/// Inverse hyperbolic tangent.
pub(super) fn atanh(x: f64) -> f64 {
    let a = x.abs();
    (0.5 * (2.0 * a / (1.0 - a)).ln_1p()).copysign(x)
}

/// The error function: its series `2/√π e^(-x²) (x + 2x³/3 + 4x⁵/15 + …)` below 1, else 1 minus
/// [`erfc`].
pub(super) fn erf(x: f64) -> f64 {
    if x.abs() >= 1.0 {
        return (1.0 - erfc(x.abs())).copysign(x);
    }
    let (mut term, mut sum, mut n) = (x, x, 1.0);
    while term.abs() > 1e-18 * sum.abs() {
        n += 2.0;
        term *= 2.0 * x * x / n;
        sum += term;
    }
    erf_slope(x) * sum
}

/// The complementary error function, by Laplace's continued fraction where it is small.
pub(super) fn erfc(x: f64) -> f64 {
    if x < 0.5 {
        return 1.0 - erf(x);
    }
    let terms = (175.0 / (x * x)) as i32 + 50;
    let fraction = (1..=terms).rev().fold(x, |below, n| x + 0.5 * f64::from(n) / below);
    0.5 * erf_slope(x) / fraction
}

/// Derivative of [`erf`], `2/√π e^(-x²)`, corrected for the rounding error of x².
pub(super) fn erf_slope(x: f64) -> f64 {
    let square = x * x;
    let rest = if square < 1e4 { x.mul_add(x, -square) } else { 0.0 };
    std::f64::consts::FRAC_2_SQRT_PI * (-square).exp() * (1.0 - rest)
}

//! Numbers as unevaluated sums of two `f64`, about 106 bits: slow, simple, and far more accurate than the
//! functions under test.

use core::ops::{Add, Div, Mul, Sub};

#[derive(Clone, Copy, Debug)]
pub struct DoubleDouble {
    pub high: f64,
    pub low: f64,
}

const fn dd(high: f64, low: f64) -> DoubleDouble {
    DoubleDouble { high, low }
}

const ONE: DoubleDouble = dd(1.0, 0.0);

fn two_sum(a: f64, b: f64) -> DoubleDouble {
    let sum = a + b;
    let b_part = sum - a;
    dd(sum, (a - (sum - b_part)) + (b - b_part))
}

impl From<f64> for DoubleDouble {
    fn from(x: f64) -> Self {
        dd(x, 0.0)
    }
}

impl Add for DoubleDouble {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (highs, lows) = (two_sum(self.high, other.high), two_sum(self.low, other.low));
        let first = two_sum(highs.high, highs.low + lows.high);
        two_sum(first.high, first.low + lows.low)
    }
}

impl Sub for DoubleDouble {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + dd(-other.high, -other.low)
    }
}

impl Mul for DoubleDouble {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let product = self.high * other.high;
        let error = self.high.mul_add(other.high, -product);
        two_sum(product, error + (self.high * other.low + self.low * other.high))
    }
}

impl Div for DoubleDouble {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let mut rest = self;
        let mut quotient = dd(0.0, 0.0);
        for _ in 0..3 {
            let digit = DoubleDouble::from(rest.high / other.high);
            quotient = quotient + digit;
            rest = rest - other * digit;
        }
        quotient
    }
}

/// `mantissa 2^exponent`.
#[derive(Clone, Copy, Debug)]
pub struct Scaled {
    pub mantissa: DoubleDouble,
    pub exponent: i32,
}

impl Scaled {
    /// The nearest `f64`, rounded once from the 106 bits of the mantissa, also if subnormal.
    pub fn round(self) -> f64 {
        let DoubleDouble { high, low } = self.mantissa;
        let magnitude = (high.abs().to_bits() >> 52) as i32 - 1023 + self.exponent;
        if high == 0.0 || !high.is_finite() || magnitude >= -1021 {
            // Two factors, because either alone may exceed the range.
            let half = self.exponent / 2;
            return high * 2f64.powi(half) * 2f64.powi(self.exponent - half);
        }
        // In units of 2^-1074, as a fixed-point number with 60 fractional bits.
        let shift = self.exponent + 1074 + 60;
        let fixed = |x: f64| (x * 2f64.powi(shift.max(-1000))) as i128;
        let units = (fixed(high) + fixed(low)).unsigned_abs();
        let rounded = ((units + (1 << 59)) >> 60) as u64;
        f64::from_bits(rounded).copysign(high)
    }
}

/// `e^x` by Taylor's series on the remainder of a multiple of ln 2.
pub fn exp(x: DoubleDouble) -> Scaled {
    const LN_2: [f64; 3] = [std::f64::consts::LN_2, 2.3190468138462996e-17, 5.707708438416212e-34];
    let k = (x.high / LN_2[0]).round();
    let mut r = x;
    for part in LN_2 {
        let product = k * part;
        r = r - dd(product, k.mul_add(part, -product));
    }
    let series = (1..=30).rev().fold(ONE, |sum, n| ONE + r * sum / f64::from(n).into());
    Scaled { mantissa: series, exponent: k as i32 }
}

/// `e^x − 1` of a negative number; near zero by Taylor's series without its first term.
pub fn exp_minus_one(x: f64) -> DoubleDouble {
    let x = DoubleDouble::from(x);
    if x.high > -0.25 {
        let series = (2..=25).rev().fold(ONE, |sum, n| ONE + x * sum / f64::from(n).into());
        return x * series;
    }
    let e = exp(x.high.max(-200.0).into());
    e.mantissa * 2f64.powi(e.exponent).into() - ONE
}

/// `σ(v)` as `numerator / (1 + e^(-|v|))`, and `1 − σ(v)` rounded to two floats.
pub fn logistic(v: DoubleDouble) -> (Scaled, DoubleDouble) {
    let negative = v.high < 0.0;
    let e = exp(if negative { v } else { dd(-v.high, -v.low) });
    // Below 2^-200 the exponential does not change a denominator of 106 bits.
    let scale = DoubleDouble::from(2f64.powi(e.exponent.max(-1000)));
    let plain = e.mantissa * scale;
    let under = ONE + plain;
    if negative {
        (Scaled { mantissa: e.mantissa / under, exponent: e.exponent }, ONE / under)
    } else {
        (Scaled { mantissa: ONE / under, exponent: 0 }, plain / under)
    }
}

/// `2 √(2/π) (x + 0.044715 x³)` and its derivative.
pub fn gelu_argument(x: f64) -> (DoubleDouble, DoubleDouble) {
    const TWICE_SQRT_2_PI: DoubleDouble = dd(2.0 * 0.7978845608028654, 2.0 * -4.98465440455546e-17);
    const CUBIC: DoubleDouble = dd(0.044715, 2.1960211427085595e-18);
    let x = DoubleDouble::from(x);
    let cubic = CUBIC * x * x;
    (TWICE_SQRT_2_PI * (x + cubic * x), TWICE_SQRT_2_PI * (ONE + DoubleDouble::from(3.0) * cubic))
}

/// `σ(v) (1 + x (1 − σ(v)) slope)`, the derivative of `x σ(v(x))`.
pub fn gated_slope(x: f64, v: DoubleDouble, slope: DoubleDouble) -> f64 {
    let (gate, rest) = logistic(v);
    let bracket = ONE + DoubleDouble::from(x) * rest * slope;
    Scaled { mantissa: gate.mantissa * bracket, exponent: gate.exponent }.round()
}

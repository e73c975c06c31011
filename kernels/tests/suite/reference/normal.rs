//! The normal distribution in twice the precision of `f64`: by the series of its integral, and by
//! Laplace's continued fraction.

use super::double_double::{DoubleDouble, Scaled, exp};

/// √(2π).
const SQRT_2_PI: DoubleDouble =
    DoubleDouble { high: 2.5066282746310007, low: -1.8328579980459167e-16 };

impl Scaled {
    /// `1 − self`, for a number of at most 1.
    pub fn one_minus(self) -> Scaled {
        let plain = self.mantissa * DoubleDouble::from(2f64.powi(self.exponent.max(-1000)));
        Scaled { mantissa: DoubleDouble::from(1.0) - plain, exponent: 0 }
    }
}

/// φ(a).
pub fn density(a: f64) -> Scaled {
    let square = DoubleDouble::from(a) * DoubleDouble::from(a);
    let e = exp(square * DoubleDouble::from(-0.5));
    Scaled { mantissa: e.mantissa / SQRT_2_PI, exponent: e.exponent }
}

/// 1 − Φ(a) for `a >= 0`.
pub fn normal_tail(a: f64) -> Scaled {
    let (density, a) = (density(a), DoubleDouble::from(a));
    if a.high < 5.0 {
        // Φ(a) = 1/2 + φ(a) (a + a³/3 + a⁵/15 + …); at 5 the difference is 2^-21.
        let (mut term, mut sum, mut n) = (a, a, 1.0);
        while term.high > 1e-36 * sum.high {
            n += 2.0;
            term = term * a * a / n.into();
            sum = sum + term;
        }
        let scale = DoubleDouble::from(2f64.powi(density.exponent));
        let mantissa = DoubleDouble::from(0.5) - density.mantissa * scale * sum;
        return Scaled { mantissa, exponent: 0 };
    }
    // φ(a) / (a + 1/(a + 2/(a + 3/…))): 80 terms leave 2^-110 at 5.
    let fraction = (1..=80).rev().fold(a, |below, n| a + DoubleDouble::from(f64::from(n)) / below);
    Scaled { mantissa: density.mantissa / fraction, exponent: density.exponent }
}

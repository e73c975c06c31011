//! Special functions of one `f64`, for ops that have no kernel.
//!
//! Elementary functions are those of `swath_kernels`, so that the bits are the same on every machine. The
//! polynomials are Chebyshev fits in 60 digits, by `tests/vectors/make_special.py`, which also writes the values
//! that `tests/suite/special.rs` compares with; the bounds below are measured there. 16-bit floats and `f32` are
//! computed here and rounded once.

use std::f64::consts::{FRAC_1_SQRT_2, PI, TAU};

/// A function of `swath_kernels` on one number.
macro_rules! elementary {
    ($($name:ident)*) => {$(
        fn $name(x: f64) -> f64 {
            let mut y = [0.0];
            swath_kernels::$name(&[x], &mut y);
            y[0]
        }
    )*};
}
elementary! { cos exp log sin tan }

fn pow(a: f64, b: f64) -> f64 {
    let mut y = [0.0];
    swath_kernels::pow(&[a], &[b], &mut y);
    y[0]
}

/// A polynomial, lowest power first.
fn polynomial(x: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

/// The distance from the nearest integer, and 1 or −1 by the parity of that.
fn from_integer(x: f64) -> (f64, f64) {
    let nearest = x.round_ties_even();
    (x - nearest, if nearest % 2.0 == 0.0 { 1.0 } else { -1.0 })
}

/// `ln |Γ(x)| / ((x − 1) (x − 2))` by powers of x − 1.5, for x in 0.75 … 2.25.
#[rustfmt::skip]
const LOG_GAMMA: [f64; 28] = [
    0.4831289505409809, -0.14595989591430608, 0.0629114010745669, -0.03130848750101227,
    0.016797098630960485, -0.009425622448323203, 0.005446457854796472, -0.0032120740838296074,
    0.0019229158990368815, -0.001164414317864566, 0.00071152564920264, -0.000437997317021582,
    0.00027124635055956466, -0.00016887441283653583, 0.0001058118613273647, -6.643543182433097e-5,
    4.097992923565808e-5, -2.588360371968019e-5, 1.908101021747105e-5, -1.2149438649681043e-5,
    1.9690703261124644e-6, -1.210633406455607e-6, 9.291555092510209e-6, -5.995206585154059e-6,
    -4.3837917597678385e-6, 2.842983219861469e-6, 2.851858796520761e-6, -1.843559234266898e-6,
];

/// `B₂ₖ / (2k (2k − 1))`: Stirling's series, by powers of 1/x².
#[rustfmt::skip]
const STIRLING: [f64; 7] = [
    1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360360.0, 1.0 / 156.0,
];

/// `ln |Γ(x)|`, by Stirling's series from 10 on (DLMF 5.11.1), the recurrence (DLMF 5.5.1), and the reflection formula
/// below −0.25 (DLMF 5.5.3). Within 4 floats for x > −0.25; below, within 4 floats of the larger of 1 and `ln Γ(-x)`,
/// which cancels between the poles. +∞ at the poles 0, −1, −2 …, and for ±∞.
pub(crate) fn lgamma(x: f64) -> f64 {
    match x {
        x if x.is_nan() => x,
        x if x.is_infinite() || (x <= 0.0 && x == x.floor()) => f64::INFINITY,
        x if x < -0.25 => {
            let sine = sin(PI * from_integer(x).0).abs();
            log(PI / (-x * sine)) - lgamma(-x)
        }
        x if x < 0.75 => lgamma(x + 1.0) - log(x.abs()),
        // + 0.0 for a zero without sign.
        x if x < 2.25 => (x - 1.0) * (x - 2.0) * polynomial(x - 1.5, &LOG_GAMMA) + 0.0,
        x if x < 10.0 => {
            let (mut y, mut product) = (x, 1.0);
            while y >= 2.25 {
                y -= 1.0;
                product *= y;
            }
            log(product) + lgamma(y)
        }
        x => {
            // (ln 2π − 1) / 2
            const REST: f64 = 0.418_938_533_204_672_8;
            let series = polynomial(1.0 / (x * x), &STIRLING) / x;
            (x - 0.5) * (log(x) - 1.0) + (REST + series)
        }
    }
}

/// `ψ(x) / (x − x₀)` by powers of x − 2, for x in 1 … 3, where x₀ is the positive root.
#[rustfmt::skip]
const DIGAMMA: [f64; 30] = [
    0.7853075386041053, -0.2607389546830014, 0.10899991701762626, -0.04955103291767291,
    0.023447309597724546, -0.011338432553333682, 0.005552254171350814, -0.0027395728831692795,
    0.0013581421903714414, -0.000675313369799565, 0.00033643237613001386, -0.00016781518722379935,
    8.377966540530644e-5, -4.184622931937881e-5, 2.0891708911121205e-5, -1.044106631983514e-5,
    5.26871942897218e-6, -2.6338311326151924e-6, 1.2119815782595426e-6, -6.059322795045256e-7,
    4.6173797029851077e-7, -2.3086248081342955e-7, -5.6422994902202784e-8, 2.821220170829738e-8,
    1.1540536834062045e-7, -5.77025926771739e-8, -3.5705337308985145e-8, 1.7852672191376552e-8,
    1.0201545142033868e-8, -5.100770214989469e-9,
];
const DIGAMMA_ROOT: [f64; 2] = [1.4616321449683622, 9.549995429965697e-17];

/// `B₂ₖ / 2k`: the asymptotic series, by powers of 1/x².
#[rustfmt::skip]
const DIGAMMA_SERIES: [f64; 7] = [
    1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0,
];

/// The digamma function ψ, the derivative of `ln Γ`, by its asymptotic series from 10 on (DLMF 5.11.2), the
/// recurrence (DLMF 5.5.2) and the reflection formula below −0.25 (DLMF 5.5.4). Within 4 floats for x > 0; below,
/// within 4 floats of the larger of 1 and `π cot πx`. ∓∞ at ±0; NaN at −1, −2 … and −∞.
pub(crate) fn digamma(x: f64) -> f64 {
    match x {
        0.0 => f64::INFINITY.copysign(-x),
        x if x < 0.0 && x == x.floor() => f64::NAN,
        x if x < -0.25 => digamma(1.0 - x) - PI / tan(PI * from_integer(x).0),
        x if x < 1.0 => digamma(x + 1.0) - 1.0 / x,
        x if x < 10.0 => {
            let (mut y, mut sum) = (x, 0.0);
            while y > 3.0 {
                y -= 1.0;
                sum += 1.0 / y;
            }
            let [root, root_low] = DIGAMMA_ROOT;
            (y - root - root_low) * polynomial(y - 2.0, &DIGAMMA) + sum
        }
        x if x.is_infinite() => x,
        x => {
            let square = 1.0 / (x * x);
            log(x) - (0.5 / x + square * polynomial(square, &DIGAMMA_SERIES))
        }
    }
}

/// `B₂ₖ / (2k)!`, for Euler and Maclaurin's formula.
#[rustfmt::skip]
const EULER_MACLAURIN: [f64; 8] = [
    1.0 / 12.0, -1.0 / 720.0, 1.0 / 30240.0, -1.0 / 1209600.0, 1.0 / 47900160.0,
    -691.0 / 1307674368000.0, 1.0 / 74724249600.0, -3617.0 / 10670622842880000.0,
];

/// `n! ζ(n + 1, q)` for positive q, by Euler and Maclaurin's formula (DLMF 25.11.5): all terms are positive but
/// those of the last series, which is small.
fn hurwitz(n: u32, q: f64) -> f64 {
    let s = f64::from(n) + 1.0;
    let factorial: f64 = (1..=n.min(171)).map(f64::from).product();
    // n! a^-s, by logarithms where one of the factors leaves the range.
    let power = |a: f64| match n {
        1 => 1.0 / (a * a),
        2..=4 if a < 1e60 => factorial / (0..n).fold(a, |product, _| product * a),
        _ if n > 170 || s * log(a) > 650.0 => exp(lgamma(s) - s * log(a)),
        _ => factorial * pow(a, -s),
    };
    let (mut sum, mut a, mut k) = (0.0, q, 0.0);
    while a < 2.0 * s + 10.0 {
        // The power multiplies the rounding error of q + k by s.
        let rounded_away = q - (a - k);
        let term = power(a) * (1.0 - s * rounded_away / a);
        sum += term;
        if term * a <= 1e-18 * sum {
            return sum;
        }
        k += 1.0;
        a = q + k;
    }
    let (square, mut factor, mut series) = (1.0 / (a * a), s / a, 0.0);
    for (k, c) in EULER_MACLAURIN.iter().enumerate() {
        series += c * factor;
        let last = s + 2.0 * k as f64;
        factor *= (last + 1.0) * (last + 2.0) * square;
    }
    match a.is_finite() {
        true => {
            let tail = power(a) * (1.0 - s * (q - (a - k)) / a);
            sum + tail * (a / f64::from(n) + (0.5 + series))
        }
        false => 0.0,
    }
}

/// The polygamma function `ψ⁽ⁿ⁾(x)`, `(−1)^(n + 1) n! ζ(n + 1, x)` (DLMF 25.11.12); [`digamma`] for n = 0. Below 0 the
/// sum over all integers is split at x. Within 4 floats for x > 0 and 0 < n ≤ 20; further derivatives, and
/// results below 1e-280, lose as many bits as the logarithm of their powers has. At 0, −1, −2 … it is
/// `(−1)^(n + 1)` ∞; NaN for −∞.
pub(crate) fn polygamma(n: u32, x: f64) -> f64 {
    let sign = if n.is_multiple_of(2) { -1.0 } else { 1.0 };
    match x {
        _ if n == 0 => digamma(x),
        x if x.is_nan() || x == f64::NEG_INFINITY => f64::NAN,
        x if x <= 0.0 && x == x.floor() => sign * f64::INFINITY,
        x if x < 0.0 => {
            let rest = -x - (-x).floor();
            let below = hurwitz(n, rest) - hurwitz(n, 1.0 - x);
            sign * hurwitz(n, 1.0 - rest) + below
        }
        x => sign * hurwitz(n, x),
    }
}

/// A sum of two numbers plus a third one, without rounding errors of the first (Knuth's TwoSum).
fn plus([sum, low]: [f64; 2], x: f64) -> [f64; 2] {
    let next = sum + x;
    let part = next - sum;
    [next, low + ((sum - (next - part)) + (x - part))]
}

/// The modified Bessel function Iₙ, times `e^-|x|` if `scaled`: by its power series (DLMF 10.25.2) below 20, by its
/// asymptotic one (DLMF 10.40.1) from there. Within 4 floats for n = 0 and 1; others serve gradients.
pub(crate) fn bessel_i(n: u32, x: f64, scaled: bool) -> f64 {
    let (order, a) = (f64::from(n), x.abs());
    let magnitude = if a < 20.0 {
        // The rounding error of x²/4 is corrected by the derivative of the series, whose terms are divided by
        // k + n + 1.
        let square = 0.25 * a * a;
        let square_low = 0.25 * a.mul_add(a, -(a * a));
        let (mut term, mut sum, mut slope, mut k) = (1.0, [0.0; 2], 0.0, 1.0);
        while term > 1e-18 * sum[0] {
            sum = plus(sum, term);
            slope += term / (k + order);
            term *= square / (k * (k + order));
            k += 1.0;
        }
        let series = sum[0] + (sum[1] + square_low * slope);
        let series = (1..=n).fold(series, |product, k| product * (0.5 * a / f64::from(k)));
        if scaled { series * exp(-a) } else { series }
    } else {
        let (mut term, mut sum, mut k) = (1.0, [0.0; 2], 1.0);
        while f64::abs(term) > 1e-18 {
            sum = plus(sum, term);
            let odd = 2.0 * k - 1.0;
            term *= (odd * odd - 4.0 * order * order) / (8.0 * a * k);
            k += 1.0;
        }
        let series = if a.is_infinite() { 0.0 } else { (sum[0] + sum[1]) / (TAU * a).sqrt() };
        match a {
            _ if scaled => series,
            f64::INFINITY => a,
            a if a < 700.0 => series * exp(a),
            // e^a overflows before the product does.
            _ => series * exp(0.5 * a) * exp(0.5 * a),
        }
    };
    if n % 2 == 1 { magnitude.copysign(x) } else { magnitude }
}

/// The `n`-th derivative of `sin πx / πx`. For n = 0 within 2 floats. The others, for gradients, are computed by
/// `x s⁽ᵏ⁾ + k s⁽ᵏ⁻¹⁾ = π^(k−1) sin(πx + kπ/2)`, or near 0 by Taylor's series, within 2^-48 of 1. NaN for ±∞.
pub(crate) fn sinc(n: u32, x: f64) -> f64 {
    let (rest, sign) = from_integer(x);
    let [sine, cosine] = [sign * sin(PI * rest), sign * cos(PI * rest)];
    if n == 0 {
        // + 0.0 for a zero without sign.
        return if x == 0.0 { 1.0 } else { sine / (PI * x) + 0.0 };
    }
    if PI * x.abs() > f64::from(n) + 1.0 || x.is_nan() {
        let (mut s, mut power) = (sine / (PI * x), 1.0);
        for k in 1..=n {
            let turned = [sine, cosine, -sine, -cosine][k as usize % 4];
            s = (power * turned - f64::from(k) * s) / x;
            power *= PI;
        }
        return s;
    }
    // Σ (−1)^m π^2m / (2m + 1) · x^(2m − n) / (2m − n)!, over 2m ≥ n
    let (mut sum, mut factor) = (0.0, PI.powi(n as i32));
    for j in 0..40 + n {
        let m2 = j + n;
        if m2.is_multiple_of(2) {
            let term = factor / f64::from(m2 + 1);
            sum += if m2.is_multiple_of(4) { term } else { -term };
        }
        factor *= PI * x / f64::from(j + 1);
    }
    sum
}

/// The inverse of the error function, by Wichura's approximations of the normal quantile (Algorithm AS241, Applied
/// Statistics 37, 1988). Within 6 floats. ±1 gives ±∞, beyond NaN.
pub(crate) fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    if a <= 0.85 {
        let r = 0.180625 - 0.25 * (x * x);
        let [above, below] = QUANTILE[0].map(|c| polynomial(r, &c));
        return 0.5 * x * FRAC_1_SQRT_2 * (above / below);
    }
    let r = (-log(0.5 * (1.0 - a))).sqrt();
    let magnitude = match r {
        f64::INFINITY => r,
        r => {
            let (r, rows) =
                if r <= 5.0 { (r - 1.6, &QUANTILE[1]) } else { (r - 5.0, &QUANTILE[2]) };
            let [above, below] = rows.map(|c| polynomial(r, &c));
            above / below * FRAC_1_SQRT_2
        }
    };
    magnitude.copysign(x)
}

/// Numerators and denominators of AS241, lowest power first.
#[rustfmt::skip]
const QUANTILE: [[[f64; 8]; 2]; 3] = [
    [[
        3.3871328727963665, 133.14166789178438, 1971.5909503065513, 13731.69376550946,
        45921.95393154987, 67265.7709270087, 33430.57558358813, 2509.0809287301227,
    ], [
        1.0, 42.31333070160091, 687.1870074920579, 5394.196021424751,
        21213.794301586597, 39307.89580009271, 28729.085735721943, 5226.495278852854,
    ]],
    [[
        1.4234371107496835, 4.630337846156546, 5.769497221460691, 3.6478483247632045,
        1.2704582524523684, 0.2417807251774506, 0.022723844989269184, 0.0007745450142783414,
    ], [
        1.0, 2.053191626637759, 1.6763848301838038, 0.6897673349851,
        0.14810397642748008, 0.015198666563616457, 0.0005475938084995345, 1.0507500716444169e-9,
    ]],
    [[
        6.657904643501103, 5.463784911164114, 1.7848265399172913, 0.29656057182850487,
        0.026532189526576124, 0.0012426609473880784, 2.7115555687434876e-5, 2.0103343992922881e-7,
    ], [
        1.0, 0.599832206555888, 0.1369298809227358, 0.014875361290850615,
        0.0007868691311456133, 1.8463183175100548e-5, 1.421511758316446e-7, 2.0442631033899397e-15,
    ]],
];

/// `x = m · 2^e` with `½ ≤ |m| < 1`; `(x, 0)` for 0, infinities and NaN.
pub(crate) fn frexp(x: f64) -> (f64, f64) {
    const EXPONENT: u64 = 0x7ff << 52;
    if x == 0.0 || !x.is_finite() {
        return (x, 0.0);
    }
    let (normal, below) = if x.is_subnormal() { (x * 2f64.powi(54), 54.0) } else { (x, 0.0) };
    let bits = normal.to_bits();
    let exponent = ((bits & EXPONENT) >> 52) as f64 - 1022.0 - below;
    (f64::from_bits((bits & !EXPONENT) | (1022 << 52)), exponent)
}

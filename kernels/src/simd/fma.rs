//! Fused multiply-add, `a·b + c` rounded once, in ordinary arithmetic. The portable level uses it
//! to give the bits of the instruction on machines and C libraries that lack it.
//!
//! Both functions first round a sum *to odd*: if it is inexact, to the neighbour with an odd last
//! bit. A second, coarser rounding then rounds correctly (Boldo and Melquiond, "Emulation of FMA
//! and correctly rounded sums: proved algorithms using rounding to odd", 2008).

/// `a·b + c` of `f32`: the product is exact in `f64`.
#[inline(never)]
pub(super) fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    sum_to_odd(f64::from(a) * f64::from(b), f64::from(c)) as f32
}

/// `a·b + c` of `f64`.
#[inline(never)]
pub(super) fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    // Within these bounds no step below overflows and no error term is subnormal.
    let is_moderate = |x: f64| x.abs() < 1e290;
    if !(is_moderate(a) && is_moderate(b) && is_moderate(c) && is_moderate(product))
        || product.abs() < 1e-240
    {
        return fma_by_integers(a, b, c);
    }
    let product_error = error_of_product(a, b, product);
    let (low, low_error) = two_sum(c, product_error);
    let (high, high_error) = two_sum(product, low);
    high + sum_to_odd(low_error, high_error)
}

/// `a + b`, and its rounding error, exactly.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_in_sum = sum - a;
    (sum, (a - (sum - b_in_sum)) + (b - b_in_sum))
}

/// `a + b` rounded to odd; infinities and NaN as in `+`.
#[inline(always)]
fn sum_to_odd(a: f64, b: f64) -> f64 {
    let (sum, error) = two_sum(a, b);
    let bits = sum.to_bits();
    // For infinite sums the error is NaN.
    let is_inexact = !error.is_nan() && error != 0.0;
    if is_inexact && bits & 1 == 0 {
        // The exact sum lies beyond `sum` on the side of the error.
        let is_larger = (error > 0.0) == (sum > 0.0);
        return f64::from_bits(if is_larger { bits + 1 } else { bits - 1 });
    }
    sum
}

/// The rounding error `a·b − product`, exactly: Dekker's product of halves (Veltkamp's splitting).
#[inline(always)]
fn error_of_product(a: f64, b: f64, product: f64) -> f64 {
    let split = |x: f64| {
        let scaled = x * 134_217_729.0; // 2^27 + 1
        let high = scaled - (scaled - x);
        (high, x - high)
    };
    let ((a_high, a_low), (b_high, b_low)) = (split(a), split(b));
    ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
}

/// A finite non-zero number `mantissa · 2^exponent` whose leading bit is bit [`TOP`] of the
/// mantissa.
struct Parts {
    mantissa: u128,
    exponent: i32,
}

/// The leading bit of shifted mantissas. A product has 106 bits, which leaves 15 bits below them
/// for the alignment of two numbers of nearly the same size before bits are lost.
const TOP: u32 = 120;

impl Parts {
    fn new(mantissa: u128, exponent: i32) -> Self {
        let shift = TOP as i32 - mantissa.ilog2() as i32;
        Parts { mantissa: mantissa << shift, exponent: exponent - shift }
    }

    /// Decodes a float into an integer mantissa and an exponent.
    fn decode(x: f64) -> (u128, i32) {
        let bits = x.to_bits();
        let (fraction, biased) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i32);
        match biased {
            0 => (fraction.into(), -1074),
            _ => ((fraction | 1 << 52).into(), biased - 1075),
        }
    }

    /// The mantissa shifted to a larger exponent; its lowest bit is set if bits were lost.
    fn at_exponent(&self, exponent: i32) -> i128 {
        let shift = (exponent - self.exponent).unsigned_abs();
        if shift > TOP {
            return 1;
        }
        let is_inexact = self.mantissa & ((1 << shift) - 1) != 0;
        (self.mantissa >> shift) as i128 | i128::from(is_inexact)
    }
}

/// [`fma_f64`] for any numbers.
#[cold]
fn fma_by_integers(a: f64, b: f64, c: f64) -> f64 {
    // If a product is zero, infinite or NaN, the plain sum is right.
    if a == 0.0 || b == 0.0 || !a.is_finite() || !b.is_finite() {
        return a * b + c;
    }
    if !c.is_finite() {
        return c;
    }
    if c == 0.0 {
        return a * b;
    }
    let ((a_mantissa, a_exponent), (b_mantissa, b_exponent)) = (Parts::decode(a), Parts::decode(b));
    let product = Parts::new(a_mantissa * b_mantissa, a_exponent + b_exponent);
    let (c_mantissa, c_exponent) = Parts::decode(c);
    let addend = Parts::new(c_mantissa, c_exponent);
    let exponent = product.exponent.max(addend.exponent);
    let with_sign = |x: i128, is_negative: bool| if is_negative { -x } else { x };
    let sum =
        with_sign(product.at_exponent(exponent), a.is_sign_negative() != b.is_sign_negative())
            + with_sign(addend.at_exponent(exponent), c.is_sign_negative());
    if sum == 0 {
        return 0.0;
    }
    let magnitude = rounded(sum.unsigned_abs(), exponent);
    if sum < 0 { -magnitude } else { magnitude }
}

/// `mantissa · 2^exponent` rounded to nearest, ties to even.
fn rounded(mantissa: u128, exponent: i32) -> f64 {
    let leading = mantissa.ilog2() as i32;
    // The exponent of the result's ULP, at least that of subnormal numbers.
    let last = (leading + exponent - 52).max(-1074);
    let shift = last - exponent;
    let kept = if shift <= 0 {
        (mantissa << -shift) as u64
    } else if shift > 127 {
        0
    } else {
        let (kept, rest) = ((mantissa >> shift) as u64, mantissa & ((1 << shift) - 1));
        let half = 1 << (shift - 1);
        kept + u64::from(rest > half || rest == half && kept & 1 == 1)
    };
    // `kept` is at most 2^53, so exact; two factors, since 2^last may be subnormal or overflow.
    let power = |k: i32| f64::from_bits(((k + 1023) as u64) << 52);
    let half = (last / 2).min(1000);
    kept as f64 * power(half) * power((last - half).min(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all magnitudes and signs, special values included (xorshift, fixed seed).
    fn numbers() -> impl FnMut() -> u64 {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        }
    }

    /// The standard library's function is the machine's instruction or the C library's function.
    fn assert_f64(a: f64, b: f64, c: f64) {
        for (got, way) in [(fma_f64(a, b, c), "fast"), (fma_by_integers(a, b, c), "integers")] {
            let want = a.mul_add(b, c);
            assert!(
                got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
                "fma({a:e}, {b:e}, {c:e}) by {way} = {got:e}, expected {want:e}"
            );
        }
    }

    fn assert_f32(a: f32, b: f32, c: f32) {
        let (got, want) = (fma_f32(a, b, c), a.mul_add(b, c));
        assert!(
            got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
            "fma({a:e}, {b:e}, {c:e}) = {got:e}, expected {want:e}"
        );
    }

    const SPECIAL: [f64; 12] = [
        0.0,
        1.0,
        f64::INFINITY,
        f64::NAN,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
        1e-160,
        1e160,
        3.0,
        1.0 + f64::EPSILON,
        0.1,
    ];

    #[test]
    fn special_numbers_match_the_machine() {
        let both = SPECIAL.iter().flat_map(|&x| [x, -x]);
        for a in both.clone() {
            for b in both.clone() {
                for c in both.clone() {
                    assert_f64(a, b, c);
                    assert_f32(a as f32, b as f32, c as f32);
                }
            }
        }
    }

    #[test]
    fn random_bits_match_the_machine() {
        let mut next = numbers();
        let count = if cfg!(miri) { 200 } else { 300_000 };
        for _ in 0..count {
            let [a, b, c] = [next(), next(), next()].map(f64::from_bits);
            assert_f64(a, b, c);
            let [a, b, c] = [next(), next(), next()].map(|x| f32::from_bits(x as u32));
            assert_f32(a, b, c);
        }
    }

    #[test]
    fn sums_that_cancel_match_the_machine() {
        let mut next = numbers();
        let count = if cfg!(miri) { 100 } else { 100_000 };
        for round in 0..count {
            // Products with addends that cancel all but their last bits, at every magnitude.
            let scale = 2f64.powi((round % 1500) - 1000);
            let [a, b] = [next(), next()].map(|x| 1.0 + (x >> 40) as f64 * f64::EPSILON);
            let a = a * scale;
            for steps in -2..=2 {
                let c = -f64::from_bits((a * b).to_bits().wrapping_add_signed(steps));
                assert_f64(a, b, c);
                assert_f64(a, b, c * f64::from_bits(next() >> 12 | 0x3ff0 << 48));
                assert_f64(a, b, c * 2f64.powi((next() % 120) as i32 - 60));
            }
            let [a, b] = [next(), next()].map(|x| 1.0 + (x >> 50) as f32 * f32::EPSILON);
            let a = a * scale as f32;
            let c = -f32::from_bits((a * b).to_bits() ^ (round as u32 & 3));
            assert_f32(a, b, c);
            assert_f32(a, b, c * 2f32.powi((next() % 60) as i32 - 30));
        }
    }

    #[test]
    fn addends_break_ties_of_products() {
        let mut next = numbers();
        for _ in 0..if cfg!(miri) { 50 } else { 10_000 } {
            // Odd factors whose product has one bit more than a float, so it is halfway between two
            // floats.
            let [a, b] = [next(), next()].map(|x| (4097 + x % 1600) as u32 | 1);
            let c = 2f32.powi(-((next() % 140) as i32));
            for c in [c, 0.0, -c] {
                assert_f32(a as f32, b as f32, c);
            }
            let [a, b] = [next(), next()].map(|x| (94_906_267 + x % 30_000_000) | 1);
            let c = 2f64.powi(-((next() % 1060) as i32));
            for c in [c, 0.0, -c] {
                assert_f64(a as f64, b as f64, c);
            }
        }
    }
}

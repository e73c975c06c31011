//! The logarithm as a sum of two floats, for functions that multiply it (pow) or take it of a sum
//! (asinh, acosh, atanh).
//!
//! ```text
//! x = 2^e m                        0.71875 <= m < 1.4375
//! 1 + r = c m                      c near 1/m from a table, |r| <= 1/16
//! ln x = (e ln 2 − ln c) + r − r²/2 + r³ Q(r)
//! ```
//!
//! 1. *The table's index is three bits of x's own*: eight intervals of m as long as each other in
//!    bits; the one that holds 1 has c = 1, so that nothing cancels there.
//! 2. *The first sum is exact*: the high parts of ln 2 and of −ln c are multiples of 2^-16 (f64:
//!    2^-42), which leaves room for e.
//! 3. *c m is rounded, and its error kept*: the high part less 1 is exact.
//! 4. r²/2 is kept in two parts, and each addition's error is kept. What remains is the rounding of
//!    r³ Q(r), at most r²/3 of the result: 2^-33 (f64: 2^-62).

use super::horner_by_parity;
use super::log::LogConstants;
use crate::simd::{IntVector, Lanes, Vector};

/// Constants of [`log_parts`], from `tools/coefficients.py log_parts`.
pub(super) trait LogPartsConstants: LogConstants {
    /// Bits of the least m.
    const START: Self::Int;
    /// `(1 << MANTISSA) − 1`.
    const FRACTION: Self::Int;
    /// Added to bits it makes the exponent field of `bits − START` e + EXCESS.
    const OFFSET: Self::Int;
    /// 2^MANTISSA, and the same plus EXCESS.
    const CARRIER: [Self; 2];
    /// The bits of 2^−e less OFFSET's exponent: `2 BIAS + 1` as an exponent field.
    const INVERSE: Self::Int;
    const MINUS_HALF: Self;
    /// c of each interval.
    const RECIPROCAL: [Self; 8];
    /// −ln c, high and low part.
    const LOG: [[Self; 8]; 2];
    /// Q(r) = (ln(1 + r) − r + r²/2) / r³, lowest power first.
    const CUBIC: &'static [Self];
    /// The exponent field as low bits.
    fn exponent<I: IntVector>(shifted: I) -> I;
    /// The three bits below the exponent field as low bits, others above them.
    fn index<I: IntVector>(shifted: I) -> I;
}

macro_rules! layout {
    ($t:ident, $int:ident, $mantissa:literal, $excess:literal) => {
        const START: $int = (0.71875 as $t).to_bits() as $int;
        const FRACTION: $int = (1 << $mantissa) - 1;
        const OFFSET: $int = ($excess << $mantissa) - Self::START;
        const CARRIER: [$t; 2] = [(1u64 << $mantissa) as $t, ((1u64 << $mantissa) + $excess) as $t];
        const INVERSE: $int = (2 * $excess - 1) << $mantissa;
        const MINUS_HALF: $t = -0.5;
        #[inline(always)]
        fn exponent<I: IntVector>(shifted: I) -> I {
            shifted.shr::<$mantissa>()
        }
        #[inline(always)]
        fn index<I: IntVector>(shifted: I) -> I {
            shifted.shr::<{ $mantissa - 3 }>()
        }
    };
}

impl LogPartsConstants for f32 {
    layout!(f32, i32, 23, 128);
    const RECIPROCAL: [f32; 8] =
        [1.3333334, 1.2307693, 1.1428572, 1.0666667, 1.0, 0.8888889, 0.8, 0.72727275];
    const LOG: [[f32; 8]; 2] = [
        [-0.2876892, -0.2076416, -0.13352966, -0.06454468, 0.0, 0.11778259, 0.22314453, 0.31845093],
        [
            7.10673e-6,
            2.1995313e-6,
            -1.774242e-6,
            6.104443e-6,
            0.0,
            4.3543236e-7,
            -9.948369e-7,
            2.7735819e-6,
        ],
    ];
    const CUBIC: &'static [f32] = &[0.33333334, -0.24999899, 0.19999185, -0.16740379, 0.14474714];
}

impl LogPartsConstants for f64 {
    layout!(f64, i64, 52, 1024);
    const RECIPROCAL: [f64; 8] = [
        1.3333333333333333,
        1.2307692307692308,
        1.1428571428571428,
        1.0666666666666667,
        1.0,
        0.8888888888888888,
        0.8,
        0.7272727272727273,
    ];
    const LOG: [[f64; 8]; 2] = [
        [
            -0.28768207245184385,
            -0.20763936477828793,
            -0.13353139262449076,
            -0.0645385211375924,
            0.0,
            0.11778303565643,
            0.22314355131425145,
            0.31845373111855224,
        ],
        [
            6.297908504131321e-14,
            4.3369911444011306e-14,
            -3.1804225197847076e-14,
            2.1239485832617812e-14,
            0.0,
            -4.649178632475319e-14,
            -4.175347699650321e-14,
            -1.765318688778829e-14,
        ],
    ];
    const CUBIC: &'static [f64] = &[
        0.3333333333333333,
        -0.25000000000000294,
        0.2000000000000568,
        -0.16666666665808855,
        0.14285714279385417,
        -0.1250000087615165,
        0.11111114499453252,
        -0.0999959317586755,
        0.0908997300496222,
        -0.08421177664382208,
        0.078198452228338,
    ];
}

/// `ln(2^−shift (x + x_low))` as `[high, low]`, low at most half a place of high, within 2^-32.5
/// (f64: 2^-61.5) of the result, near x = 1 too.
///
/// `x` is positive, normal and finite; `x_low` is at most half a place of x, absent for 0; `shift`
/// an integer, 0 except where the caller has scaled a subnormal number. With `x_low`, x is below a
/// quarter of the largest number. Elsewhere the result is unspecified.
#[inline(always)]
pub(super) fn log_parts<E: LogPartsConstants, S: Lanes<E>>(
    simd: S,
    x: S::V,
    x_low: Option<S::V>,
    shift: S::V,
) -> [S::V; 2] {
    let shifted = x.to_bits() + simd.splat_int(E::OFFSET);
    let fraction = shifted & simd.splat_int(E::FRACTION);
    let m = S::V::from_bits(fraction + simd.splat_int(E::START));
    let [carrier, carrier_excess] = E::CARRIER.map(|c| simd.splat(c));
    let e = S::V::from_bits(E::exponent(shifted) | carrier.to_bits()) - carrier_excess - shift;
    let index = E::index(shifted);
    let c = S::V::lookup8(&E::RECIPROCAL, index, x);
    let [log_c, log_c_low] = [0, 1].map(|i| S::V::lookup8(&E::LOG[i], index, x));
    let [ln2, ln2_low] = E::LN2.map(|c| simd.splat(c));

    let product = c * m;
    let r = product - simd.splat(E::ONE);
    let mut r_low = c.mul_add(m, -product);
    if let Some(x_low) = x_low {
        let inverse = simd.splat_int(E::INVERSE) - (shifted - fraction);
        r_low = (x_low * S::V::from_bits(inverse)).mul_add(c, r_low);
    }

    let half_r = r * simd.splat(E::MINUS_HALF);
    let square = half_r * r;
    let square_low = half_r.mul_add(r, -square);
    // The derivative of r − r²/2 takes r_low along; r³'s is below the rounding of r³.
    let small = r.neg_mul_add(r_low, r_low) + square_low;
    let plain = r * r;
    let rest = (plain * r).mul_add(horner_by_parity(simd, r, plain, E::CUBIC), small);

    let main = e.mul_add(ln2, log_c);
    let first = main + r;
    let first_error = (main - first) + r;
    let second = first + square;
    let second_error = (first - second) + square;
    let low = rest + (e.mul_add(ln2_low, log_c_low) + first_error) + second_error;
    let high = second + low;
    [high, (second - high) + low]
}

#[cfg(test)]
#[path = "../../tests/reference/double_double.rs"]
#[allow(dead_code, reason = "shared with tests that use more of it")]
mod double_double;

#[cfg(test)]
mod tests {
    use super::double_double::{DoubleDouble, exp};
    use super::*;
    use crate::dispatch::{ElementTask, Isa, with_isa};
    use crate::testing::interval_sample_f64;

    /// `log_parts` of `x` and `x_low`, one lane at a time.
    struct Parts<E>(E, Option<E>);

    impl<E: LogPartsConstants> ElementTask<E> for Parts<E> {
        type Output = [E; 2];
        #[inline(always)]
        fn run<S: Lanes<E>>(self, simd: S) -> [E; 2] {
            let low = self.1.map(|low| simd.splat(low));
            log_parts(simd, simd.splat(self.0), low, simd.splat(E::ZERO)).map(|v| {
                let mut lanes = [E::ZERO; 16];
                assert!(S::LANES <= lanes.len());
                // SAFETY: the array holds a whole vector, as just asserted.
                unsafe { simd.store(lanes.as_mut_ptr(), v) };
                lanes[0]
            })
        }
    }

    fn parts<E: LogPartsConstants>(x: E, low: Option<E>) -> [E; 2] {
        E::enter(Parts(x, low))
    }

    /// Positive numbers: all magnitudes, and many near 1.
    fn inputs() -> impl Iterator<Item = f64> {
        let magnitudes = interval_sample_f64(-86.0, 87.0, 20_000).map(f64::exp);
        magnitudes.chain(interval_sample_f64(0.7, 1.5, 20_000)).chain(
            interval_sample_f64(-16.0, -4.0, 20_000).map(|k| 1.0 + k.exp2().copysign(k.sin())),
        )
    }

    /// `ln(x)` in twice the precision: one step of Newton's method.
    fn log_wide(x: DoubleDouble) -> DoubleDouble {
        let y = DoubleDouble::from(core_math::log(x.high));
        let quotient = x * {
            let e = exp(DoubleDouble::from(0.0) - y);
            e.mantissa * DoubleDouble::from(2f64.powi(e.exponent))
        };
        let d = quotient - DoubleDouble::from(1.0);
        y + d - d * d * DoubleDouble::from(0.5) + d * d * d / DoubleDouble::from(3.0)
    }

    fn on_every_isa(check: impl Fn()) {
        for isa in Isa::ALL {
            if with_isa(isa, &check).is_none() {
                println!("skipped: this machine lacks {isa}");
            }
        }
    }

    #[test]
    fn parts_of_f32_are_within_the_stated_error() {
        on_every_isa(|| {
            for x in inputs() {
                let x = x as f32;
                for low in [None, Some(x * 2f32.powi(-25)), Some(x * -2f32.powi(-26))] {
                    let exact = core_math::log(f64::from(x) + f64::from(low.unwrap_or(0.0)));
                    let [high, low] = parts(x, low);
                    let error = f64::from(high) + f64::from(low) - exact;
                    assert!(error.abs() <= exact.abs() * (-32.5f64).exp2(), "{x:e} {error:e}");
                    assert_eq!(high + low, high);
                }
            }
        });
    }

    #[test]
    fn parts_of_f64_are_within_the_stated_error() {
        on_every_isa(|| {
            for x in inputs() {
                for low in [None, Some(x * 2f64.powi(-54)), Some(x * -2f64.powi(-55))] {
                    let sum = DoubleDouble { high: x, low: low.unwrap_or(0.0) };
                    let exact = log_wide(sum);
                    let [high, low] = parts(x, low);
                    let error = (DoubleDouble { high, low } - exact).high;
                    assert!(error.abs() <= exact.high.abs() * (-61.5f64).exp2(), "{x:e} {error:e}");
                    assert_eq!(high + low, high);
                }
            }
        });
    }
}

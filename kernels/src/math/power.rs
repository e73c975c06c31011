//! Powers, by a logarithm of twice the precision and an exponential that takes both its parts.
//!
//! ```text
//! |a| = 2^e m                         1 <= m < 2
//! c   = INVERSE[i] ~ 1/m              i = the first 4 (f64: 5) bits of the mantissa
//! r   = m c − 1                       exact: c has 5 (6) bits, |r| <= 1/16 (1/32)
//! ln |a| = e ln 2 − ln c + ln(1 + r)  ln(1 + r) = r − r²/2 + r³ Q(r)
//!        = high + low                 within 2^-33 of it (f64: 2^-64)
//! |a|^b  = e^(b high + b low)         the product's error carried into the exponential
//! ```
//!
//! 1. *Why twice the precision*: the exponential's argument reaches 104 (745), and its absolute
//!    error is a relative error of the result. A logarithm of 24 (53) bits would cost 104 ULP.
//! 2. *e LN2_HIGH + LOG\[i\] is exact*: both are multiples of 2^-16 (2^-42). The errors of r², of r
//!    − r²/2 and of the sum with it are kept; only r³ Q(r) is simply rounded.
//! 3. *No cancellation near 1*: the first c is 1 and the last 1/2, whose logarithm has exactly the
//!    bits of ln 2, so the exact part is 0 on both sides of 1.
//! 4. *Everything else is rare*: bases that are zero, negative or not finite, and exponents that
//!    are not finite, are handled behind one branch on "any such lane".
//! 5. *The short form* serves normal bases of either sign with normal results, and zeros,
//!    infinities and NaN. It is the same sum in fewer steps: no base is rescaled, no product
//!    clamped, and 2^k is part of t, which changes no bit of t + t p.

use super::exp::{ExpConstants, Parts, ScaledParts, exp_parts, scaled_parts};
use super::horner;
use crate::map::Map;
use crate::simd::{IntVector, Lanes, Mask, Vector};

/// `a^b`, with the special cases of C's `pow` (IEEE 754-2019, section 9.2.1).
///
/// * `a^±0` and `1^b` give 1, even for NaN; otherwise NaN in either gives NaN.
/// * a < 0 gives NaN unless b is an integer or a is −∞; the result has the sign of a if b is odd.
/// * ±0 gives zero for b > 0 and infinity for b < 0, ±∞ the other way round, with the sign of a
///   where b is an odd integer, else positive.
/// * `(−1)^±∞` gives 1; otherwise the limit as b goes to ±∞.
/// * Largest error: 0.743 ULP, 0.772 where the result is subnormal (f32, 2^30 pairs); f64 within 1
///   float.
/// * Overflow gives an infinity, subnormal results are computed, not flushed.
/// * Coefficients: `tools/coefficients.py power`.
pub struct Pow;

/// Constants from `tools/coefficients.py power`.
trait PowConstants: ExpConstants {
    const MIN_NORMAL: Self;
    /// 2^24 or 2^54: makes subnormal numbers normal.
    const RESCALE: Self;
    /// The excess of `split`'s exponent over e, for normal and for rescaled numbers.
    const CARRIED: [Self; 2];
    const HALF: Self;
    /// Above it the argument of the exponential overflows, whatever its low part.
    const LIMIT: Self;
    /// ln 2: a multiple of 2^-16 or 2^-42, and the rest.
    const LN2: [Self; 2];
    /// Q, lowest power first.
    const REST: &'static [Self];
    /// Splits `x = 2^e m`: e plus `CARRIED`, and m.
    fn split<S: Lanes<Self>>(simd: S, x: S::V) -> (S::V, S::V);
    /// c, and −ln c as a multiple of 2^-16 or 2^-42 plus a rest.
    fn lookup<S: Lanes<Self>>(m: S::V) -> [S::V; 3];
}

macro_rules! split {
    ($t:ident, $mantissa:literal) => {
        #[inline(always)]
        fn split<S: Lanes<$t>>(simd: S, x: S::V) -> (S::V, S::V) {
            let bits = x.to_bits();
            let fraction = bits & simd.splat_int((1 << $mantissa) - 1);
            let m = S::V::from_bits(fraction | simd.splat(1.0).to_bits());
            let carrier = simd.splat((1u64 << $mantissa) as $t).to_bits();
            (S::V::from_bits(bits.shr::<$mantissa>() | carrier), m)
        }
    };
}

#[rustfmt::skip]
impl PowConstants for f32 {
    const MIN_NORMAL: Self = Self::MIN_POSITIVE;
    const RESCALE: Self = 16_777_216.0;
    const CARRIED: [Self; 2] = [8_388_735.0, 8_388_759.0];
    const HALF: Self = 0.5;
    const LIMIT: Self = 256.0;
    const LN2: [Self; 2] = [0.69314575, 1.4286068e-6];
    const REST: &'static [Self] = &[
        0.3333333, -0.2500026, 0.20005581, -0.16490963, 0.10456178,
    ];
    split!(f32, 23);
    #[inline(always)]
    fn lookup<S: Lanes<Self>>(m: S::V) -> [S::V; 3] {
        const INVERSE: [f32; 16] = [
        1.0, 0.90625, 0.875, 0.8125, 0.78125, 0.75, 0.71875, 0.6875, 0.65625, 0.625, 0.59375,
        0.59375, 0.5625, 0.53125, 0.53125, 0.5,
    ];
        const LOG: [f32; 16] = [
        0.0, 0.09843445, 0.13352966, 0.2076416, 0.24685669, 0.2876892, 0.33024597, 0.37469482,
        0.42121887, 0.47000122, 0.52130127, 0.52130127, 0.57536316, 0.6325226, 0.6325226,
        0.69314575,
    ];
        const LOG_LOW: [f32; 16] = [
        0.0, 5.6245713e-6, 1.7295386e-6, -2.2367842e-6, 3.3884785e-6, -7.1365325e-6, -4.284809e-6,
        -1.3747773e-6, -5.406994e-6, 2.4085425e-6, -4.345898e-6, -4.345898e-6, 9.857239e-7,
        -2.4264303e-8, -2.4264303e-8, 1.4286068e-6,
    ];
        let index = m.to_bits().shr::<19>();
        [
            S::V::lookup16(&INVERSE, index, m),
            S::V::lookup16(&LOG, index, m),
            S::V::lookup16(&LOG_LOW, index, m),
        ]
    }
}

#[rustfmt::skip]
impl PowConstants for f64 {
    const MIN_NORMAL: Self = Self::MIN_POSITIVE;
    const RESCALE: Self = 18_014_398_509_481_984.0;
    const CARRIED: [Self; 2] = [4_503_599_627_371_519.0, 4_503_599_627_371_573.0];
    const HALF: Self = 0.5;
    const LIMIT: Self = 2048.0;
    const LN2: [Self; 2] = [0.6931471805598903, 5.497923018708371e-14];
    const REST: &'static [Self] = &[
        0.3333333333333333, -0.25000000000000067, 0.20000000000035, -0.16666666666234578,
        0.14285714080082343, -0.12499999470103014, 0.11111593462366287, -0.10006351962617926,
        0.08698730906215009,
    ];
    split!(f64, 52);
    #[inline(always)]
    fn lookup<S: Lanes<Self>>(m: S::V) -> [S::V; 3] {
        const INVERSE: [f64; 32] = [
        1.0, 0.953125, 0.921875, 0.90625, 0.875, 0.859375, 0.828125, 0.8125, 0.796875, 0.765625,
        0.75, 0.734375, 0.71875, 0.703125, 0.6875, 0.671875, 0.65625, 0.640625, 0.640625, 0.625,
        0.609375, 0.59375, 0.59375, 0.578125, 0.5625, 0.5625, 0.546875, 0.53125, 0.53125, 0.515625,
        0.515625, 0.5,
    ];
        const LOG: [f64; 32] = [
        0.0, 0.04800921918626955, 0.08134563945395712, 0.09844007281321865, 0.13353139262449076,
        0.151549898127314, 0.18859116980752333, 0.20763936477828793, 0.22705745063535687,
        0.2670627852489815, 0.28768207245184385, 0.30873548164959175, 0.33024168687052224,
        0.35222059358943625, 0.3746934494413381, 0.3976829676660145, 0.4212134650763346,
        0.44531101665529604, 0.44531101665529604, 0.4700036292456389, 0.4953214372301318,
        0.521296923633372, 0.521296923633372, 0.5479651707155426, 0.5753641449034603,
        0.5753641449034603, 0.603535021870357, 0.6325225587434034, 0.6325225587434034,
        0.6623755218931819, 0.6623755218931819, 0.6931471805598903,
    ];
        const LOG_LOW: [f64; 32] = [
        0.0, 9.106054379130929e-14, -4.713370778300984e-15, 3.3871241029241416e-14,
        3.1859736349078334e-14, -1.1307104809870373e-13, 2.6693431578015818e-14,
        -4.3425422595242564e-14, -1.078736749871691e-14, 6.371947269815667e-14,
        -6.292357389008195e-14, 2.1522127491642888e-14, 5.4612144489920215e-14,
        -8.414918193489195e-14, 7.260466149925637e-14, 9.491339403096215e-14,
        -3.1063837541003616e-14, 6.800902736039238e-14, 6.800902736039238e-14,
        9.667719603235566e-14, -1.0634899648532451e-13, -8.590204918402764e-14,
        -8.590204918402764e-14, -9.521443188786736e-14, 1.0152652766306816e-13,
        1.0152652766306816e-13, -9.883674306179806e-14, 1.0711543657844876e-13,
        1.0711543657844876e-13, 9.681087609174425e-15, 9.681087609174425e-15, 5.497923018708371e-14,
    ];
        let index = m.to_bits().shr::<47>();
        [
            S::V::lookup32(&INVERSE, index, m),
            S::V::lookup32(&LOG, index, m),
            S::V::lookup32(&LOG_LOW, index, m),
        ]
    }
}

/// `ln x` as a sum of two floats, for numbers above zero.
#[inline(always)]
fn log_sum<E: PowConstants, S: Lanes<E>>(simd: S, x: S::V) -> [S::V; 2] {
    let [carried, carried_rescaled] = simd.splat_all(E::CARRIED);
    let subnormal = x.lt(simd.splat(E::MIN_NORMAL));
    let x = (x * simd.splat(E::RESCALE)).select(subnormal, x);
    log_sum_of_normal(simd, x, carried_rescaled.select(subnormal, carried))
}

/// `ln (x 2^k)` as a sum of two floats, for normal x above zero; `carried` is `CARRIED[0]` less k.
#[inline(always)]
fn log_sum_of_normal<E: PowConstants, S: Lanes<E>>(simd: S, x: S::V, carried: S::V) -> [S::V; 2] {
    let (e, m) = E::split(simd, x);
    let e = e - carried;

    let half = simd.splat(E::HALF);
    let [inverse, log, log_low] = E::lookup::<S>(m);
    let r = m.mul_add(inverse, simd.splat(-E::ONE));
    let square = r * r;
    let square_low = r.mul_add(r, -square);
    let near = square.neg_mul_add(half, r);
    let near_low = square.neg_mul_add(half, r - near);

    let [ln2, ln2_low] = simd.splat_all(E::LN2);
    let base = e.mul_add(ln2, log);
    let high = base + near;
    let high_error = (base - high) + near;
    let rest = (r * square).mul_add(horner(simd, r, E::REST), e.mul_add(ln2_low, log_low));
    let rest = high_error + (square_low.neg_mul_add(half, near_low) + rest);
    let sum = high + rest;
    [sum, (high - sum) + rest]
}

impl<E: PowConstants> Map<E, 2> for Pow {
    const HAS_USUAL: bool = true;
    const VECTORS: [usize; 2] = [2, 4];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [a, b]: [S::V; 2]) -> S::V {
        let y = power_of_magnitude(simd, a, b);
        let infinity = simd.splat(E::INFINITY);
        let is_ordinary = simd.splat(E::ZERO).lt(a) & a.lt(infinity) & b.abs().lt(infinity);
        if is_ordinary.all() { y } else { special(simd, a, b, y) }
    }

    #[inline(always)]
    fn usual<S: Lanes<E>>(simd: S, [a, b]: [S::V; 2]) -> (S::V, S::M) {
        usual(simd, a, b)
    }
}

/// `a^b` by the short form, and the mask of the lanes where it has the bits of the long form: |a|
/// is normal and |b ln |a|| at most `EXP_ORDINARY`, or a is zero, infinite or NaN, or b is NaN.
#[inline(always)]
fn usual<E: PowConstants, S: Lanes<E>>(simd: S, a: S::V, b: S::V) -> (S::V, S::M) {
    let magnitude = a.abs();
    let [carried, _] = simd.splat_all(E::CARRIED);
    let [product, product_low] = times(log_sum_of_normal(simd, magnitude, carried), b);
    let ScaledParts { t, r, low } = scaled_parts(simd, product);
    let r = r + (low + product_low);
    let y = (r + r * r * horner(simd, r, E::POLY)).mul_add(t, t);

    let [least, infinity] = simd.splat_all([E::MIN_NORMAL, E::INFINITY]);
    let is_normal = product.abs().le(simd.splat(E::EXP_ORDINARY));
    let plain = least.le(a) & a.lt(infinity) & is_normal;
    if plain.all() {
        return (y, plain);
    }
    let is_special = magnitude.eq(simd.splat(E::ZERO)) | !magnitude.lt(infinity) | b.is_nan();
    let holds = is_special | least.le(magnitude) & is_normal;
    (special(simd, a, b, y), holds)
}

/// `b (high + low)` as a sum of two floats.
#[inline(always)]
fn times<V: Vector>([high, low]: [V; 2], b: V) -> [V; 2] {
    let product = b * high;
    [product, b.mul_add(low, b.mul_add(high, -product))]
}

/// `|a|^b` for finite numbers, a not zero.
#[inline(always)]
fn power_of_magnitude<E: PowConstants, S: Lanes<E>>(simd: S, a: S::V, b: S::V) -> S::V {
    let [product, product_low] = times(log_sum(simd, a.abs()), b);
    let in_range = product.abs().lt(simd.splat(E::LIMIT));
    let product_low = product_low.select(in_range, simd.splat(E::ZERO));
    let [least, most] = simd.splat_all(E::EXP_RANGE);
    let product = most.min_or_other(least.max_or_other(product));
    let Parts { k, t, r, s } = exp_parts(simd, product, Some(product_low));
    (r + s).mul_add(t, t).scale_by_power_of_two(k)
}

/// `a^b`, given `y` = `|a|^b` for finite numbers, a not zero.
#[inline(always)]
fn special<E: PowConstants, S: Lanes<E>>(simd: S, a: S::V, b: S::V, y: S::V) -> S::V {
    let (zero, one) = (simd.splat(E::ZERO), simd.splat(E::ONE));
    let infinity = simd.splat(E::INFINITY);
    let magnitude = a.abs();
    let is_integer = b.round_ties_even().eq(b);
    let half = b * simd.splat(E::HALF);
    let is_odd = is_integer & !half.round_ties_even().eq(half);
    let (is_zero, is_infinite) = (magnitude.eq(zero), magnitude.eq(infinity));
    let rising = (zero.lt(b) & is_infinite) | (b.lt(zero) & is_zero);
    let limit = infinity.select(rising, zero);

    let y = limit.select(is_zero | is_infinite, y);
    let y = one.select(magnitude.eq(one), y);
    let y = simd.splat(E::NAN).select(a.lt(zero) & !(is_integer | is_infinite), y);
    let has_sign = zero.to_bits().gt(a.to_bits());
    let y = (-y).select(is_odd & has_sign, y);
    let y = (a + b).select(a.is_nan() | b.is_nan(), y);
    one.select(b.eq(zero) | a.eq(one), y)
}

//! The exponential, and the argument reduction that tanh, sigmoid, silu and gelu share with it.
//!
//! ```text
//! n = round(8 x / ln 2)               n = 8 k + j, 0 <= j < 8
//! r = x − n ln 2 / 8                  |r| <= ln 2 / 16 = 0.0434
//! e^x = 2^k · 2^(j/8) · e^r
//!     = 2^k · (t + t p)               t = 2^(j/8) from a table, p = e^r − 1 = r + r² q(r)
//! ```
//!
//! 1. *Rounding by addition.* Adding 1.5 · 2^23 (f64: 2^52) leaves n in the low bits of the sum:
//!    they serve as table index (`& 7`) and, shifted by 3, as k. Subtracting it again gives n as a
//!    float.
//! 2. *The first subtraction is exact.* With c the nearest float to ln 2 / 8, x − n c is a multiple
//!    of c's ULP (for n = ±1 and small x: Sterbenz) and below 2^-4, so one fused multiply-add
//!    computes it without error. The part of n ln 2 / 8 that n c misses is added back as n times
//!    the low part.
//! 3. *The table's rounding is folded into r.* t is 2^(j/8) rounded; ln(2^(j/8) / t), some 1e-8
//!    (f64: 1e-17), is added to the low part of n ln 2 / 8, so that r itself is rounded once.
//! 4. *The error is little more than that of one addition.* r and p are rounded by 2^-29 at most
//!    (f64: 2^-58), half an ULP of numbers below 1/16. The result's ULP is at least 2^-24 where t
//!    is 1, and 2^-23 where t is up to 1.84: the two roundings move it by 0.063 ULP. r² q is below
//!    0.001; its rounding and the error of q add 0.009 more: t + t p is within 0.572 ULP.
//! 5. *The power of two costs one addition*: the table holds the bits of t less j eighths of an
//!    exponent step; adding n eighths gives 2^k t.
//! 6. *Results that may be subnormal, infinite or NaN* take a slow path, behind one branch on "any
//!    such lane". The argument is clamped (in an operand order that keeps NaN) and k kept apart.
//!    `t + t p` is rounded to the multiple of 2^-149 (f64: 2^-1074) that it will become by adding a
//!    number with that ULP, so that it is not rounded twice.

use super::horner;
use crate::map::{Map, usual_or};
use crate::simd::{Float, IntVector, Lanes, Vector};

/// `e^x`.
///
/// * Domain: all numbers. Below half of the smallest subnormal the result is +0, above the largest
///   number +∞; subnormal results are computed, not flushed.
/// * −∞ gives +0, +∞ gives +∞, ±0 gives 1, NaN gives NaN.
/// * Largest error: 0.572 ULP, 0.533 where the result is subnormal (f32, all inputs); f64 within 1
///   float.
/// * Coefficients: `tools/coefficients.py exp`; q minimises the error relative to r for
///   |r| <= 0.0434: 2^-27.5 (f32), 2^-61.3 (f64).
pub struct Exp;

/// Constants of the reduction and of q, from `tools/coefficients.py exp`.
pub(super) trait ExpConstants: Float {
    /// 8 / ln 2.
    const INVERSE: Self;
    /// Adding it to a number rounds that to an integer.
    const SHIFTER: Self;
    /// Bits of `SHIFTER`, shifted right by 3.
    const SHIFTER_EIGHTH: Self::Int;
    /// ln 2 / 8, high and low part.
    const STEP: [Self; 2];
    /// 2^(j/8), rounded.
    const TABLE: [Self; 8];
    /// ln(2^(j/8) / TABLE\[j\]).
    const TABLE_LOG: [Self; 8];
    /// q(r) = (e^r − 1 − r) / r², lowest power first.
    const POLY: &'static [Self];
    /// Below the first the result rounds to +0, above the second to +∞.
    const EXP_RANGE: [Self; 2];
    /// While |x| is at most this, the result and its table entry are normal.
    const EXP_ORDINARY: Self;
    /// The bits of `TABLE[j]` less j eighths of an exponent step.
    const SCALED_TABLE: [Self; 8];
    /// 1.
    const ONE_INT: Self::Int;
    /// `n` in units of an eighth of the exponent field.
    fn eighths<I: IntVector>(n: I) -> I;
    /// `k` as an exponent field.
    fn exponent_field<I: IntVector>(k: I) -> I;
}

macro_rules! scaling {
    ($t:ident, $uint:ident, $mantissa:literal) => {
        const SCALED_TABLE: [$t; 8] = {
            let mut table = Self::TABLE;
            let mut j = 0;
            while j < 8 {
                table[j] = $t::from_bits(table[j].to_bits() - ((j as $uint) << ($mantissa - 3)));
                j += 1;
            }
            table
        };
        const ONE_INT: Self::Int = 1;
        #[inline(always)]
        fn eighths<I: IntVector>(n: I) -> I {
            n.shl::<{ $mantissa - 3 }>()
        }
        #[inline(always)]
        fn exponent_field<I: IntVector>(k: I) -> I {
            k.shl::<$mantissa>()
        }
    };
}

impl ExpConstants for f32 {
    const INVERSE: f32 = 11.54156;
    const SHIFTER: f32 = 12_582_912.0;
    const SHIFTER_EIGHTH: i32 = (Self::SHIFTER.to_bits() >> 3) as i32;
    const STEP: [f32; 2] = [0.0866434, -2.3808178e-10];
    const TABLE: [f32; 8] = [
        1.0,
        1.0905077,
        1.1892071,
        1.2968396,
        std::f32::consts::SQRT_2,
        1.5422108,
        1.6817929,
        1.8340081,
    ];
    const TABLE_LOG: [f32; 8] = [
        0.0,
        -1.19921575e-8,
        3.193418e-8,
        -3.0990723e-8,
        1.7114271e-8,
        5.233334e-9,
        -1.4719606e-8,
        -6.1282597e-9,
    ];
    const POLY: &'static [f32] = &[0.5, 0.1666797, 0.041667882];
    const EXP_RANGE: [f32; 2] = [-104.0, 89.0];
    const EXP_ORDINARY: f32 = 87.25;
    scaling!(f32, u32, 23);
}

impl ExpConstants for f64 {
    const INVERSE: f64 = 11.541560327111707;
    const SHIFTER: f64 = 6_755_399_441_055_744.0;
    const SHIFTER_EIGHTH: i64 = (Self::SHIFTER.to_bits() >> 3) as i64;
    const STEP: [f64; 2] = [0.08664339756999316, 2.8988085173078744e-18];
    const TABLE: [f64; 8] = [
        1.0,
        1.0905077326652577,
        1.189207115002721,
        1.2968395546510096,
        std::f64::consts::SQRT_2,
        1.5422108254079407,
        1.681792830507429,
        1.8340080864093424,
    ];
    const TABLE_LOG: [f64; 8] = [
        0.0,
        -2.7939114859515733e-17,
        3.3484623336251524e-17,
        1.9572585293112036e-17,
        -6.835808657661923e-17,
        5.1548301170786783e-17,
        4.875160526227062e-17,
        1.790126907604513e-17,
    ];
    const POLY: &'static [f64] = &[
        0.5,
        0.16666666666667004,
        0.041666666666666755,
        0.008333333322450627,
        0.0013888888883519309,
        0.00019842267068483245,
        2.480240785783342e-5,
    ];
    const EXP_RANGE: [f64; 2] = [-746.0, 710.0];
    const EXP_ORDINARY: f64 = 708.0;
    scaling!(f64, u64, 52);
}

/// `e^x = 2^k t (1 + r + s)`, r rounded once and s = r² q(r), within 0.022 r.
pub(super) struct Parts<V: Vector> {
    pub k: V::Int,
    pub t: V,
    pub r: V,
    pub s: V,
}

impl<V: Vector> Parts<V> {
    /// `e^r − 1` as a sum of two floats, high part first.
    #[inline(always)]
    pub fn expm1(&self) -> [V; 2] {
        let high = self.r + self.s;
        [high, (self.r - high) + self.s]
    }
}

/// The parts of `e^(x + x_low)`. `x` must be within 1.1 times the exponent range, `x_low` far below
/// its ULP.
#[inline(always)]
pub(super) fn exp_parts<E: ExpConstants, S: Lanes<E>>(
    simd: S,
    x: S::V,
    x_low: Option<S::V>,
) -> Parts<S::V> {
    let shifter = simd.splat(E::SHIFTER);
    let shifted = x.mul_add(simd.splat(E::INVERSE), shifter);
    let n = shifted - shifter;
    let bits = shifted.to_bits();
    let k = bits.shr::<3>() - simd.splat_int(E::SHIFTER_EIGHTH);
    let t = S::V::lookup8(&E::TABLE, bits, x);
    let [step_high, step_low] = simd.splat_all(E::STEP);
    let mut low = n.neg_mul_add(step_low, S::V::lookup8(&E::TABLE_LOG, bits, x));
    if let Some(x_low) = x_low {
        low = low + x_low;
    }
    let r = n.neg_mul_add(step_high, x) + low;
    let s = r * r * horner(simd, r, E::POLY);
    Parts { k, t, r, s }
}

/// `2^(n/8)` where normal, rounded like the table; n is in the low bits of `bits`.
#[inline(always)]
pub(super) fn scaled_table<E: ExpConstants, S: Lanes<E>>(bits: S::I, like: S::V) -> S::V {
    let entry = S::V::lookup8(&E::SCALED_TABLE, bits, like);
    S::V::from_bits(entry.to_bits() + E::eighths(bits))
}

/// `e^x = t e^(r + low)`, with `r` exact and `t` including its power of two, for |x| up to
/// `EXP_ORDINARY`.
pub(super) struct ScaledParts<V> {
    pub t: V,
    pub r: V,
    pub low: V,
}

/// The parts of `e^x`; meaningless beyond `EXP_ORDINARY` and for NaN.
#[inline(always)]
pub(super) fn scaled_parts<E: ExpConstants, S: Lanes<E>>(simd: S, x: S::V) -> ScaledParts<S::V> {
    let shifter = simd.splat(E::SHIFTER);
    let shifted = x.mul_add(simd.splat(E::INVERSE), shifter);
    let n = shifted - shifter;
    let bits = shifted.to_bits();
    let [step_high, step_low] = simd.splat_all(E::STEP);
    ScaledParts {
        t: scaled_table::<E, S>(bits, x),
        r: n.neg_mul_add(step_high, x),
        low: n.neg_mul_add(step_low, S::V::lookup8(&E::TABLE_LOG, bits, x)),
    }
}

impl<V: Vector> ScaledParts<V> {
    /// `e^x = t + t p` as `(t, p)`.
    #[inline(always)]
    pub fn factors<E: ExpConstants, S: Lanes<E, V = V, I = V::Int, M = V::Mask>>(
        self,
        simd: S,
    ) -> (V, V) {
        let r = self.r + self.low;
        (self.t, (r * r).mul_add(horner(simd, r, E::POLY), r))
    }
}

/// `2^k (high + low)`, rounded once even if it is subnormal. `high` is in 0..=2^22, `low` within an
/// eighth of it, `k` in the range of `scale_by_power_of_two` and below 256.
#[inline(always)]
pub(super) fn scale_sum<E: ExpConstants, S: Lanes<E>>(
    simd: S,
    high: S::V,
    low: S::V,
    k: S::I,
) -> S::V {
    // 2^(EMIN − k): if the sum is below it, the result is subnormal, and adding it first gives the
    // sum the ULP of the smallest subnormal. From k = 1 on the bits are not those of a positive
    // number.
    let threshold = S::V::from_bits(E::exponent_field(simd.splat_int(E::ONE_INT) - k));
    let sum = high + low;
    let shifted = threshold + high;
    let remainder = high - (shifted - threshold);
    let rounded = (shifted + (remainder + low)) - threshold;
    rounded.select(sum.lt(threshold), sum).scale_by_power_of_two(k)
}

/// `e^x` for every x, on the slow path.
#[inline(always)]
pub(super) fn exp_everywhere<E: ExpConstants, S: Lanes<E>>(simd: S, x: S::V) -> S::V {
    let [low, high] = simd.splat_all(E::EXP_RANGE);
    let x = high.min_or_other(low.max_or_other(x));
    let Parts { k, t, r, s } = exp_parts(simd, x, None);
    scale_sum(simd, t, t * (r + s), k)
}

impl<E: ExpConstants> Map<E, 1> for Exp {
    const HAS_USUAL: bool = true;
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        usual_or(
            usual(simd, x),
            #[inline(always)]
            || exp_everywhere(simd, x),
        )
    }

    #[inline(always)]
    fn usual<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> (S::V, S::M) {
        usual(simd, x)
    }
}

/// `e^x` where it is normal, and the mask of those lanes.
#[inline(always)]
fn usual<E: ExpConstants, S: Lanes<E>>(simd: S, x: S::V) -> (S::V, S::M) {
    let (t, p) = scaled_parts(simd, x).factors(simd);
    (p.mul_add(t, t), x.abs().le(simd.splat(E::EXP_ORDINARY)))
}

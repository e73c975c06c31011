//! `ln(1 + x)`, accurate near zero too.
//!
//! ```text
//! 1 + x = 2^e m                        0.75 <= m < 1.5, e from the rounded sum
//! r = x 2^−e + (2^−e − 1)              m − 1 of the exact sum
//! ln(1 + x) = e ln 2 + r − r²/2 + r³ Q(r)
//! ```
//!
//! 1. *r keeps all of x*: one fused multiply-add, which is exact from 1/2 on because m starts at
//!    3/4 (at 1/√2 it would need two more bits). Beyond 2^24 (f64: 2^53) its error is far below the
//!    ULP of e ln 2.
//! 2. *The rest is like `log.rs`*, with a Q for −1/4 <= r <= 1/2.
//! 3. −1 and below, large numbers, +∞ and NaN are handled behind one branch.
//! 4. The sign bit of x is set in the result, which only changes the sign of a zero.

use super::horner_by_parity;
use super::log::LogConstants;
use crate::map::Map;
use crate::simd::{IntVector, Lanes, Mask, Vector};

/// `ln(1 + x)`.
///
/// * Domain: numbers above −1; ±0 and subnormal numbers give themselves.
/// * −1 gives −∞, +∞ gives +∞, below −1 and NaN give NaN.
/// * Largest error: 0.784 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: `tools/coefficients.py log1p`; Q minimises the error relative to ln(1 + r):
///   2^-29.7 (f32), 2^-64.0 (f64).
pub struct Log1p;

/// Constants of the split and of Q, from `tools/coefficients.py log1p`.
pub(super) trait Log1pConstants: LogConstants {
    /// Bits of the smallest m.
    const LEAST: Self::Int;
    /// `(1 << MANTISSA) − 1`.
    const FRACTION: Self::Int;
    /// Added to the bits less those of the smallest m, it makes their exponent field e + EXCESS.
    const OFFSET: Self::Int;
    /// 2^MANTISSA, and the same plus EXCESS.
    const CARRIER: [Self; 2];
    /// Subtracting the exponent field e + EXCESS from it gives the bits of 2^−e.
    const INVERSE: Self::Int;
    const MINUS_HALF: Self;
    /// From here on 1 is far below the ULP of x.
    const LARGE: Self;
    /// Q(r) = (ln(1 + r) − r + r²/2) / r³, lowest power first.
    const SERIES: &'static [Self];
    /// The exponent field as low bits.
    fn exponent<I: IntVector>(shifted: I) -> I;
}

macro_rules! layout {
    ($t:ident, $int:ident, $mantissa:literal, $excess:literal) => {
        const LEAST: $int = (0.75 as $t).to_bits() as $int;
        const FRACTION: $int = (1 << $mantissa) - 1;
        const OFFSET: $int = ($excess << $mantissa) - Self::LEAST;
        const CARRIER: [$t; 2] = [(1u64 << $mantissa) as $t, ((1u64 << $mantissa) + $excess) as $t];
        const INVERSE: $int = (2 * $excess - 1) << $mantissa;
        const MINUS_HALF: $t = -0.5;
        #[inline(always)]
        fn exponent<I: IntVector>(shifted: I) -> I {
            shifted.shr::<$mantissa>()
        }
    };
}

impl Log1pConstants for f32 {
    layout!(f32, i32, 23, 128);
    const LARGE: f32 = (1u64 << 50) as f32;
    const SERIES: &'static [f32] = &[
        0.33333346,
        -0.25000167,
        0.19999152,
        -0.16654712,
        0.14285818,
        -0.12750044,
        0.11646696,
        -0.08904132,
        0.035926983,
    ];
}

impl Log1pConstants for f64 {
    layout!(f64, i64, 52, 1024);
    const LARGE: f64 = (1u128 << 100) as f64;
    const SERIES: &'static [f64] = &[
        0.3333333333333333,
        -0.24999999999999917,
        0.20000000000000628,
        -0.16666666666694635,
        0.14285714285677154,
        -0.12499999996530688,
        0.111111111065493,
        -0.10000000211102907,
        0.090909097554127,
        -0.08333326654875409,
        0.0769227383934074,
        -0.0714295100416776,
        0.06667528361637674,
        -0.06250244785486549,
        0.05871496874749354,
        -0.055306131087422834,
        0.05306628899526621,
        -0.05267036464928085,
        0.05077925873808128,
        -0.04025895812154736,
        0.02114416557253779,
        -0.005230988572437258,
    ];
}

/// `ln(1 + r) − r + carry` for −1/4 <= r <= 1/2.
#[inline(always)]
pub(super) fn correction<E: Log1pConstants, S: Lanes<E>>(simd: S, r: S::V, carry: S::V) -> S::V {
    let square = r * r;
    let cubic = (square * r).mul_add(horner_by_parity(simd, r, square, E::SERIES), carry);
    (r * simd.splat(E::MINUS_HALF)).mul_add(r, cubic)
}

impl<E: Log1pConstants> Map<E, 1> for Log1p {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let one = simd.splat(E::ONE);
        let shifted = (one + x).to_bits() + simd.splat_int(E::OFFSET);
        let fraction = shifted & simd.splat_int(E::FRACTION);
        let [carrier, carrier_excess] = simd.splat_all(E::CARRIER);
        let e = S::V::from_bits(E::exponent(shifted) | carrier.to_bits()) - carrier_excess;
        let inverse = S::V::from_bits(simd.splat_int(E::INVERSE) - (shifted - fraction));
        let mut r = x.mul_add(inverse, inverse - one);

        let large = simd.splat(E::LARGE);
        let unusual = !((-one).lt(x) & x.lt(large)).all();
        if unusual {
            let m = S::V::from_bits(fraction + simd.splat_int(E::LEAST));
            r = (m - one).select(large.le(x), r);
        }

        let [ln2_high, ln2_low] = simd.splat_all(E::LN2);
        let main = e * ln2_high;
        let sum = main + r;
        let error = (main - sum) + r;
        let mut y = sum + correction(simd, r, e.mul_add(ln2_low, error));
        if unusual {
            let infinity = simd.splat(E::INFINITY);
            y = infinity.select(x.eq(-one), y);
            y = simd.splat(E::NAN).select(x.lt(-one), y);
            y = x.select(x.is_nan() | x.eq(infinity), y);
        }
        let sign = x.to_bits() & simd.splat(-E::ZERO).to_bits();
        S::V::from_bits(y.to_bits() | sign)
    }
}

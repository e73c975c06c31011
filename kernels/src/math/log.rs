//! The natural logarithm.
//!
//! ```text
//! x = 2^e m                          0.6965 <= m < 1.393
//! r = m − 1                          exact
//! ln x = e ln 2 + r + c(r)           c(r) = ln(1 + r) − r
//! sum  = e LN2_HIGH + r              error of this addition kept
//! ln x = sum + (c(r) + e LN2_LOW + error)
//!
//! f32:  c(r) = −r²/2 + r³ Q(r)                                Q of degree 9
//! f64:  c(r) = −r²/2 + s (r²/2 + z R(z)),  s = r / (2 + r), z = s²,   R of degree 6
//! ```
//!
//! 1. *Splitting at 0.6965 instead of √2/2* balances the two ends of r for Q.
//! 2. *e LN2_HIGH is exact*: LN2_HIGH has as many zero bits at its end as e has bits.
//! 3. *The last addition dominates*: its error is half a place; the bracket is at most a third of
//!    the sum, so that its own rounding adds less than 0.2 places.
//! 4. The f64 form is the series of 2 artanh(s), which converges twice as fast as one in r: one
//!    division against ten more coefficients.
//! 5. Subnormal numbers (scaled by 2^24 or 2^54 first), zeros, negative numbers, +∞ and NaN are
//!    handled behind one branch on "any such lane".

use super::horner;
use crate::map::Map1;
use crate::simd::{Float, IntVector, Lanes, Mask, Vector};

/// `ln x`.
///
/// * Domain: numbers above zero, subnormal ones included.
/// * ±0 gives −∞, +∞ gives +∞, below zero and NaN give NaN; ln 1 = +0.
/// * Largest error: 0.678 ULP at 1.2777213 (f32, all inputs); f64 within 1 float on 67 million
///   spread inputs, correctly rounded on 99.1 %.
/// * Coefficients: `tools/coefficients.py log`; Q and R minimise the error relative to ln(1 + r):
///   2^-31.8 (f32), 2^-58.3 (f64).
pub struct Log;

/// Constants of the reduction and of Q or R, from `tools/coefficients.py log`.
pub(super) trait LogConstants: Float {
    const MIN_NORMAL: Self;
    /// 2^24 or 2^54: makes subnormal numbers normal.
    const RESCALE: Self;
    /// log2 of `RESCALE`.
    const RESCALE_EXPONENT: Self;
    /// ln 2: a high part with zeros at its end, and the rest.
    const LN2: [Self; 2];
    /// `x = 2^e m` for normal positive numbers.
    fn split<S: Lanes<Self>>(simd: S, x: S::V) -> (S::V, S::V);
    /// `c(r) + carry`.
    fn correction<S: Lanes<Self>>(simd: S, r: S::V, carry: S::V) -> S::V;
}

/// `split`: with B the bits of x and M those of 0.6965, B − M has e in its exponent field, and its
/// mantissa field is the distance of m from 0.6965. Adding 128 (1024) to the exponent first makes
/// it positive; as the low bits of 2^23 (2^52) it turns into a float by one subtraction.
macro_rules! split {
    ($t:ident, $int:ident, $mantissa:literal, $excess:literal) => {
        #[inline(always)]
        fn split<S: Lanes<$t>>(simd: S, x: S::V) -> (S::V, S::V) {
            const START: $int = (0.6965 as $t).to_bits() as $int;
            const TWO_TO_MANTISSA: $t = (1u64 << $mantissa) as $t;
            let offset = simd.splat_int(($excess << $mantissa) - START);
            let shifted = x.to_bits() + offset;
            let fraction = shifted & simd.splat_int((1 << $mantissa) - 1);
            let m = S::V::from_bits(fraction + simd.splat_int(START));
            let carrier = simd.splat(TWO_TO_MANTISSA).to_bits();
            let e = S::V::from_bits(shifted.shr::<$mantissa>() | carrier);
            (e - simd.splat(TWO_TO_MANTISSA + $excess as $t), m)
        }
    };
}

impl LogConstants for f32 {
    const MIN_NORMAL: f32 = f32::MIN_POSITIVE;
    const RESCALE: f32 = 16_777_216.0;
    const RESCALE_EXPONENT: f32 = 24.0;
    const LN2: [f32; 2] = [0.69314575, 1.4286068e-6];
    split!(f32, i32, 23, 128);
    #[inline(always)]
    fn correction<S: Lanes<f32>>(simd: S, r: S::V, carry: S::V) -> S::V {
        const Q: &[f32] = &[
            0.33333334,
            -0.24999964,
            0.19999824,
            -0.16669354,
            0.14295451,
            -0.12435021,
            0.10883411,
            -0.10583636,
            0.113930866,
            -0.07425387,
        ];
        let cubic = (r * r * r).mul_add(horner(simd, r, Q), carry);
        (r * simd.splat(-0.5)).mul_add(r, cubic)
    }
}

impl LogConstants for f64 {
    const MIN_NORMAL: f64 = f64::MIN_POSITIVE;
    const RESCALE: f64 = 18_014_398_509_481_984.0;
    const RESCALE_EXPONENT: f64 = 54.0;
    const LN2: [f64; 2] = [0.6931471805598903, 5.497923018708371e-14];
    split!(f64, i64, 52, 1024);
    #[inline(always)]
    fn correction<S: Lanes<f64>>(simd: S, r: S::V, carry: S::V) -> S::V {
        const R: &[f64] = &[
            0.666666666666679,
            0.39999999999023805,
            0.28571428833603296,
            0.2222218887786727,
            0.1818408136479288,
            0.15300572437536397,
            0.14932603758725002,
        ];
        let half_r = r * simd.splat(0.5);
        let s = r / (r + simd.splat(2.0));
        let z = s * s;
        let series = horner(simd, z, R).mul_add(z, half_r * r);
        half_r.neg_mul_add(r, s.mul_add(series, carry))
    }
}

impl<E: LogConstants> Map1<E> for Log {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, x: S::V) -> S::V {
        let infinity = simd.splat(E::INFINITY);
        let ordinary = simd.splat(E::MIN_NORMAL).le(x) & x.lt(infinity);
        let unusual = !ordinary.all();
        let (mut normal, mut shift) = (x, simd.splat(E::ZERO));
        if unusual {
            let small = x.lt(simd.splat(E::MIN_NORMAL));
            normal = (x * simd.splat(E::RESCALE)).select(small, x);
            shift = simd.splat(E::RESCALE_EXPONENT).select(small, shift);
        }
        let (e, m) = E::split(simd, normal);
        let e = e - shift;
        let [ln2_high, ln2_low] = E::LN2.map(|c| simd.splat(c));
        let r = m - simd.splat(E::ONE);
        let main = e * ln2_high;
        let sum = main + r;
        let error = (main - sum) + r;
        let y = sum + E::correction(simd, r, e.mul_add(ln2_low, error));
        if unusual {
            let zero = simd.splat(E::ZERO);
            let y = (-infinity).select(x.eq(zero), y);
            let y = simd.splat(E::NAN).select(x.lt(zero), y);
            return x.select(x.is_nan() | x.eq(infinity), y);
        }
        y
    }
}

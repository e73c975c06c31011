//! Logarithms of base e, 2 and 10.
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
//! 5. *Other bases* take r log_b e, with the error of that product, for r, and e log_b 2 for e ln 2,
//!    of which the former is exact for base 2. The correction is multiplied last. Powers of the base
//!    that are floats have exact logarithms, because the error before the last rounding is below 0.3
//!    ULP.
//! 6. Subnormal numbers (scaled by 2^24 or 2^54 first), zeros, negative numbers, +∞ and NaN are
//!    handled behind one branch on "any such lane".

use super::{horner, horner_by_parity};
use crate::map::Map1;
use crate::simd::{Float, IntVector, Lanes, Mask, Vector};

/// `ln x`.
///
/// * Domain: numbers above zero, subnormal ones included.
/// * ±0 gives −∞, +∞ gives +∞, below zero and NaN give NaN; ln 1 = +0.
/// * Largest error: 0.694 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: `tools/coefficients.py log`; Q and R minimise the error relative to ln(1 + r):
///   2^-31.8 (f32), 2^-58.3 (f64).
pub struct Log;

/// `log2 x`.
///
/// * Domain: numbers above zero, subnormal ones included; exact for powers of two.
/// * ±0 gives −∞, +∞ gives +∞, below zero and NaN give NaN; log2 1 = +0.
/// * Largest error: 0.852 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: those of [`Log`]; log2 e from `tools/coefficients.py exp`.
pub struct Log2;

/// `log10 x`.
///
/// * Domain: numbers above zero, subnormal ones included; exact for powers of ten that are floats.
/// * ±0 gives −∞, +∞ gives +∞, below zero and NaN give NaN; log10 1 = +0.
/// * Largest error: 0.862 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: those of [`Log`]; log10 e and log10 2 from `tools/coefficients.py exp`.
pub struct Log10;

/// Constants of the reduction and of Q or R, from `tools/coefficients.py log`.
pub(super) trait LogConstants: Float {
    const MIN_NORMAL: Self;
    /// 2^24 or 2^54: makes subnormal numbers normal.
    const RESCALE: Self;
    /// log2 of `RESCALE`.
    const RESCALE_EXPONENT: Self;
    /// ln 2: a high part with zeros at its end, and the rest.
    const LN2: [Self; 2];
    /// log2 e, nearest float and the rest.
    const LOG2_E: [Self; 2];
    /// log10 e, likewise.
    const LOG10_E: [Self; 2];
    /// log10 2, as `LN2`.
    const LOG10_2: [Self; 2];
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
    const LOG2_E: [f32; 2] = [std::f32::consts::LOG2_E, 1.925963e-8];
    const LOG10_E: [f32; 2] = [std::f32::consts::LOG10_E, -1.010305e-8];
    const LOG10_2: [f32; 2] = [0.3010254, 4.605039e-6];
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
        let square = r * r;
        let cubic = (square * r).mul_add(horner_by_parity(simd, r, square, Q), carry);
        (r * simd.splat(-0.5)).mul_add(r, cubic)
    }
}

impl LogConstants for f64 {
    const MIN_NORMAL: f64 = f64::MIN_POSITIVE;
    const RESCALE: f64 = 18_014_398_509_481_984.0;
    const RESCALE_EXPONENT: f64 = 54.0;
    const LN2: [f64; 2] = [0.6931471805598903, 5.497923018708371e-14];
    const LOG2_E: [f64; 2] = [std::f64::consts::LOG2_E, 2.0355273740931033e-17];
    const LOG10_E: [f64; 2] = [std::f64::consts::LOG10_E, 1.098319650216765e-17];
    const LOG10_2: [f64; 2] = [0.30102999566395283, 2.8363394551044964e-14];
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

/// A base's way to put `2^e (1 + r)` together.
trait Base<E: LogConstants> {
    fn combine<S: Lanes<E>>(simd: S, e: S::V, r: S::V) -> S::V;
}

impl<E: LogConstants> Base<E> for Log {
    #[inline(always)]
    fn combine<S: Lanes<E>>(simd: S, e: S::V, r: S::V) -> S::V {
        let [ln2_high, ln2_low] = simd.splat_all(E::LN2);
        let main = e * ln2_high;
        let sum = main + r;
        let error = (main - sum) + r;
        sum + E::correction(simd, r, e.mul_add(ln2_low, error))
    }
}

/// `r` times a constant of two parts, with its error.
#[inline(always)]
fn product<E: LogConstants, S: Lanes<E>>(simd: S, r: S::V, factor: [E; 2]) -> [S::V; 2] {
    let [high, low] = simd.splat_all(factor);
    let product = r * high;
    [product, r.mul_add(low, r.mul_add(high, -product))]
}

impl<E: LogConstants> Base<E> for Log2 {
    #[inline(always)]
    fn combine<S: Lanes<E>>(simd: S, e: S::V, r: S::V) -> S::V {
        let [high, low] = product(simd, r, E::LOG2_E);
        let sum = e + high;
        let error = (e - sum) + high;
        let correction = E::correction(simd, r, simd.splat(E::ZERO));
        sum + correction.mul_add(simd.splat(E::LOG2_E[0]), error + low)
    }
}

impl<E: LogConstants> Base<E> for Log10 {
    #[inline(always)]
    fn combine<S: Lanes<E>>(simd: S, e: S::V, r: S::V) -> S::V {
        let [high, low] = product(simd, r, E::LOG10_E);
        let [log2_high, log2_low] = simd.splat_all(E::LOG10_2);
        let main = e * log2_high;
        let sum = main + high;
        let error = (main - sum) + high;
        let correction = E::correction(simd, r, simd.splat(E::ZERO));
        let rest = e.mul_add(log2_low, error + low);
        sum + correction.mul_add(simd.splat(E::LOG10_E[0]), rest)
    }
}

#[inline(always)]
fn logarithm<E: LogConstants, S: Lanes<E>, B: Base<E>>(simd: S, x: S::V) -> S::V {
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
    let y = B::combine(simd, e - shift, m - simd.splat(E::ONE));
    if unusual {
        let zero = simd.splat(E::ZERO);
        let y = (-infinity).select(x.eq(zero), y);
        let y = simd.splat(E::NAN).select(x.lt(zero), y);
        return x.select(x.is_nan() | x.eq(infinity), y);
    }
    y
}

macro_rules! logarithms {
    ($($Base:ident)*) => {$(
        impl<E: LogConstants> Map1<E> for $Base {
            const UNROLL_32: usize = 2;
            #[inline(always)]
            fn apply<S: Lanes<E>>(simd: S, x: S::V) -> S::V {
                logarithm::<E, S, $Base>(simd, x)
            }
        }
    )*};
}
logarithms!(Log Log2 Log10);

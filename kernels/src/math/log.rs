//! Logarithms of base e, 2 and 10.
//!
//! ```text
//! x = 2^e m                          f32: 0.7084 <= m < 1.4168    f64: 0.6965 <= m < 1.393
//! r = m / c − 1                      exact, except in one interval
//! ln x = e ln 2 + ln c + r + q(r)    q(r) = ln(1 + r) − r
//! main = e LN2_HIGH + LN_C_HIGH      exact
//! sum  = main + r                    error of this addition kept
//! ln x = sum + (q(r) + e LN2_LOW + LN_C_LOW + error)
//!
//! f32:  eight c, |r| < 1/16,  q(r) = r² Q(r)                  Q of degree 4, beginning with −1/2
//! f64:  c = 1,  q(r) = −r²/2 + s (r²/2 + z R(z)),  s = r / (2 + r), z = s²,   R of degree 6
//! ```
//!
//! 1. *Eight centres* (f32): the upper three bits of m's distance from 0.7084 choose the interval.
//!    This start puts 1 into the middle of the fifth interval, whose c is 1: near 1, where ln x is
//!    small, nothing is added to r. A table of eight is one permutation on AVX-512 and AVX2, and
//!    saves six coefficients over a single interval.
//! 2. *1/c has four to six fractional bits*, as few as keep r small. m / c − 1 is then exact in the
//!    first seven intervals; in the eighth, where |ln x| > 0.25, its error is at most 2^-29.
//! 3. *main is exact*: LN2_HIGH and LN_C_HIGH are multiples of 2^-16 and e has eight bits (f64:
//!    LN2_HIGH has 42, e eleven). main is 0 or larger than |r|, so the error of main + r is a float
//!    and computed exactly.
//! 4. *The last addition dominates*: its error is half an ULP; the bracket is at most a 26th of the
//!    sum (f64, where r reaches 0.39: a third).
//! 5. The f64 form is the series of 2 artanh(s), which converges twice as fast as one in r: one
//!    division instead of ten more coefficients. m is split at 0.6965 instead of √2/2 to balance
//!    the ends of r's range.
//! 6. *Other bases* use r log_b e, with the error of that product, for r, and e log_b 2, which is
//!    exact for base 2, for e ln 2. The correction is multiplied last. Powers of the base that are
//!    floats have exact logarithms, because the error before the last rounding is below 0.3 ULP.
//! 7. Subnormal numbers (scaled by 2^24 or 2^54 first), zeros, negative numbers, +∞ and NaN are
//!    handled behind one branch on "any such lane".

use super::horner;
use crate::map::Map;
use crate::simd::{Float, IntVector, Lanes, Mask, Vector};

/// `ln x`.
///
/// * Domain: numbers above zero, subnormal ones included.
/// * ±0 gives −∞, +∞ gives +∞, below zero and NaN give NaN; ln 1 = +0.
/// * Largest error: 0.570 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: `tools/coefficients.py log`; the error of r² Q(r) is 2^-31.4 of r (f32), that of R 2^-58.3
///   of ln(1 + r) (f64).
pub struct Log;

/// `a ln b`, and 0 where `a` is zero, whatever number `b` is.
///
/// * Largest error: 1.553 ULP, 0.928 where the result is subnormal (f32, 2^30 pairs); f64 within 2 floats.
/// * NaN in either gives NaN; elsewhere as the product: `b` of ±0 gives −∞ times the sign of `a`, below zero
///   NaN.
pub struct XLogY;

/// `log2 x`.
///
/// * Domain: numbers above zero, subnormal ones included; exact for powers of two.
/// * ±0 gives −∞, +∞ gives +∞, below zero and NaN give NaN; log2 1 = +0.
/// * Largest error: 0.603 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: those of [`Log`]; log2 e from `tools/coefficients.py exp`.
pub struct Log2;

/// `log10 x`.
///
/// * Domain: numbers above zero, subnormal ones included; exact for powers of ten that are floats.
/// * ±0 gives −∞, +∞ gives +∞, below zero and NaN give NaN; log10 1 = +0.
/// * Largest error: 0.626 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: those of [`Log`]; log10 e and log10 2 from `tools/coefficients.py exp`.
pub struct Log10;

/// Logarithms in some base, to be added to that of `1 + r`. High parts are multiples of 2^-16 (f64:
/// have 42 bits).
pub(super) struct Offsets<E> {
    /// The logarithm of 2: high part and rest.
    of_two: [E; 2],
    /// The logarithm of each c, likewise; none if c is always 1.
    of_centres: Option<[[E; 8]; 2]>,
}

/// Constants of the reduction and of Q or R, from `tools/coefficients.py log`.
pub(super) trait LogConstants: Float {
    const MIN_NORMAL: Self;
    /// 2^24 or 2^54: makes subnormal numbers normal.
    const RESCALE: Self;
    /// log2 of `RESCALE`.
    const RESCALE_EXPONENT: Self;
    /// ln 2: a high part with trailing zeros, and the rest.
    const LN2: [Self; 2];
    /// log2 e, nearest float and the rest.
    const LOG2_E: [Self; 2];
    /// log10 e, likewise.
    const LOG10_E: [Self; 2];
    /// 1/c of each interval; none if c is always 1.
    const RECIPROCALS: Option<[Self; 8]>;
    const LN: Offsets<Self>;
    const LOG2: Offsets<Self>;
    const LOG10: Offsets<Self>;
    /// Splits a normal positive number into `2^e m`: e, m, and the interval's number in the low
    /// bits.
    fn split<S: Lanes<Self>>(simd: S, x: S::V) -> (S::V, S::V, S::I);
    /// `q(r) + carry`.
    fn correction<S: Lanes<Self>>(simd: S, r: S::V, carry: S::V) -> S::V;
}

/// Writes `split`. With B the bits of x and M those of the smallest m, B − M has e in its exponent
/// field and the distance of m from the smallest m in its mantissa field. Adding 128 (1024) to the
/// exponent first makes it positive; as the low bits of 2^23 (2^52) it becomes a float by one
/// subtraction.
macro_rules! split {
    ($t:ident, $int:ident, $least:literal, $mantissa:literal, $excess:literal) => {
        #[inline(always)]
        fn split<S: Lanes<$t>>(simd: S, x: S::V) -> (S::V, S::V, S::I) {
            const START: $int = ($least as $t).to_bits() as $int;
            const TWO_TO_MANTISSA: $t = (1u64 << $mantissa) as $t;
            let offset = simd.splat_int(($excess << $mantissa) - START);
            let shifted = x.to_bits() + offset;
            let fraction = shifted & simd.splat_int((1 << $mantissa) - 1);
            let m = S::V::from_bits(fraction + simd.splat_int(START));
            let carrier = simd.splat(TWO_TO_MANTISSA).to_bits();
            let e = S::V::from_bits(shifted.shr::<$mantissa>() | carrier);
            (e - simd.splat(TWO_TO_MANTISSA + $excess as $t), m, shifted.shr::<{ $mantissa - 3 }>())
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
    const RECIPROCALS: Option<[f32; 8]> =
        Some([1.375, 1.25, 1.125, 1.0625, 1.0, 0.90625, 0.8125, 0.734375]);
    #[rustfmt::skip]
    const LN: Offsets<f32> = Offsets {
        of_two: Self::LN2,
        of_centres: Some([
            [-0.31845093, -0.22314453, -0.11778259, -0.06062317, 0.0, 0.09843445, 0.2076416, 0.30873108],
            [-2.8033842e-6, 9.799357e-7, -4.4288294e-7, -1.4528712e-6, 0.0, 5.6245713e-6, -2.2367842e-6,
                4.4025483e-6],
        ]),
    };
    #[rustfmt::skip]
    const LOG2: Offsets<f32> = Offsets {
        of_two: [1.0, 0.0],
        of_centres: Some([
            [-0.45942688, -0.32192993, -0.16992188, -0.08746338, 0.0, 0.14201355, 0.29956055, 0.44540405],
            [-4.7387543e-6, 1.8367533e-6, -3.1264424e-6, 5.376559e-7, 0.0, 5.455068e-6, -2.650161e-7,
                7.095588e-6],
        ]),
    };
    #[rustfmt::skip]
    const LOG10: Offsets<f32> = Offsets {
        of_two: [0.3010254, 4.605039e-6],
        of_centres: Some([
            [-0.13830566, -0.09690857, -0.05114746, -0.026321411, 0.0, 0.042755127, 0.09017944, 0.13407898],
            [2.9658963e-6, -1.4436721e-6, -5.06151e-6, -7.5275893e-6, 0.0, -3.1465322e-6, -2.8130103e-6,
                3.136556e-6],
        ]),
    };
    split!(f32, i32, 0.7084, 23, 128);
    #[inline(always)]
    fn correction<S: Lanes<f32>>(simd: S, r: S::V, carry: S::V) -> S::V {
        const Q: &[f32] = &[-0.5, 0.3333324, -0.249999, 0.2007792, -0.16739915];
        (r * r).mul_add(horner(simd, r, Q), carry)
    }
}

impl LogConstants for f64 {
    const MIN_NORMAL: f64 = f64::MIN_POSITIVE;
    const RESCALE: f64 = 18_014_398_509_481_984.0;
    const RESCALE_EXPONENT: f64 = 54.0;
    const LN2: [f64; 2] = [0.6931471805598903, 5.497923018708371e-14];
    const LOG2_E: [f64; 2] = [std::f64::consts::LOG2_E, 2.0355273740931033e-17];
    const LOG10_E: [f64; 2] = [std::f64::consts::LOG10_E, 1.098319650216765e-17];
    const RECIPROCALS: Option<[f64; 8]> = None;
    const LN: Offsets<f64> = Offsets { of_two: Self::LN2, of_centres: None };
    const LOG2: Offsets<f64> = Offsets { of_two: [1.0, 0.0], of_centres: None };
    const LOG10: Offsets<f64> =
        Offsets { of_two: [0.30102999566395283, 2.8363394551044964e-14], of_centres: None };
    split!(f64, i64, 0.6965, 52, 1024);
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

/// `x = 2^e c (1 + r)`.
pub(super) struct Reduced<E: LogConstants, S: Lanes<E>> {
    e: S::V,
    r: S::V,
    interval: S::I,
}

impl<E: LogConstants, S: Lanes<E>> Reduced<E, S> {
    /// The parts of `2^exponent x`, for x normal and above zero.
    #[inline(always)]
    pub(super) fn new(simd: S, x: S::V, exponent: S::V) -> Self {
        let (e, m, interval) = E::split(simd, x);
        let r = match &E::RECIPROCALS {
            Some(inverse) => m.mul_add(S::V::lookup8(inverse, interval, m), simd.splat(-E::ONE)),
            None => m - simd.splat(E::ONE),
        };
        Self { e: e + exponent, r, interval }
    }

    /// The high part of `log(2^e c)`.
    #[inline(always)]
    fn main(&self, simd: S, offsets: &Offsets<E>) -> S::V {
        let two = simd.splat(offsets.of_two[0]);
        match &offsets.of_centres {
            Some([high, _]) => self.e.mul_add(two, S::V::lookup8(high, self.interval, self.r)),
            None => self.e * two,
        }
    }

    /// The rest of `log(2^e c)`, and `carry`.
    #[inline(always)]
    fn rest(&self, simd: S, offsets: &Offsets<E>, mut carry: S::V) -> S::V {
        if let Some([_, low]) = &offsets.of_centres {
            carry = S::V::lookup8(low, self.interval, self.r) + carry;
        }
        if offsets.of_two[1] == E::ZERO {
            return carry;
        }
        self.e.mul_add(simd.splat(offsets.of_two[1]), carry)
    }

    /// `ln x + low`.
    #[inline(always)]
    pub(super) fn ln(&self, simd: S, low: Option<S::V>) -> S::V {
        let main = self.main(simd, &E::LN);
        let sum = main + self.r;
        let mut error = (main - sum) + self.r;
        if let Some(low) = low {
            error = error + low;
        }
        sum + E::correction(simd, self.r, self.rest(simd, &E::LN, error))
    }

    /// `log x` in the base whose logarithm of e is `factor`, nearest float and the rest.
    #[inline(always)]
    fn log(&self, simd: S, factor: [E; 2], offsets: &Offsets<E>) -> S::V {
        let [high, low] = simd.splat_all(factor);
        let product = self.r * high;
        let product_low = self.r.mul_add(low, self.r.mul_add(high, -product));
        let main = self.main(simd, offsets);
        let sum = main + product;
        let error = (main - sum) + product;
        let correction = E::correction(simd, self.r, simd.splat(E::ZERO));
        sum + correction.mul_add(high, self.rest(simd, offsets, error + product_low))
    }
}

/// Combines the parts into the logarithm of one base.
trait Base<E: LogConstants> {
    fn combine<S: Lanes<E>>(simd: S, x: &Reduced<E, S>) -> S::V;
}

impl<E: LogConstants> Base<E> for Log {
    #[inline(always)]
    fn combine<S: Lanes<E>>(simd: S, x: &Reduced<E, S>) -> S::V {
        x.ln(simd, None)
    }
}

impl<E: LogConstants> Base<E> for Log2 {
    #[inline(always)]
    fn combine<S: Lanes<E>>(simd: S, x: &Reduced<E, S>) -> S::V {
        x.log(simd, E::LOG2_E, &E::LOG2)
    }
}

impl<E: LogConstants> Base<E> for Log10 {
    #[inline(always)]
    fn combine<S: Lanes<E>>(simd: S, x: &Reduced<E, S>) -> S::V {
        x.log(simd, E::LOG10_E, &E::LOG10)
    }
}

#[inline(always)]
fn logarithm<E: LogConstants, S: Lanes<E>, B: Base<E>>(simd: S, x: S::V) -> S::V {
    let infinity = simd.splat(E::INFINITY);
    let ordinary = simd.splat(E::MIN_NORMAL).le(x) & x.lt(infinity);
    let unusual = !ordinary.all();
    let (mut normal, mut exponent) = (x, simd.splat(E::ZERO));
    if unusual {
        let small = x.lt(simd.splat(E::MIN_NORMAL));
        normal = (x * simd.splat(E::RESCALE)).select(small, x);
        exponent = simd.splat(-E::RESCALE_EXPONENT).select(small, exponent);
    }
    let y = B::combine(simd, &Reduced::new(simd, normal, exponent));
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
        impl<E: LogConstants> Map<E, 1> for $Base {
            const VECTORS: [usize; 2] = [4, 2];
            #[inline(always)]
            fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
                logarithm::<E, S, $Base>(simd, x)
            }
        }
    )*};
}
logarithms!(Log Log2 Log10);

impl<E: Float> Map<E, 2> for XLogY
where
    Log: Map<E, 1>,
{
    const VECTORS: [usize; 2] = <Log as Map<E, 1>>::VECTORS;

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [a, b]: [S::V; 2]) -> S::V {
        let zero = simd.splat(E::ZERO);
        zero.select(a.eq(zero) & b.eq(b), a * Log::apply(simd, [b]))
    }
}

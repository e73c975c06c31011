//! Cube root and reciprocal square root without division: an estimate of 13 bits, corrected by a
//! series in its residual.
//!
//! ```text
//! rsqrt:  x = 4^k z, 1 <= z < 4      w ~ z^(−1/2)     ρ = 1 − z w²
//!         z^(−1/2) = w (1 − ρ)^(−1/2)                 = w + w ρ (1/2 + 3/8 ρ + …)
//! cbrt:   x = 8^q z, 1/2 <= z < 4    w ~ z^(−1/3)     ρ = 1 − z w³
//!         z^(1/3) = z w² (1 − ρ)^(−2/3)               = z w² + z w² ρ (2/3 + 5/9 ρ + …)
//! ```
//!
//! 1. *The residual is exact enough*: the products' errors come from fused multiply-adds, so that
//!    ρ, some 2^-12, is within 2^-36 (f64: 2^-65).
//! 2. *One rounding decides*: the correction is below 2^-12 of the result, so its own errors do not
//!    count.
//! 3. The series ends where its next term is below 2^-36 (2^-60).

use super::{copy_sign, horner};
use crate::map::Map;
use crate::simd::{Float, IntVector, Lanes, Mask, Vector};

/// `1 / √x`.
///
/// * Domain: numbers above zero, subnormal ones included.
/// * ±0 gives ±∞, +∞ gives +0, below zero and NaN give NaN.
/// * Largest error: 0.501 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: `tools/coefficients.py root`.
pub struct Rsqrt;

/// `∛x`.
///
/// * Domain: all numbers, subnormal ones included.
/// * ±0 and ±∞ give themselves, NaN gives NaN.
/// * Largest error: 0.501 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: `tools/coefficients.py root`.
pub struct Cbrt;

/// Constants from `tools/coefficients.py root`.
trait RootConstants: Float {
    const MIN_NORMAL: Self;
    /// 2^24 or 2^54: makes subnormal numbers normal.
    const RESCALE: Self;
    /// Square root and inverse cube root of `RESCALE`.
    const RESCALE_ROOT: Self;
    const RESCALE_CBRT: Self;
    /// Adding it to a number rounds that to an integer; its low bits, and those shifted into the
    /// exponent, are zero.
    const SHIFTER: Self;
    const THIRD: Self;
    const THREE: Self;
    /// Estimate of m^(−1/3), 1 <= m < 2, lowest power first: within 2^-14.6.
    const CBRT_START: &'static [Self];
    /// 2^(−j/3) for j = 0, 1 and −1.
    const CBRT_FACTOR: [Self; 8];
    const CBRT_SERIES: &'static [Self];
    /// Estimate of z^(−1/2) by the last bit of the exponent and two of the mantissa: within 2^-13.1.
    const RSQRT_START: [[Self; 8]; 3];
    const RSQRT_SERIES: &'static [Self];
    /// Splits `x = 2^e m`: e as a float, and m.
    fn split<S: Lanes<Self>>(simd: S, x: S::V) -> (S::V, S::V);
    /// The m of `x = 2^e m`.
    fn mantissa<S: Lanes<Self>>(simd: S, x: S::V) -> S::V;
    /// 2^n, from the bits of `SHIFTER + n`.
    fn power_of_two<S: Lanes<Self>>(simd: S, shifted: S::I) -> S::V;
    /// For `x = 4^k z`: z, 2^−k, and the index of `RSQRT_START`.
    fn split_square<S: Lanes<Self>>(simd: S, x: S::V) -> (S::V, S::V, S::I);
}

macro_rules! splits {
    ($t:ident, $int:ident, $mantissa:literal, $square:literal, $index:literal, $bias:literal) => {
        #[inline(always)]
        fn split<S: Lanes<$t>>(simd: S, x: S::V) -> (S::V, S::V) {
            const TWO_TO_MANTISSA: $t = (1u64 << $mantissa) as $t;
            let carrier = simd.splat(TWO_TO_MANTISSA).to_bits();
            let e = S::V::from_bits(x.to_bits().shr::<$mantissa>() | carrier);
            (e - simd.splat(TWO_TO_MANTISSA + $bias as $t), Self::mantissa(simd, x))
        }
        #[inline(always)]
        fn mantissa<S: Lanes<$t>>(simd: S, x: S::V) -> S::V {
            let fraction = x.to_bits() & simd.splat_int((1 << $mantissa) - 1);
            S::V::from_bits(fraction | simd.splat(1.0).to_bits())
        }
        #[inline(always)]
        fn power_of_two<S: Lanes<$t>>(simd: S, shifted: S::I) -> S::V {
            S::V::from_bits(shifted.shl::<$mantissa>() + simd.splat(1.0).to_bits())
        }
        #[inline(always)]
        fn split_square<S: Lanes<$t>>(simd: S, x: S::V) -> (S::V, S::V, S::I) {
            // k plus half of the exponent's bias, rounded up.
            const HALF_BIAS: $int = ($bias + 1) / 2;
            let bits = x.to_bits();
            let k = (bits.shr::<$mantissa>() + simd.splat_int(1)).shr::<1>();
            let z = bits - (k - simd.splat_int(HALF_BIAS)).shl::<$square>();
            let factor = (simd.splat_int($bias + HALF_BIAS) - k).shl::<$mantissa>();
            (S::V::from_bits(z), S::V::from_bits(factor), bits.shr::<$index>())
        }
    };
}

#[rustfmt::skip]
impl RootConstants for f32 {
    const MIN_NORMAL: Self = Self::MIN_POSITIVE;
    const RESCALE: Self = 16_777_216.0;
    const RESCALE_ROOT: Self = 4096.0;
    const RESCALE_CBRT: Self = 1.0 / 256.0;
    const SHIFTER: Self = 12_582_912.0;
    const THIRD: Self = 1.0 / 3.0;
    const THREE: Self = 3.0;
    const CBRT_START: &'static [Self] = &[1.670006, -1.1728787, 0.69548154, -0.22123756, 0.028591005];
    const CBRT_FACTOR: [Self; 8] = [1.0, 0.7937005, 1.0, 1.0, 1.0, 1.0, 1.0, 1.2599211];
    const CBRT_SERIES: &'static [Self] = &[2.0 / 3.0, 5.0 / 9.0];
    const RSQRT_START: [[Self; 8]; 3] = [
        [
            1.2541322, 1.1331631, 1.0417038, 0.9693922, 1.7736107, 1.6025345, 1.4731916, 1.3709276,
        ],
        [
            -0.7463634, -0.55098, -0.42823753, -0.34520054, -1.0555172, -0.77920324, -0.60561925,
            -0.48818728,
        ],
        [
            0.1992615, 0.12030722, 0.079103164, 0.055255126, 0.28179824, 0.17014007, 0.11186874,
            0.07814255,
        ],
    ];
    const RSQRT_SERIES: &'static [Self] = &[1.0 / 2.0, 3.0 / 8.0];
    splits!(f32, i32, 23, 24, 21, 127);
}

#[rustfmt::skip]
impl RootConstants for f64 {
    const MIN_NORMAL: Self = Self::MIN_POSITIVE;
    const RESCALE: Self = 18_014_398_509_481_984.0;
    const RESCALE_ROOT: Self = 134_217_728.0;
    const RESCALE_CBRT: Self = 1.0 / 262_144.0;
    const SHIFTER: Self = 6_755_399_441_055_744.0;
    const THIRD: Self = 1.0 / 3.0;
    const THREE: Self = 3.0;
    const CBRT_START: &'static [Self] = &[
        1.67000600707069, -1.1728786390552477, 0.6954814033450343, -0.221237472704044,
        0.028590986670170904,
    ];
    const CBRT_FACTOR: [Self; 8] = [
        1.0, 0.7937005259840998, 1.0, 1.0, 1.0, 1.0, 1.0, 1.2599210498948732,
    ];
    const CBRT_SERIES: &'static [Self] = &[2.0 / 3.0, 5.0 / 9.0, 40.0 / 81.0, 110.0 / 243.0];
    const RSQRT_START: [[Self; 8]; 3] = [
        [
            1.2541321819905296, 1.1331630739682217, 1.0417037810351821, 0.9693922048093397,
            1.7736107407795696, 1.6025345875862458, 1.4731916151152873, 1.3709276033001254,
        ],
        [
            -0.7463634311833862, -0.5509799304165087, -0.4282374934848681, -0.34520056801665894,
            -1.055517286838863, -0.7792032901904108, -0.6056192712029602, -0.48818732502805523,
        ],
        [
            0.19926149813648883, 0.12030720180011673, 0.07910315554165424, 0.05525513660840582,
            0.28179831312340364, 0.1701400764368819, 0.11186875539351585, 0.07814256358238564,
        ],
    ];
    const RSQRT_SERIES: &'static [Self] = &[1.0 / 2.0, 3.0 / 8.0, 5.0 / 16.0, 35.0 / 128.0];
    splits!(f64, i64, 52, 53, 50, 1023);
}

/// `1 / √x` of normal numbers.
#[inline(always)]
fn rsqrt_normal<E: RootConstants, S: Lanes<E>>(simd: S, x: S::V) -> S::V {
    let (z, factor, index) = E::split_square(simd, x);
    let m = E::mantissa(simd, x);
    let w = S::V::lookup8(&E::RSQRT_START[2], index, x);
    let w = w.mul_add(m, S::V::lookup8(&E::RSQRT_START[1], index, x));
    let w = w.mul_add(m, S::V::lookup8(&E::RSQRT_START[0], index, x));
    let product = z * w;
    let product_low = z.mul_add(w, -product);
    let residual = product.neg_mul_add(w, simd.splat(E::ONE));
    let residual = product_low.neg_mul_add(w, residual);
    (w * residual).mul_add(horner(simd, residual, E::RSQRT_SERIES), w) * factor
}

impl<E: RootConstants> Map<E, 1> for Rsqrt {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let normal = simd.splat(E::MIN_NORMAL).le(x) & x.lt(simd.splat(E::INFINITY));
        let y = rsqrt_normal(simd, x);
        if normal.all() {
            return y;
        }
        let subnormal = simd.splat(E::ZERO).lt(x) & x.lt(simd.splat(E::MIN_NORMAL));
        let rescaled = rsqrt_normal(simd, x * simd.splat(E::RESCALE));
        let limit = simd.splat(E::ONE) / x.sqrt();
        let rare = (rescaled * simd.splat(E::RESCALE_ROOT)).select(subnormal, limit);
        y.select(normal, rare)
    }
}

impl<E: RootConstants> Map<E, 1> for Cbrt {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let (one, magnitude) = (simd.splat(E::ONE), x.abs());
        let subnormal = magnitude.lt(simd.splat(E::MIN_NORMAL));
        let normal = (magnitude * simd.splat(E::RESCALE)).select(subnormal, magnitude);

        let shifter = simd.splat(E::SHIFTER);
        let (e, m) = E::split(simd, normal);
        let q = e.mul_add(simd.splat(E::THIRD), shifter);
        let j = (q - shifter).neg_mul_add(simd.splat(E::THREE), e);
        let j = (j + shifter).to_bits();
        let z = m * E::power_of_two(simd, j);

        let w = horner(simd, m, E::CBRT_START) * S::V::lookup8(&E::CBRT_FACTOR, j, x);
        let square = w * w;
        let square_low = w.mul_add(w, -square);
        let root = z * square;
        let root_low = z.mul_add(square_low, z.mul_add(square, -root));
        let residual = root_low.neg_mul_add(w, root.neg_mul_add(w, one));
        let series = horner(simd, residual, E::CBRT_SERIES);
        let y = root + (root * residual).mul_add(series, root_low);

        let y = y * E::power_of_two(simd, q.to_bits());
        let y = y * simd.splat(E::RESCALE_CBRT).select(subnormal, one);
        let number = simd.splat(E::ZERO).lt(magnitude) & magnitude.lt(simd.splat(E::INFINITY));
        copy_sign(simd, y.select(number, magnitude), x)
    }
}

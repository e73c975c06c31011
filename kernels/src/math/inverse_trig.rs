//! Arcsine, arccosine, arctangent.
//!
//! ```text
//! |x| <= 1/2:   asin x = x + x³ A(x²)
//!               acos x = π/2 − asin x
//! |x| >  1/2:   w = (1 − |x|) / 2,   s = √w + low,   h = s + s³ A(w)
//!               asin x = π/2 − 2 h,   acos x = 2 h,   with the signs of x: −π/2 + 2 h, π − 2 h
//!
//! |x| <= 1:     atan x = x + x³ P(x²)
//! |x| >  1:     q = −1/|x| + low,   atan x = π/2 + q + q³ P(q²)
//! ```
//!
//! 1. *Each result is base + t + rest* with base a multiple of π/2 or zero: the error of base + t is
//!    kept, and joins the rest, which is at most a quarter of the result.
//! 2. *The rounding errors of the square root and the quotient* come from one fused multiply-add: w
//!    − √w² and 1 − q |x| are exact. To become a correction, the former is divided by 2 √w, for
//!    which five bits are enough: subtracting the bits of √w from a constant gives 1/(2 √w) within
//!    6 %, because the bits of a float approximate its logarithm to a few percent.
//! 3. w is exact, because 1 − |x| is exact for |x| > 1/2. For |x| > 1 it is negative and its root
//!    NaN.
//! 4. *The arctangent's cube includes the rounding error of the square*, and the last step of P its
//!    own: near q = 1 each is a tenth of an ULP of the result.
//! 5. *Two arguments*: q is the smaller magnitude over the larger, with its error; base follows
//!    from the octant. Zeros, infinities, and magnitudes so small that the error would be subnormal
//!    are handled behind one branch.

use super::trig::TrigConstants;
use super::{copy_sign, horner};
use crate::map::Map;
use crate::simd::{Float, IntVector, Lanes, Mask, Vector};

/// `asin x`, in −π/2 … π/2.
///
/// * Domain: −1 … 1; NaN outside.
/// * ±0 gives ±0, subnormal numbers give themselves; NaN gives NaN.
/// * Largest error: 0.643 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: `tools/coefficients.py inverse_trig`; on \[0, 1/4\] A minimises the error relative
///   to the arcsine: 2^-31.7 (f32), 2^-63.7 (f64).
pub struct Asin;

/// `acos x`, in 0 … π.
///
/// * Domain: −1 … 1; NaN outside. acos 1 = +0.
/// * NaN gives NaN.
/// * Largest error: 0.615 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: those of [`Asin`].
pub struct Acos;

/// `atan x`, in −π/2 … π/2.
///
/// * Domain: all numbers.
/// * ±0 gives ±0, subnormal numbers give themselves; ±∞ gives ±π/2, NaN gives NaN.
/// * Largest error: 0.907 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: `tools/coefficients.py inverse_trig`; on \[0, 1\] P minimises the error relative to
///   the arctangent: 2^-30.8 (f32), 2^-62.6 (f64).
pub struct Atan;

/// The angle of the point (`b`, `a`), in −π … π, with the sign of `a`.
///
/// * Domain: all numbers. Zeros and infinities as in C99: for a = ±0, b > 0 or +0 gives ±0, b < 0
///   or −0 gives ±π; for b = +∞ and finite a, ±0, for b = −∞ ±π; for a = ±∞, finite b gives ±π/2,
///   +∞ gives ±π/4, −∞ gives ±3π/4. NaN in either gives NaN. Subnormal results are computed, not
///   flushed.
/// * Largest error: 0.922 ULP, 0.747 where the result is subnormal (f32, 2^30 pairs); f64 within 1
///   float.
/// * Coefficients: those of [`Atan`].
pub struct Atan2;

/// Constants from `tools/coefficients.py inverse_trig`.
trait InverseTrigConstants: TrigConstants {
    /// A(z) = (asin √z / √z − 1) / z, lowest power first.
    const ASIN: &'static [Self];
    /// P(z) = (atan √z / √z − 1) / z, lowest power first.
    const ATAN: &'static [Self];
    const TWO: Self;
    /// From here on atan rounds to π/2.
    const VERTICAL: Self;
    /// Below it, the residual of a division may be subnormal.
    const TINY: Self;
    /// 1 / `TINY`.
    const RESCALE: Self;
}

impl InverseTrigConstants for f32 {
    const ASIN: &'static [f32] =
        &[0.1666666, 0.07500514, 0.044515852, 0.031813342, 0.014426251, 0.03752511];
    const ATAN: &'static [f32] = &[
        -0.33333325,
        0.19999619,
        -0.14279175,
        0.110540435,
        -0.08795821,
        0.06707545,
        -0.044218775,
        0.022145025,
        -0.0071344315,
        0.001077479,
    ];
    const TWO: f32 = 2.0;
    const VERTICAL: f32 = 1e10;
    const TINY: f32 = 5.421011e-20;
    const RESCALE: f32 = 18_446_744_073_709_551_616.0;
}

impl InverseTrigConstants for f64 {
    const ASIN: &'static [f64] = &[
        0.1666666666666666,
        0.07500000000002348,
        0.04464285713988823,
        0.03038194463362738,
        0.022372151964179632,
        0.017352937620607387,
        0.013961983964098505,
        0.011584873447960912,
        0.009489698455277222,
        0.00998163005321329,
        0.0007762662776750097,
        0.02462088408851413,
        -0.02588547226033362,
        0.0334924705393452,
    ];
    const ATAN: &'static [f64] = &[
        -0.33333333333333326,
        0.19999999999998228,
        -0.14285714285571527,
        0.11111111105322422,
        -0.09090908949940678,
        0.07692305414754538,
        -0.06666640648753519,
        0.058821333674478594,
        -0.052617448054926866,
        0.04754803048754006,
        -0.043194386555906,
        0.03908419543848751,
        -0.034623324570469,
        0.029228142995771037,
        -0.02270376075972987,
        0.015603650045810203,
        -0.009107354568806542,
        0.004321476793194115,
        -0.0015832680202342846,
        0.0004169968343168994,
        -6.989238870399785e-5,
        5.579021865074068e-6,
    ];
    const TWO: f64 = 2.0;
    const VERTICAL: f64 = 1e20;
    const TINY: f64 = 5.551115123125783e-17;
    const RESCALE: f64 = 18_014_398_509_481_984.0;
}

/// Element types with a square root to twice their precision.
pub(super) trait RootConstants: Float {
    /// Subtracting the bits of x from it gives those of 1/(2x), within 6 %.
    const HALF_RECIPROCAL: Self::Int;
}

impl RootConstants for f32 {
    const HALF_RECIPROCAL: i32 = 0x7ef3_11c7 - (1 << 23);
}

impl RootConstants for f64 {
    const HALF_RECIPROCAL: i64 = 0x7fde_6238_da3c_2119 - (1 << 52);
}

/// `1 / (2 x)` of a positive number, within 6 %; finite for zero.
#[inline(always)]
pub(super) fn half_reciprocal<E: RootConstants, S: Lanes<E>>(simd: S, x: S::V) -> S::V {
    S::V::from_bits(simd.splat_int(E::HALF_RECIPROCAL) - x.to_bits())
}

/// `√(w + w_low)` as a sum of two floats; zero for zero.
#[inline(always)]
pub(super) fn root<E: RootConstants, S: Lanes<E>>(
    simd: S,
    w: S::V,
    w_low: Option<S::V>,
) -> [S::V; 2] {
    let root = w.sqrt();
    let mut residual = root.neg_mul_add(root, w);
    if let Some(w_low) = w_low {
        residual = residual + w_low;
    }
    [root, residual * half_reciprocal(simd, root)]
}

/// The mask `|x| > 1/2`; t, which is √w there and |x| elsewhere; and asin t − t.
#[inline(always)]
fn arcsine<E: InverseTrigConstants + RootConstants, S: Lanes<E>>(
    simd: S,
    x: S::V,
) -> (S::M, S::V, S::V) {
    let half = simd.splat(E::HALF);
    let magnitude = x.abs();
    let steep = half.lt(magnitude);
    let w = magnitude.neg_mul_add(half, half);
    let [root, root_low] = root(simd, w, None);
    let z = w.select(steep, magnitude * magnitude);
    let t = root.select(steep, magnitude);
    let t_low = root_low.select(steep, simd.splat(E::ZERO));
    (steep, t, (t * z).mul_add(horner(simd, z, E::ASIN), t_low))
}

impl<E: InverseTrigConstants + RootConstants> Map<E, 1> for Asin {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let [pi_2, pi_2_low, _] = simd.splat_all(E::FRAC_PI_2);
        let minus_two = simd.splat(-E::TWO);
        let (steep, t, rest) = arcsine(simd, x);
        let main = minus_two.mul_add(t, pi_2);
        let error = minus_two.mul_add(t, pi_2 - main);
        let far = main + (error + minus_two.mul_add(rest, pi_2_low));
        copy_sign(simd, far.select(steep, t + rest), x)
    }
}

impl<E: InverseTrigConstants + RootConstants> Map<E, 1> for Acos {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let [pi_2, pi_2_low, _] = simd.splat_all(E::FRAC_PI_2);
        let (zero, one, two) = (simd.splat(E::ZERO), simd.splat(E::ONE), simd.splat(E::TWO));
        let (steep, t, rest) = arcsine(simd, x);
        // π/2 times `quarters`, plus t and its rest times `factor`.
        let steep_quarters = two.select(x.lt(zero), zero);
        let quarters = steep_quarters.select(steep, one);
        let factor = copy_sign(simd, two.select(steep, one), (-x).select(!steep, x));
        let base = quarters * pi_2;
        let main = factor.mul_add(t, base);
        let error = factor.mul_add(t, base - main);
        main + (error + factor.mul_add(rest, quarters * pi_2_low))
    }
}

impl<E: InverseTrigConstants> Map<E, 1> for Atan {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let [pi_2, pi_2_low, _] = simd.splat_all(E::FRAC_PI_2);
        let (zero, one) = (simd.splat(E::ZERO), simd.splat(E::ONE));
        let magnitude = simd.splat(E::VERTICAL).min_or_other(x.abs());
        let steep = one.lt(magnitude);
        let q = -one / magnitude;
        let q_low = q * q.mul_add(magnitude, one);
        let angle = Angle {
            base: pi_2.select(steep, zero),
            base_low: pi_2_low.select(steep, zero),
            slope: q.select(steep, magnitude),
            slope_low: q_low.select(steep, zero),
        };
        copy_sign(simd, angle.sum(simd), x)
    }
}

/// `base + atan slope`, both sums of two floats; base is zero or larger than the slope, which is at
/// most 1.
struct Angle<V> {
    base: V,
    base_low: V,
    slope: V,
    slope_low: V,
}

impl<V: Vector<Elem: InverseTrigConstants>> Angle<V> {
    #[inline(always)]
    fn sum<S: Lanes<V::Elem, V = V>>(self, simd: S) -> V {
        let Angle { base, base_low, slope, slope_low } = self;
        let z = slope * slope;
        let cube = slope.mul_add(z, slope * slope.mul_add(slope, -z));
        // The derivative 1/(1 + z), within an eighth.
        let derivative = z.neg_mul_add(simd.splat(V::Elem::HALF), simd.splat(V::Elem::ONE));
        let main = base + slope;
        let error = (base - main) + slope;
        let low = slope_low.mul_add(derivative, base_low) + error;
        // The polynomial's last step with its rounding error.
        let constant = simd.splat(V::Elem::ATAN[0]);
        let rest = horner(simd, z, &V::Elem::ATAN[1..]);
        let factor = z.mul_add(rest, constant);
        let factor_low = z.mul_add(rest, constant - factor);
        main + cube.mul_add(factor, cube.mul_add(factor_low, low))
    }
}

impl<E: InverseTrigConstants> Map<E, 2> for Atan2 {
    const VECTORS: [usize; 2] = [2, 4];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [y, x]: [S::V; 2]) -> S::V {
        let [pi_2, pi_2_low, _] = simd.splat_all(E::FRAC_PI_2);
        let (zero, one) = (simd.splat(E::ZERO), simd.splat(E::ONE));
        let infinity = simd.splat(E::INFINITY);
        let sign_bit = (-zero).to_bits();

        let (width, height) = (x.abs(), y.abs());
        let steep = width.lt(height);
        let mut over = width.select(steep, height);
        let mut under = height.select(steep, width);
        let ordinary = simd.splat(E::TINY).le(under) & under.lt(infinity);
        if !ordinary.all() {
            let tiny = under.lt(simd.splat(E::TINY));
            let scale = simd.splat(E::RESCALE).select(tiny, one);
            let endless = under.eq(infinity);
            over =
                one.select(over.eq(infinity), zero.select(endless & !over.is_nan(), over * scale));
            under = one.select(endless | under.eq(zero), under * scale);
        }
        let turned = sign_bit.select(steep, zero.to_bits());
        let over = S::V::from_bits(over.to_bits() ^ ((x.to_bits() & sign_bit) ^ turned));
        let slope = over / under;
        let slope_low = slope.neg_mul_add(under, over) / under;

        let behind = zero.to_bits().gt(x.to_bits());
        let base = pi_2.select(steep, (pi_2 + pi_2).select(behind, zero));
        let base_low = pi_2_low.select(steep, (pi_2_low + pi_2_low).select(behind, zero));
        let angle = Angle { base, base_low, slope, slope_low };
        copy_sign(simd, angle.sum(simd), y)
    }
}

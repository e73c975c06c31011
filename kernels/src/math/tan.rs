//! The tangent of any argument.
//!
//! ```text
//! x = n π/2 + high + low                       by the reduction of trig.rs
//! t = high + high³ T(high²)                    |high| <= 0.79
//! tan(high + low) = t + low (1 + t²)           t with the error of its addition
//! tan x = tan(high + low) for even n,  −1 / tan(high + low) for odd n
//! ```
//!
//! 1. *The polynomial contributes at most a fifth of t*: its own rounding moves the result by at
//!    most a quarter ULP.
//! 2. *The reciprocal of a sum of two floats*: c = −1/t, then c + c (1 + c t + c low), where 1 + c
//!    t is exact by one fused multiply-add. Near a multiple of π/2 the reduction's low part reaches
//!    2^-11 of the high one: t is then the sum of all, and low the error of its last addition.
//! 3. *The cube includes the rounding error of the square*, a tenth of an ULP of the result.

use super::horner;
use super::trig::{Reduced, TrigConstants, reduce};
use crate::map::Map;
use crate::simd::{IntVector, Lanes, Vector};

/// `tan x`, x in radians.
///
/// * Domain: all finite numbers, reduced exactly.
/// * ±0 gives ±0, subnormal numbers give themselves; ±∞ and NaN give NaN.
/// * Largest error: 0.933 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: `tools/coefficients.py tan`; on \[0, 0.7915\] T minimises the error relative to
///   the tangent: 2^-29.3 (f32), 2^-62.6 (f64).
pub struct Tan;

/// The coefficients, from `tools/coefficients.py tan`.
trait TanConstants: TrigConstants {
    /// T(z) = (tan √z / √z − 1) / z, lowest power first.
    const TANGENT: &'static [Self];
}

impl TanConstants for f32 {
    const TANGENT: &'static [f32] =
        &[0.33333352, 0.13332586, 0.05406845, 0.021238146, 0.010951297, -5.9391365e-5, 0.004451186];
}

impl TanConstants for f64 {
    const TANGENT: &'static [f64] = &[
        0.33333333333333326,
        0.13333333333334538,
        0.053968253967528704,
        0.021869488558905605,
        0.008863235097852326,
        0.0035921334415127846,
        0.0014557874526658827,
        0.0005903199706848839,
        0.00023779315183483448,
        0.00010143371754413124,
        2.7944891648166273e-5,
        3.6823267320053324e-5,
        -2.12911406812037e-5,
        2.7986014926966882e-5,
        -1.3596652487452606e-5,
        4.744191318612407e-6,
    ];
}

impl<E: TanConstants> Map<E, 1> for Tan {
    const VECTORS: [usize; 2] = [2, 4];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let one = simd.splat(E::ONE);
        let Reduced { quadrant, high, low } = reduce(simd, x);
        let square = high * high;
        let square_low = high.mul_add(high, -square);
        let cube = high.mul_add(square, high * square_low);
        let cubic = cube * horner(simd, square, E::TANGENT);
        let first = high + cubic;
        let first_low = ((high - first) + cubic) + (first * first).mul_add(low, low);
        let t = first + first_low;
        let t_low = (first - t) + first_low;
        let c = -one / t;
        let residual = c.mul_add(t_low, c.mul_add(t, one));
        let odd = (quadrant & simd.splat_int(E::ONE_INT)).eq(simd.splat_int(E::ONE_INT));
        let y = residual.mul_add(c, c).select(odd, t);
        x.select(x.eq(simd.splat(E::ZERO)), y)
    }
}

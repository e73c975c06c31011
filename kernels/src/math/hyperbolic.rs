//! Hyperbolic sine and cosine.
//!
//! ```text
//! |x| = n ln 2 / 8 + r               as in exp.rs
//! grow, fall = e^(n ln 2 / 8) / 4, e^(−n ln 2 / 8) / 4
//! sinh |x| = 2 ((grow − fall) cosh r + (grow + fall) sinh r)
//! cosh x   = 2 ((grow + fall) cosh r + (grow − fall) sinh r)
//! sinh x   = sinh r with r = x       |x| < 0.35
//! ```
//!
//! 1. *Both exponentials come from the table of exp.rs*: −n uses the entry −n mod 8. The rounding
//!    of the entries (`TABLE_LOG`, relative to them) and the errors of grow ± fall make a low part.
//! 2. *One addition dominates*: cosh r − 1 is below 0.001, and from 0.35 on the term with sinh r is
//!    at most an eighth of the result.
//! 3. *A quarter, not a half*, keeps grow finite wherever the result is; the doubling at the end is
//!    exact or overflows with the result.

use super::exp::ExpConstants;
use super::{copy_sign, horner};
use crate::map::Map;
use crate::simd::{IntVector, Lanes, Vector};

/// `sinh x`.
///
/// * Domain: all numbers; ±∞ beyond the largest number.
/// * ±0 gives ±0, subnormal numbers give themselves; ±∞ gives ±∞, NaN gives NaN.
/// * Largest error: 0.780 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: those of exp.rs, and `tools/coefficients.py hyperbolic`; relative to the result:
///   sinh r for |r| <= 0.36 2^-34.1 (f32), 2^-65.1 (f64), cosh r for |r| <= 0.0434 2^-39.4, 2^-82.7.
pub struct Sinh;

/// `cosh x`.
///
/// * Domain: all numbers; +∞ beyond the largest number.
/// * ±0 gives 1, ±∞ gives +∞, NaN gives NaN.
/// * Largest error: 0.631 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: those of [`Sinh`].
pub struct Cosh;

/// Constants from `tools/coefficients.py hyperbolic`.
trait HyperbolicConstants: ExpConstants {
    /// S(z) = (sinh √z / √z − 1) / z, lowest power first.
    const SINH: &'static [Self];
    /// C(z) = (cosh √z − 1 − z/2) / z², lowest power first.
    const COSH: &'static [Self];
    /// Above it results are infinite.
    const END: Self;
    /// Below it sinh is computed from its series.
    const SERIES: Self;
    const HALF: Self;
    /// `SHIFTER_EIGHTH` + 2: accounts for the factor of a quarter.
    const SHIFTER_QUARTER: Self::Int;
}

impl HyperbolicConstants for f32 {
    const SINH: &'static [f32] = &[0.16666667, 0.008333196, 0.00019954285];
    const COSH: &'static [f32] = &[0.041668896];
    const END: f32 = 90.0;
    const SERIES: f32 = 0.35;
    const HALF: f32 = 0.5;
    const SHIFTER_QUARTER: i32 = Self::SHIFTER_EIGHTH + 2;
}

impl HyperbolicConstants for f64 {
    const SINH: &'static [f64] = &[
        0.16666666666666666,
        0.008333333333334437,
        0.0001984126983653474,
        2.7557328977487627e-6,
        2.504167855845002e-8,
        2.1643069519398648e-10,
        -1.1758981388787736e-10,
    ];
    const COSH: &'static [f64] =
        &[0.041666666666666664, 0.0013888888888942618, 2.48015833369723e-5, 2.7651626211310943e-7];
    const END: f64 = 711.0;
    const SERIES: f64 = 0.35;
    const HALF: f64 = 0.5;
    const SHIFTER_QUARTER: i64 = Self::SHIFTER_EIGHTH + 2;
}

/// The exponentials of n ln 2 / 8 and of its negative, a quarter each, and the reduced argument.
struct Exponentials<V> {
    grow: V,
    fall: V,
    /// `grow` and `fall` times their relative errors.
    grow_low: V,
    fall_low: V,
    r: V,
}

#[inline(always)]
fn exponentials<E: HyperbolicConstants, S: Lanes<E>>(
    simd: S,
    magnitude: S::V,
) -> Exponentials<S::V> {
    let shifter = simd.splat(E::SHIFTER);
    let origin = simd.splat_int(E::SHIFTER_QUARTER);
    let shifted = magnitude.mul_add(simd.splat(E::INVERSE), shifter);
    let n = shifted - shifter;
    let (up, down) = (shifted.to_bits(), (shifter - n).to_bits());
    let grow = S::V::lookup8(&E::TABLE, up, n).scale_by_power_of_two(up.shr::<3>() - origin);
    let fall = S::V::lookup8(&E::TABLE, down, n).scale_by_power_of_two(down.shr::<3>() - origin);
    let [step_high, step_low] = simd.splat_all(E::STEP);
    Exponentials {
        grow,
        fall,
        grow_low: grow * S::V::lookup8(&E::TABLE_LOG, up, n),
        fall_low: fall * S::V::lookup8(&E::TABLE_LOG, down, n),
        r: n.neg_mul_add(step_low, n.neg_mul_add(step_high, magnitude)),
    }
}

/// `sinh r`, and `cosh r − 1` for r from the reduction.
#[inline(always)]
fn series<E: HyperbolicConstants, S: Lanes<E>>(simd: S, r: S::V) -> [S::V; 2] {
    let z = r * r;
    let sinh = (r * z).mul_add(horner(simd, z, E::SINH), r);
    let cosh = z * z.mul_add(horner(simd, z, E::COSH), simd.splat(E::HALF));
    [sinh, cosh]
}

impl<E: HyperbolicConstants> Map<E, 1> for Sinh {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let magnitude = simd.splat(E::END).min_or_other(x.abs());
        let near_zero = magnitude.lt(simd.splat(E::SERIES));
        let Exponentials { grow, fall, grow_low, fall_low, r } = exponentials(simd, magnitude);
        let [sinh, cosh] = series(simd, magnitude.select(near_zero, r));
        let main = grow - fall;
        let low = ((grow - main) - fall) + (grow_low - fall_low);
        let half = main + main.mul_add(cosh, (grow + fall).mul_add(sinh, low));
        copy_sign(simd, sinh.select(near_zero, half + half), x)
    }
}

impl<E: HyperbolicConstants> Map<E, 1> for Cosh {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let magnitude = simd.splat(E::END).min_or_other(x.abs());
        let Exponentials { grow, fall, grow_low, fall_low, r } = exponentials(simd, magnitude);
        let [sinh, cosh] = series(simd, r);
        let main = grow + fall;
        let low = ((grow - main) + fall) + (grow_low + fall_low);
        let half = main + main.mul_add(cosh, (grow - fall).mul_add(sinh, low));
        half + half
    }
}

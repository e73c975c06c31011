//! Rounding to integers: corrections of the nearest integer, which every instruction set has.
//!
//! ```text
//! n = round(x), ties to even
//! floor x = n − 1 where n > x, else n        ceil x = n + 1 where n < x, else n
//! trunc x = floor |x| with the sign of x
//! ```
//!
//! Where `|x|` is 2^23 (f64: 2^52) or more, n is x itself and needs no correction; below, n ± 1 is
//! exact. A zero that comes from a correction takes the sign of x.

use super::copy_sign;
use crate::map::Map;
use crate::simd::{Float, Lanes, Vector};

/// The largest integer that is not above `x`.
///
/// Exact. ±0, ±∞ and NaN give themselves.
pub struct Floor;

/// The smallest integer that is not below `x`.
///
/// Exact; −0 for −1 < `x` <= −0. ±0, ±∞ and NaN give themselves.
pub struct Ceil;

/// The nearest integer; ties go to the even one.
///
/// Exact; a zero has the sign of `x`. ±∞ and NaN give themselves.
pub struct Round;

/// `x` rounded towards zero.
///
/// Exact; a zero has the sign of `x`. ±∞ and NaN give themselves.
pub struct Trunc;

#[inline(always)]
fn floor<E: Float, S: Lanes<E>>(simd: S, x: S::V) -> S::V {
    let nearest = x.round_ties_even();
    (nearest - simd.splat(E::ONE)).select(x.lt(nearest), nearest)
}

impl<E: Float> Map<E, 1> for Floor {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        floor(simd, x)
    }
}

impl<E: Float> Map<E, 1> for Ceil {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        -floor(simd, -x)
    }
}

impl<E: Float> Map<E, 1> for Round {
    #[inline(always)]
    fn apply<S: Lanes<E>>(_simd: S, [x]: [S::V; 1]) -> S::V {
        x.round_ties_even()
    }
}

impl<E: Float> Map<E, 1> for Trunc {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        copy_sign(simd, floor(simd, x.abs()), x)
    }
}

//! Functions of three arguments.

use super::Exp;
use super::exp::ExpConstants;
use crate::map::Map;
use crate::simd::{Float, Lanes, Vector};

/// `a b + c`.
///
/// Correctly rounded, subnormal results included: one rounding. NaN in any gives NaN, as do ∞ · 0 and
/// ∞ − ∞.
pub struct MulAdd;

/// `x` clamped to `low..=high`.
///
/// Exact. A NaN `x` gives NaN; a NaN bound is ignored. Zeros of either sign are equal: `x` stays.
pub struct Clamp;

/// `a + w (b − a)` from `a`, `b` and the weight `w`.
///
/// ```text
/// w < 1/2:  a + w d      else  b − (1 − w) d      with d = b − a
/// ```
///
/// `d` and the fused multiply-add are rounded, and from 1/2 on also `1 − w` where it is not exact
/// (below 0 and above 2). For `w` in 0 … 1 the error is at most 2 u (|a| + |b|), with u = 2^-24
/// (f64: 2^-53), or half of the smallest subnormal number if that is more. The result is exactly
/// `a` at 0 and `b` at 1, except that −0 may become +0. If `b − a` overflows, the result is
/// infinite or NaN.
pub struct Lerp;

/// The Huber loss `h (d − h/2)` from `a`, `b` and the finite threshold `c`, with `d = a − b` and `h` = `d`
/// clamped to `−c..=c`.
///
/// `d`, the difference and the product are rounded. NaN for NaN; ∞ for an infinite `d`.
pub struct Huber;

/// The gradient of [`LeakyRelu`](super::LeakyRelu) from upstream gradient `g`, input `x` and slope
/// `s`: `g` where `x > 0`, else `g s`; NaN where `x` is. Correctly rounded.
pub struct LeakyReluGrad;

/// The gradient of [`Elu`](super::Elu) from upstream gradient `g`, input `x` and scale `s`: `g`
/// where `x > 0`, else `g s e^x`. Within 2.5 ULP if no step leaves the normal numbers.
pub struct EluGrad;

impl<E: Float> Map<E, 3> for MulAdd {
    const VECTORS: [usize; 2] = [2, 2];
    #[inline(always)]
    fn apply<S: Lanes<E>>(_simd: S, [a, b, c]: [S::V; 3]) -> S::V {
        a.mul_add(b, c)
    }
}

impl<E: Float> Map<E, 3> for Clamp {
    const VECTORS: [usize; 2] = [2, 2];
    #[inline(always)]
    fn apply<S: Lanes<E>>(_simd: S, [x, low, high]: [S::V; 3]) -> S::V {
        high.min_or_other(low.max_or_other(x))
    }
}

impl<E: Float> Map<E, 3> for Lerp {
    const VECTORS: [usize; 2] = [2, 2];
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [a, b, weight]: [S::V; 3]) -> S::V {
        let difference = b - a;
        let from_a = weight.mul_add(difference, a);
        let from_b = (simd.splat(E::ONE) - weight).neg_mul_add(difference, b);
        from_a.select(weight.lt(simd.splat(E::from_f64(0.5))), from_b)
    }
}

impl<E: Float> Map<E, 3> for Huber {
    const VECTORS: [usize; 2] = [2, 2];
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [a, b, threshold]: [S::V; 3]) -> S::V {
        let difference = a - b;
        let near = <Clamp as Map<E, 3>>::apply(simd, [difference, -threshold, threshold]);
        near * (difference - near * simd.splat(E::from_f64(0.5)))
    }
}

impl<E: Float> Map<E, 3> for LeakyReluGrad {
    const VECTORS: [usize; 2] = [2, 2];
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [g, x, slope]: [S::V; 3]) -> S::V {
        let below = x.select(x.is_nan(), g * slope);
        g.select(simd.splat(E::ZERO).lt(x), below)
    }
}

impl<E: ExpConstants> Map<E, 3> for EluGrad {
    const VECTORS: [usize; 2] = [2, 2];
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [g, x, scale]: [S::V; 3]) -> S::V {
        let slope = scale * <Exp as Map<E, 1>>::apply(simd, [x]);
        g.select(simd.splat(E::ZERO).lt(x), g * slope)
    }
}

//! Mish, a number times the hyperbolic tangent of its softplus.
//!
//! ```text
//! tanh(ln w) = (w² − 1) / (w² + 1),   w = 1 + e^x.   With E = e^(−|x|):
//! x < 0:   mish(x) = x N / D,   N = 2 E + E²,   D = N + 2
//! x >= 0:  mish(x) = x N / D,   N = 1 + 2 E,    D = N + 2 E²
//! mish′(x) = N / D + x B / D²,  B = 4 E (1 + E), times E again where x >= 0
//! ```
//!
//! 1. *Nothing cancels*: all terms are positive, and E is at most 1.
//! 2. *Every rounding that would cost an ULP is compensated*: E, N, D and x N are sums of two
//!    floats, and the quotient is corrected by its residual.
//! 3. For |x| > 60, E is below 2^−86 and N / D is E (x < 0) or 1 in either type. The result is then
//!    x e^x, scaled by its power of two last, or x, behind one branch: the low part of E, which N /
//!    D needs, would fall below the subnormal numbers.

use super::exp::{Parts, exp_parts, scale_sum, scaled_parts};
use super::sigmoid::{GateConstants, clamp, tail_slope_or};
use super::{copy_sign, divide};
use crate::map::Map;
use crate::simd::{Lanes, Mask, Vector};

/// `x tanh(ln(1 + e^x))`.
///
/// * Domain: all numbers; subnormal results are computed, not flushed.
/// * ±0 gives ±0, +∞ gives +∞, −∞ gives −0 (the limit), NaN gives NaN.
/// * Largest error: 0.561 ULP, 0.520 where the result is subnormal (f32, all inputs); f64 within 1
///   float.
/// * Coefficients: those of `exp.rs`.
pub struct Mish;

/// The gradient of [`Mish`] from its input.
///
/// * The factor of g has a zero near x = −1.192; around it the error is absolute, 3 ULP of 1. Below
///   −2 it stays within 12 ULP, tails included.
/// * −∞ gives a factor of ±0, +∞ of 1; NaN in either gives NaN.
pub struct MishGrad;

/// Where |x| is larger, the result is `x e^x` or x.
const TAIL: f64 = 60.0;

impl<E: GateConstants> Map<E, 1> for Mish {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let (zero, one) = (simd.splat(E::ZERO), simd.splat(E::ONE));
        let two = one + one;
        let negative = x.lt(zero);
        let (t, p) = scaled_parts(simd, -x.abs()).factors(simd);
        let e = p.mul_add(t, t);
        let e_low = p.mul_add(t, t - e);
        let twice = e + e;

        // N = first + e factor; its derivative by E is twice the last factor.
        let first = twice.select(negative, one);
        let factor = e.select(negative, two);
        let n = e.mul_add(factor, first);
        let half_slope = (one + e).select(negative, one);
        let n_low = (e_low + e_low).mul_add(half_slope, e.mul_add(factor, first - n));

        let square = e * twice;
        let square_low = (twice + twice).mul_add(e_low, e.mul_add(twice, -square));
        let (large, small) = (two.select(negative, n), n.select(negative, square));
        let d = large + small;
        let d_low = ((large - d) + small) + (n_low + zero.select(negative, square_low));

        let product = x * n;
        let product_low = x.mul_add(n_low, x.mul_add(n, -product));
        let y = divide(simd, [product, product_low], [d, d_low]);
        let ordinary = x.abs().le(simd.splat(E::from_f64(TAIL)));
        let y =
            if ordinary.all() { y } else { y.select(ordinary, tail(simd, x).select(negative, x)) };
        copy_sign(simd, y, x)
    }
}

/// `x e^x` for negative x.
#[inline(always)]
fn tail<E: GateConstants, S: Lanes<E>>(simd: S, x: S::V) -> S::V {
    let x = simd.splat(E::GATE_LOWEST).max_or_other(x);
    let Parts { k, t, r, s } = exp_parts(simd, x, None);
    let p = r + s;
    let e = p.mul_add(t, t);
    let e_low = p.mul_add(t, t - e);
    let size = -x;
    let product = size * e;
    let product_low = size.mul_add(e_low, size.mul_add(e, -product));
    -scale_sum(simd, product, product_low, k)
}

impl<E: GateConstants> Map<E, 2> for MishGrad {
    const VECTORS: [usize; 2] = [2, 4];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [g, x]: [S::V; 2]) -> S::V {
        let one = simd.splat(E::ONE);
        let two = one + one;
        let x = clamp(simd, x, E::GATE_LOWEST, -E::GATE_LOWEST);
        let negative = x.lt(simd.splat(E::ZERO));
        let Parts { k, t, r, s } = exp_parts(simd, -x.abs(), None);
        let e = (r + s).mul_add(t, t).scale_by_power_of_two(k);
        let twice = e + e;
        let n = e.mul_add(e.select(negative, two), twice.select(negative, one));
        let d = n + two.select(negative, e * twice);
        let bend = (twice + twice) * (one + e) * one.select(negative, e);
        let inverse = one / d;
        g * tail_slope_or(simd, x, (x * bend).mul_add(inverse, n) * inverse)
    }
}

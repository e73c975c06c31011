//! The Gaussian error linear unit in its tanh form, computed as a logistic gate.
//!
//! ```text
//! gelu_tanh(x) = x/2 (1 + tanh u) = x σ(2u),      u = √(2/π) (x + 0.044715 x³)
//! v = 2u = x (c1 + c2 x²)                          c1 = 2 √(2/π), c2 = 0.044715 c1
//! ```
//!
//! 1. *The gate form has no cancellation*: x/2 (1 + tanh u) loses all digits for x < −3.
//! 2. *The rate v/x = c1 + c2 x² is a sum of two floats.* In the tail the result is x e^v with v
//!    near −100 (f64: −700): half an ULP of v would be 64 (f64: 512) half ULPs of the result. x²
//!    keeps its error; c1 has only 12 (f64: 26) bits, so that c1 − rate is exact and one fused
//!    multiply-add gives the rate's error. Both constants carry the factor −8 / ln 2 of the
//!    reduction.
//! 3. The rest is `Decay` of sigmoid.rs.

use super::sigmoid::{GateConstants, clamp, decay, gate_and_rest};
use crate::map::{Map, usual_or};
use crate::simd::{Lanes, Vector};

/// `x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
///
/// * Domain: all numbers; subnormal results are computed, not flushed.
/// * ±0 gives ±0, +∞ gives +∞, −∞ gives −0 (the limit), NaN gives NaN.
/// * Largest error: 0.751 ULP, 0.840 where the result is subnormal (f32, all inputs); f64 within 1
///   float.
/// * Coefficients: `tools/coefficients.py gate`.
pub struct GeluTanh;

/// The gradient of [`GeluTanh`] from its input: `g σ(v) (1 + x (1 − σ(v)) v′)`, v′ = c1 + 3 c2 x².
///
/// * The factor of g has a zero near x = −0.753; around it the error is absolute, 3 ULP of 1. Below
///   −2, where the factor is e^v to first order and v is rounded, it is within 350 ULP (f64: 2400)
///   if normal; if subnormal within 2^-141 (2^-1063), because σ(v) is rounded first.
/// * −∞ gives a factor of −0, +∞ of 1; NaN in either gives NaN.
pub struct GeluTanhGrad;

/// Constants from `tools/coefficients.py gate`.
trait GeluConstants: GateConstants {
    /// −8 / ln 2 · c1: a short high part, and the rest.
    const C1_RATE: [Self; 2];
    /// −8 / ln 2 · c2: rounded, and the rest.
    const C2_RATE: [Self; 2];
    /// c1.
    const C1: Self;
    /// c2.
    const C2: Self;
    /// 3.
    const THREE: Self;
    /// Below it x σ(v) rounds to zero.
    const GELU_LOWEST: Self;
    /// While |x| is at most this, e^−v is normal.
    const GELU_USUAL: Self;
}

impl GeluConstants for f32 {
    const C1_RATE: [f32; 2] = [-18.414062, -0.0036030852];
    const C2_RATE: [f32; 2] = [-0.82354593, 1.6129588e-8];
    const C1: f32 = 1.5957692;
    const C2: f32 = 0.071354814;
    const THREE: f32 = 3.0;
    const GELU_LOWEST: f32 = -11.0;
    const GELU_USUAL: f32 = 9.875;
}

impl GeluConstants for f64 {
    const C1_RATE: [f64; 2] = [-18.417665481567383, -1.0358721630057115e-7];
    const C2_RATE: [f64; 2] = [-0.823545916640188, 4.782541920574995e-17];
    const C1: f64 = 1.595769121605731;
    const C2: f64 = 0.07135481627260025;
    const THREE: f64 = 3.0;
    const GELU_LOWEST: f64 = -21.75;
    const GELU_USUAL: f64 = 21.0;
}

impl<E: GeluConstants> Map<E, 1> for GeluTanh {
    const HAS_USUAL: bool = true;
    const VECTORS: [usize; 2] = [2, 4];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        usual_or(
            usual(simd, x),
            #[inline(always)]
            || {
                let x = simd.splat(E::GELU_LOWEST).max_or_other(x);
                let tail = decay(simd, x, rates(simd, x)).tail(simd, x);
                x.select(simd.splat(E::ZERO).lt(x), tail)
            },
        )
    }

    #[inline(always)]
    fn usual<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> (S::V, S::M) {
        usual(simd, x)
    }
}

/// `gelu_tanh x` where e^−v is normal, and the mask of those lanes.
#[inline(always)]
fn usual<E: GeluConstants, S: Lanes<E>>(simd: S, x: S::V) -> (S::V, S::M) {
    let y = decay(simd, x, rates(simd, x)).gate(simd, x);
    (y, x.abs().le(simd.splat(E::GELU_USUAL)))
}

/// `RATE v / x`, a sum of two floats, high part first.
#[inline(always)]
fn rates<E: GeluConstants, S: Lanes<E>>(simd: S, x: S::V) -> [S::V; 2] {
    let [c1, c1_low] = simd.splat_all(E::C1_RATE);
    let [c2, c2_low] = simd.splat_all(E::C2_RATE);
    let square = x * x;
    let square_low = x.mul_add(x, -square);
    let rate = c2.mul_add(square, c1);
    let rate_error = c2.mul_add(square, c1 - rate);
    [rate, c2.mul_add(square_low, c2_low.mul_add(square, c1_low)) + rate_error]
}

impl<E: GeluConstants> Map<E, 2> for GeluTanhGrad {
    const VECTORS: [usize; 2] = [2, 4];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [g, x]: [S::V; 2]) -> S::V {
        let one = simd.splat(E::ONE);
        let (c1, c2) = (simd.splat(E::C1), simd.splat(E::C2));
        let x = clamp(simd, x, E::GELU_LOWEST, -E::GELU_LOWEST);
        let square = x * x;
        let (gate, rest) = gate_and_rest(simd, x * c2.mul_add(square, c1));
        let slope = (c2 * simd.splat(E::THREE)).mul_add(square, c1);
        g * (gate * (x * rest).mul_add(slope, one))
    }
}

//! The Gaussian error linear unit in its tanh form, which is a gate in disguise.
//!
//! ```text
//! gelu_tanh(x) = x/2 (1 + tanh u) = x σ(2u),      u = √(2/π) (x + 0.044715 x³)
//! v = 2u = x (c1 + c2 x²)                          c1 = 2 √(2/π), c2 = 0.044715 c1
//! ```
//!
//! 1. *The gate form has no cancellation*: x/2 (1 + tanh u) loses everything for x < −3.
//! 2. *v is a sum of two floats.* In the tail the result is x e^v with v near −100 (f64: −700):
//!    half a place of v would be 64 (f64: 512) half places of the result. x² and the product with w
//!    = c1 + c2 x² keep their errors; c1 is cut to 12 (f64: 26) bits, so that c1 − w is exact and
//!    one fused multiply-add gives the error of w.
//! 3. The rest is `gate` of sigmoid.rs.

use super::copy_sign;
use super::exp::ExpConstants;
use super::sigmoid::{clamp, gate, gate_and_rest};
use crate::map::{Map1, Map2};
use crate::simd::{Lanes, Vector};

/// `x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
///
/// * Domain: all numbers; subnormal results are computed, not flushed.
/// * ±0 gives ±0, +∞ gives +∞, −∞ gives −0 (the limit), NaN gives NaN.
/// * Largest error: 0.534 ULP at −7.5634294 (f32, every 7th input), 0.756 where the result is
///   subnormal, at −10.129057; f64 within 1 float on 12 million spread inputs, correctly rounded on
///   99.8 %.
/// * Coefficients: `tools/coefficients.py gelu` for c1 and c2, the others are those of `exp.rs`.
pub struct GeluTanh;

/// The gradient of [`GeluTanh`] from its input: `g σ(v) (1 + x (1 − σ(v)) v′)`, v′ = c1 + 3 c2 x².
///
/// * The factor of g has a zero near x = −0.753, around which its error is absolute: 3 units of 1's
///   last place; in the tail, where it is e^v to first order, it is within 2^-16 (f64: 2^-42) of
///   it.
/// * −∞ gives a factor of −0, +∞ of 1; NaN in either gives NaN.
pub struct GeluTanhGrad;

/// Constants from `tools/coefficients.py gelu`.
trait GeluConstants: ExpConstants {
    /// c1, cut and rest.
    const C1: [Self; 2];
    /// c2, rounded and rest.
    const C2: [Self; 2];
    /// 3.
    const THREE: Self;
    /// Past it, x e^(−|v|) rounds to zero and σ(v) to 1.
    const GELU_MAX: Self;
}

impl GeluConstants for f32 {
    const C1: [f32; 2] = [1.5957031, 6.59966e-5];
    const C2: [f32; 2] = [0.071354814, 2.3988325e-9];
    const THREE: f32 = 3.0;
    const GELU_MAX: f32 = 11.0;
}

impl GeluConstants for f64 {
    const C1: [f64; 2] = [1.5957691073417664, 1.426396435433791e-8];
    const C2: [f64; 2] = [0.07135481627260025, -6.175149918155315e-19];
    const THREE: f64 = 3.0;
    const GELU_MAX: f64 = 21.75;
}

impl<E: GeluConstants> Map1<E> for GeluTanh {
    const UNROLL: usize = 2;

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, x: S::V) -> S::V {
        let [c1, c1_low] = E::C1.map(|c| simd.splat(c));
        let [c2, c2_low] = E::C2.map(|c| simd.splat(c));
        let clamped = clamp(simd, x, E::GELU_MAX);
        let square = clamped * clamped;
        let square_low = clamped.mul_add(clamped, -square);
        let w = c2.mul_add(square, c1);
        let w_error = c2.mul_add(square, c1 - w);
        let w_low = c2.mul_add(square_low, c2_low.mul_add(square, c1_low)) + w_error;
        let v = clamped * w;
        let v_low = clamped.mul_add(w_low, clamped.mul_add(w, -v));
        let y = gate(simd, v, Some(v_low)).times::<E, S>(simd, clamped);
        copy_sign(simd, x.select(simd.splat(E::GELU_MAX).lt(x), y), x)
    }
}

impl<E: GeluConstants> Map2<E> for GeluTanhGrad {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, g: S::V, x: S::V) -> S::V {
        let one = simd.splat(E::ONE);
        let c1 = simd.splat(E::C1[0] + E::C1[1]);
        let c2 = simd.splat(E::C2[0]);
        let x = clamp(simd, x, E::GELU_MAX);
        let square = x * x;
        let (gate, rest) = gate_and_rest(simd, x * c2.mul_add(square, c1));
        let slope = (c2 * simd.splat(E::THREE)).mul_add(square, c1);
        g * (gate * (x * rest).mul_add(slope, one))
    }
}

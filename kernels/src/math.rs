//! The element-wise functions: one row each, one file a family.
//!
//! A kernel is a unit struct that implements `Map1` or `Map2` once for all instruction sets; its
//! documentation is its contract: domain, largest error and where it occurs, NaN, infinities, signed
//! zeros, subnormal numbers, origin of the coefficients. A kernel that computes a derivative stands
//! beside the function it belongs to.
//!
//! Errors are given in ULP, units in the last place of the exact result (its subnormal spacing where
//! it is subnormal). Measured maxima are distances from the exact value, so that 0.5 is correct
//! rounding; [`ULP_BOUNDS`] holds what is promised, as a count of floats between the result and the
//! correctly rounded one.

mod arith;
mod exp;
mod gelu;
mod gelu_erf;
mod hyperbolic;
mod inverse_hyperbolic;
mod inverse_trig;
mod log;
mod sigmoid;
mod sine_cosine;
mod tan;
mod tanh;
mod trig;

pub use arith::*;
pub use exp::*;
pub use gelu::*;
pub use gelu_erf::*;
pub use hyperbolic::*;
pub use inverse_hyperbolic::*;
pub use inverse_trig::*;
pub use log::*;
pub use sigmoid::*;
pub use sine_cosine::*;
pub use tan::*;
pub use tanh::*;
pub use trig::*;

use crate::map::kernels;
use crate::simd::{Float, Lanes, Vector};

kernels! {
    unary {
        // Arithmetic.
        /// `−x`.
        neg Neg 0 0;
        /// `|x|`.
        abs Abs 0 0;
        /// −1, +1, or the zero itself.
        sign Sign 0 0;
        /// `x²`.
        square Square 0 0;
        /// `√x`.
        sqrt Sqrt 0 0;
        /// `1 / x`.
        recip Recip 0 0;
        // Exponentials and logarithms.
        /// `e^x`.
        exp Exp 1 1;
        /// `ln x`.
        log Log 1 1;
        // Trigonometric and hyperbolic functions.
        /// `sin x`.
        sin Sin 1 1;
        /// `cos x`.
        cos Cos 1 1;
        /// `tan x`.
        tan Tan 1 1;
        /// `asin x`.
        asin Asin 1 1;
        /// `acos x`.
        acos Acos 1 1;
        /// `atan x`.
        atan Atan 1 1;
        /// `sinh x`.
        sinh Sinh 1 1;
        /// `cosh x`.
        cosh Cosh 1 1;
        /// `tanh x`.
        tanh Tanh 1 1;
        /// `arsinh x`.
        asinh Asinh 1 1;
        /// `arcosh x`.
        acosh Acosh 1 1;
        /// `artanh x`.
        atanh Atanh 1 1;
        // Special and power functions.
        // Rounding.
        // Activations.
        /// `x` where positive, zero elsewhere.
        relu Relu 0 0;
        /// `1 / (1 + e^−x)`.
        sigmoid Sigmoid 1 1;
        /// `x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
        gelu_tanh GeluTanh 1 1;
        /// `x/2 (1 + erf(x/√2))`.
        gelu Gelu 1 1;
        /// `x / (1 + e^−x)`.
        silu Silu 1 1;
    }
    binary {
        // Arithmetic.
        /// `a + b`.
        add Add 0 0;
        /// `a − b`.
        sub Sub 0 0;
        /// `a × b`.
        mul Mul 0 0;
        /// `a / b`.
        div Div 0 0;
        /// The larger of the two; NaN if either is.
        maximum Maximum 0 0;
        /// The smaller of the two; NaN if either is.
        minimum Minimum 0 0;
        /// The angle of the point (`b`, `a`).
        atan2 Atan2 1 1;
        // Gradients.
        /// The gradient of [`tanh`] from upstream `a` and output `b`.
        tanh_grad TanhGrad;
        /// The gradient of [`sigmoid`] from upstream `a` and output `b`.
        sigmoid_grad SigmoidGrad;
        /// The gradient of [`relu`] from upstream `a` and input `b`.
        relu_grad ReluGrad;
        /// The gradient of [`silu`] from upstream `a` and input `b`.
        silu_grad SiluGrad;
        /// The gradient of [`gelu_tanh`] from upstream `a` and input `b`.
        gelu_tanh_grad GeluTanhGrad;
        /// The gradient of [`gelu`] from upstream `a` and input `b`.
        gelu_grad GeluGrad;
    }
}

/// What one function promises: the largest distance, in floats, from the correctly rounded result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UlpBound {
    /// The function's name, as in [`Unary::NAME`](crate::Unary::NAME).
    pub name: &'static str,
    /// Its bound for `f32`.
    pub f32: u32,
    /// Its bound for `f64`.
    pub f64: u32,
}

/// Collects the rows that state bounds.
pub(crate) struct UlpBounds {
    rows: [UlpBound; Self::MOST],
    count: usize,
}

impl UlpBounds {
    const MOST: usize = 128;

    pub(crate) const fn new() -> Self {
        UlpBounds { rows: [UlpBound { name: "", f32: 0, f64: 0 }; Self::MOST], count: 0 }
    }

    pub(crate) const fn with(mut self, name: &'static str, bounds: &[u32]) -> Self {
        if let [f32, f64] = *bounds {
            self.rows[self.count] = UlpBound { name, f32, f64 };
            self.count += 1;
        }
        self
    }

    pub(crate) const fn rows(&'static self) -> &'static [UlpBound] {
        self.rows.split_at(self.count).0
    }
}

/// The polynomial with these coefficients, lowest power first, by Horner's rule.
#[inline(always)]
fn horner<E: Float, S: Lanes<E>>(simd: S, x: S::V, coefficients: &'static [E]) -> S::V {
    let mut i = coefficients.len() - 1;
    let mut sum = simd.splat(coefficients[i]);
    while i > 0 {
        i -= 1;
        sum = sum.mul_add(x, simd.splat(coefficients[i]));
    }
    sum
}

/// The quotient of two sums `[high, low]`, within 0.51 ULP where it is normal.
///
/// The reciprocal of the high denominator gives a first quotient; its residual, exact up to the low
/// parts' rounding, corrects it.
#[inline(always)]
fn divide<E: Float, S: Lanes<E>>(
    simd: S,
    [high, low]: [S::V; 2],
    [under_high, under_low]: [S::V; 2],
) -> S::V {
    let reciprocal = simd.splat(E::ONE) / under_high;
    let quotient = high * reciprocal;
    let residual = quotient.neg_mul_add(under_high, high) + quotient.neg_mul_add(under_low, low);
    residual.mul_add(reciprocal, quotient)
}

/// `magnitude` with the sign of `sign`.
#[inline(always)]
fn copy_sign<E: Float, S: Lanes<E>>(simd: S, magnitude: S::V, sign: S::V) -> S::V {
    let sign_bit = simd.splat(-E::ZERO).to_bits();
    S::V::from_bits(magnitude.abs().to_bits() | (sign.to_bits() & sign_bit))
}

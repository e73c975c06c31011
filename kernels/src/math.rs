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
mod log;
mod sigmoid;
mod tanh;
mod trig;

pub use arith::{
    Abs, Add, Div, Maximum, Minimum, Mul, Neg, Recip, Relu, ReluGrad, Sign, Sqrt, Square, Sub,
};
pub use exp::Exp;
pub use gelu::{GeluTanh, GeluTanhGrad};
pub use log::Log;
pub use sigmoid::{Sigmoid, SigmoidGrad, Silu, SiluGrad};
pub use tanh::{Tanh, TanhGrad};
pub use trig::{Cos, Sin};

use crate::map::kernels;
use crate::simd::{Float, Lanes, Vector};

kernels! {
    unary {
        /// `−x`.
        neg Neg;
        /// `|x|`.
        abs Abs;
        /// −1, +1, or the zero itself.
        sign Sign;
        /// `x²`.
        square Square;
        /// `√x`.
        sqrt Sqrt;
        /// `1 / x`.
        recip Recip;
        /// `x` where positive, zero elsewhere.
        relu Relu;
        /// `e^x`.
        exp Exp;
        /// `ln x`.
        log Log;
        /// `tanh x`.
        tanh Tanh;
        /// `1 / (1 + e^−x)`.
        sigmoid Sigmoid;
        /// `x / (1 + e^−x)`.
        silu Silu;
        /// `x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
        gelu_tanh GeluTanh;
        /// `sin x`.
        sin Sin;
        /// `cos x`.
        cos Cos;
    }
    binary {
        /// `a + b`.
        add Add;
        /// `a − b`.
        sub Sub;
        /// `a × b`.
        mul Mul;
        /// `a / b`.
        div Div;
        /// The larger of the two; NaN if either is.
        maximum Maximum;
        /// The smaller of the two; NaN if either is.
        minimum Minimum;
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
    pub f64: u64,
}

/// The promise of every function that is not a derivative, for all inputs and instruction sets.
///
/// ```
/// let exp = swath_kernels::math::ULP_BOUNDS.iter().find(|row| row.name == "exp").unwrap();
/// assert_eq!((exp.f32, exp.f64), (1, 1));
/// ```
pub const ULP_BOUNDS: &[UlpBound] = &[
    bound("neg", 0, 0),
    bound("abs", 0, 0),
    bound("sign", 0, 0),
    bound("square", 0, 0),
    bound("sqrt", 0, 0),
    bound("recip", 0, 0),
    bound("relu", 0, 0),
    bound("exp", 1, 1),
    bound("log", 1, 1),
    bound("tanh", 1, 1),
    bound("sigmoid", 1, 1),
    bound("silu", 1, 1),
    bound("gelu_tanh", 1, 1),
    bound("sin", 1, 1),
    bound("cos", 1, 1),
    bound("add", 0, 0),
    bound("sub", 0, 0),
    bound("mul", 0, 0),
    bound("div", 0, 0),
    bound("maximum", 0, 0),
    bound("minimum", 0, 0),
];

const fn bound(name: &'static str, f32: u32, f64: u64) -> UlpBound {
    UlpBound { name, f32, f64 }
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

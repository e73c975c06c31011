//! The element-wise functions: one row each, one file a family.
//!
//! A kernel is a unit struct that implements `Map1` or `Map2` once for all instruction sets; its
//! documentation is its contract: domain, largest error and where it occurs, NaN, infinities, signed
//! zeros, subnormal numbers, origin of the coefficients. A kernel that computes a derivative stands
//! beside the function it belongs to: those of activations, `tanh` and `erf`, which training calls for, have one;
//! the others are made of several functions by swath's table of ops.
//!
//! Errors are given in ULP, units in the last place of the exact result (its subnormal spacing where
//! it is subnormal). Measured maxima are distances from the exact value, so that 0.5 is correct
//! rounding; [`ULP_BOUNDS`] holds what is promised, as a count of floats between the result and the
//! correctly rounded one.

mod arith;
mod erf;
mod exp;
mod exp2;
mod expm1;
mod gelu;
mod gelu_erf;
mod hyperbolic;
mod hypot;
mod inverse_hyperbolic;
mod inverse_trig;
mod log;
mod log1p;
mod mish;
mod piecewise;
mod power;
mod rem;
mod root;
mod rounding;
mod sigmoid;
mod sine_cosine;
mod softplus;
mod tan;
mod tanh;
mod ternary;
mod trig;

pub use arith::*;
pub use erf::*;
pub use exp::*;
pub use exp2::*;
pub use expm1::*;
pub use gelu::*;
pub use gelu_erf::*;
pub use hyperbolic::*;
pub use hypot::*;
pub use inverse_hyperbolic::*;
pub use inverse_trig::*;
pub use log::*;
pub use log1p::*;
pub use mish::*;
pub use piecewise::*;
pub use power::*;
pub use rem::*;
pub use root::*;
pub use rounding::*;
pub use sigmoid::*;
pub use sine_cosine::*;
pub use softplus::*;
pub use tan::*;
pub use tanh::*;
pub use ternary::*;
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
        /// `2^x`.
        exp2 Exp2 1 1;
        /// `10^x`.
        exp10 Exp10 1 1;
        /// `e^x − 1`.
        expm1 Expm1 1 1;
        /// `ln x`.
        log Log 1 1;
        /// `log2 x`.
        log2 Log2 1 1;
        /// `log10 x`.
        log10 Log10 1 1;
        /// `ln(1 + x)`.
        log1p Log1p 1 1;
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
        /// `2/√π ∫₀ˣ e^(−t²) dt`.
        erf Erf 1 1;
        /// `1 − erf x`.
        erfc Erfc 1 1;
        /// `∛x`.
        cbrt Cbrt 1 1;
        /// `1 / √x`.
        rsqrt Rsqrt 1 1;
        // Rounding.
        /// The largest integer that is not above `x`.
        floor Floor 0 0;
        /// The smallest integer that is not below `x`.
        ceil Ceil 0 0;
        /// The nearest integer, the even one of two.
        round Round 0 0;
        /// `x` without its fraction.
        trunc Trunc 0 0;
        // Activations.
        /// `x` where positive, zero elsewhere.
        relu Relu 0 0;
        /// `x` between 0 and 6, the nearer of these elsewhere.
        relu6 Relu6 0 0;
        /// `(x + 3) / 6` between −3 and 3, 0 below, 1 above.
        hardsigmoid Hardsigmoid 1 1;
        /// `x (x + 3) / 6` between −3 and 3, 0 below, `x` above.
        hardswish Hardswish 1 1;
        /// `1 / (1 + e^−x)`.
        sigmoid Sigmoid 1 1;
        /// `x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
        gelu_tanh GeluTanh 1 1;
        /// `x/2 (1 + erf(x/√2))`.
        gelu Gelu 1 1;
        /// `x / (1 + e^−x)`.
        silu Silu 1 1;
        /// `ln(1 + e^x)`.
        softplus Softplus 1 1;
        /// `ln(1 / (1 + e^−x))`.
        log_sigmoid LogSigmoid 1 1;
        /// `x tanh(ln(1 + e^x))`.
        mish Mish 1 1;
        /// `λ x` where `x` is not negative, else `λ α (e^x − 1)`.
        selu Selu 1 1;
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
        /// `a^b`, as C's `pow`.
        pow Pow 1 1;
        /// `√(a² + b²)`, without overflow on the way.
        hypot Hypot 1 1;
        /// The exact remainder of `a / b` cut towards zero, with the sign of `a`.
        rem Rem 0 0;
        /// `a` where it is not negative, else `a b`.
        leaky_relu LeakyRelu 0 0;
        /// `a` where it is not negative, else `b (e^a − 1)`.
        elu Elu 1 1;
        // Gradients.
        /// The gradient of [`erf`] from upstream `a` and input `b`.
        erf_grad ErfGrad;
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
        /// The gradient of [`softplus`] from upstream `a` and input `b`.
        softplus_grad SoftplusGrad;
        /// The gradient of [`log_sigmoid`] from upstream `a` and input `b`.
        log_sigmoid_grad LogSigmoidGrad;
        /// The gradient of [`mish`] from upstream `a` and input `b`.
        mish_grad MishGrad;
        /// The gradient of [`selu`] from upstream `a` and input `b`.
        selu_grad SeluGrad;
        /// The gradient of [`relu6`] from upstream `a` and input or output `b`.
        relu6_grad Relu6Grad;
        /// The gradient of [`hardsigmoid`] from upstream `a` and input `b`.
        hardsigmoid_grad HardsigmoidGrad;
        /// The gradient of [`hardswish`] from upstream `a` and input `b`.
        hardswish_grad HardswishGrad;
    }
    ternary {
        /// `a b + c`, rounded once.
        mul_add MulAdd;
        /// `a` between `b` and `c`, the nearer of these elsewhere.
        clamp Clamp;
        /// `a + c (b − a)`.
        lerp Lerp;
        // Gradients.
        /// The gradient of [`leaky_relu`] from upstream `a`, input `b` and slope `c`.
        leaky_relu_grad LeakyReluGrad;
        /// The gradient of [`elu`] from upstream `a`, input `b` and scale `c`.
        elu_grad EluGrad;
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

/// As [`horner`], even and odd powers apart: the same number of operations at half the latency for
/// who needs `square`, x², anyway.
#[inline(always)]
fn horner_by_parity<E: Float, S: Lanes<E>>(
    simd: S,
    x: S::V,
    square: S::V,
    coefficients: &'static [E],
) -> S::V {
    let mut i = coefficients.len() - 2;
    let mut sums = [simd.splat(coefficients[i]), simd.splat(coefficients[i + 1])];
    while i > 0 {
        // With an odd count the first step leaves the other sum behind, one power higher.
        i -= 1;
        sums = [sums[1].mul_add(square, simd.splat(coefficients[i])), sums[0]];
    }
    sums[1].mul_add(x, sums[0])
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

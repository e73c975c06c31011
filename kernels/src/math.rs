//! The element-wise functions: one row each in the table below, one file per family.
//!
//! A kernel is a unit struct that implements `Map` once for all instruction sets. Its documentation
//! is its contract: domain, largest error and where it occurs, NaN, infinities, signed zeros,
//! subnormal numbers, provenance of the coefficients. A derivative's kernel stands beside the
//! function it belongs to. Only the functions that training calls for have one (activations,
//! `tanh`, `erf`); swath's table of ops composes the other derivatives from several functions.
//!
//! Errors are given in ULP, units in the last place of the exact result (the subnormal spacing if
//! it is subnormal). Measured maxima are distances from the exact value, so 0.5 means correct
//! rounding; [`ULP_BOUNDS`] holds the promised bounds, as a count of floats between the result and
//! the correctly rounded one.

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
mod powers;
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
pub use powers::*;
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

use crate::simd::{Float, Lanes, Vector};

/// Names kernels, one row per function: documentation, name of the slice function, kernel type,
/// cost, and the bounds promised for `f32` and `f64`, if any. An element is `cheap` (a few
/// instructions) or `costly` (a polynomial or more), which decides how work is shared among
/// threads. Writes the slice functions into a module `functions`.
macro_rules! kernels {
    (
        unary { $($(#[$doc:meta])* $function:ident $Kernel:ident $cost:ident $($ulp:literal)*;)* }
        binary { $($(#[$doc2:meta])* $function2:ident $Kernel2:ident $cost2:ident $($ulp2:literal)*;)* }
        ternary { $($(#[$doc3:meta])* $function3:ident $Kernel3:ident $cost3:ident;)* }
    ) => {
        #[allow(dead_code, reason = "the tests of this macro state no bounds")]
        /// The promised bounds, for all inputs and instruction sets: the largest distance, in
        /// floats, from the correctly rounded result.
        ///
        /// ```
        /// let exp = swath_kernels::math::ULP_BOUNDS.iter().find(|row| row.name == "exp").unwrap();
        /// assert_eq!((exp.f32, exp.f64), (1, 1));
        /// ```
        pub const ULP_BOUNDS: &[$crate::math::UlpBound] = $crate::math::UlpBounds::new()
            $(.with(stringify!($function), &[$($ulp),*]))*
            $(.with(stringify!($function2), &[$($ulp2),*]))*
            .rows();

        #[allow(dead_code, reason = "as above")]
        /// The name of every function of one or two arguments, derivatives included.
        /// In `tests/suite/`, `accuracy.rs` compares them with references, and `gradients.rs` the
        /// derivatives. `ternary.rs` covers functions of three arguments, `trigonometric.rs`
        /// [`sincos`](crate::sincos).
        pub const NAMES: &[&str] =
            &[$(stringify!($function),)* $(stringify!($function2)),*];

        $(kernels!(@kernel 1 $function $Kernel $cost);)*
        $(kernels!(@kernel 2 $function2 $Kernel2 $cost2);)*
        $(kernels!(@kernel 3 $function3 $Kernel3 $cost3);)*

        /// The kernels as functions of slices.
        pub mod functions {
            use super::*;
            use $crate::{Arg, Function, Output, Stored};
            $(kernels! {
                @slices [$(#[$doc])*] $function $Kernel (x) "`x[i]`" "let x = [0.25f32, 0.5];" "&x"
            })*
            $(kernels! {
                @slices [$(#[$doc2])*] $function2 $Kernel2 (a b) "`a[i]` and `b[i]`"
                "let (a, b) = ([0.25f32, 0.5], [1.0, 2.0]);" "&a, &b"
            })*
            $(kernels! {
                @slices [$(#[$doc3])*] $function3 $Kernel3 (a b c) "`a[i]`, `b[i]` and `c[i]`"
                "let (a, b, c) = ([0.25f32, 0.5], [1.0, 2.0], [3.0, 4.0]);" "&a, &b, &c"
            })*
        }
    };
    (@kernel $n:literal $function:ident $Kernel:ident $cost:ident) => {
        impl $crate::map::sealed::Sealed for $Kernel {}
        impl $crate::Function<$n> for $Kernel {
            const KERNEL: &'static $crate::Kernel<$n> =
                $crate::map::kernel!($Kernel, $n, stringify!($function), kernels!(@is_cheap $cost));
        }
    };
    (@is_cheap cheap) => { true };
    (@is_cheap costly) => { false };
    (
        @slices [$($doc:tt)*] $function:ident $Kernel:ident ($($x:ident)+)
        $reads:literal $inputs:literal $arguments:literal
    ) => {
        $($doc)*
        ///
        #[doc = concat!("Writes `y[i]` from ", $reads, "; panics if the lengths differ.")]
        #[doc = concat!(
            "```\n", $inputs, "\nlet mut y = [0.0; 2];\nswath_kernels::", stringify!($function), "(",
            $arguments, ", &mut y);\n```"
        )]
        #[inline]
        #[track_caller]
        pub fn $function<T: Stored>($($x: &[T],)+ y: &mut (impl Output<T> + ?Sized)) {
            $Kernel::KERNEL.run([$(Arg::Slice($x)),+], y);
        }
    };
}
#[cfg(test)]
pub(crate) use kernels;

kernels! {
    unary {
        // Arithmetic.
        /// `−x`.
        neg Neg cheap 0 0;
        /// `|x|`.
        abs Abs cheap 0 0;
        /// −1, +1, or `x` itself if it is zero or NaN.
        sign Sign cheap 0 0;
        /// `x²`.
        square Square cheap 0 0;
        /// `√x`.
        sqrt Sqrt cheap 0 0;
        /// `1 / x`.
        recip Recip cheap 0 0;
        // Exponentials and logarithms.
        /// `e^x`.
        exp Exp costly 1 1;
        /// `2^x`.
        exp2 Exp2 costly 1 1;
        /// `10^x`.
        exp10 Exp10 costly 1 1;
        /// `e^x − 1`.
        expm1 Expm1 costly 1 1;
        /// `ln x`.
        log Log costly 1 1;
        /// `log2 x`.
        log2 Log2 costly 1 1;
        /// `log10 x`.
        log10 Log10 costly 1 1;
        /// `ln(1 + x)`.
        log1p Log1p costly 1 1;
        // Trigonometric and hyperbolic functions.
        /// `sin x`.
        sin Sin costly 1 1;
        /// `cos x`.
        cos Cos costly 1 1;
        /// `tan x`.
        tan Tan costly 1 1;
        /// `asin x`.
        asin Asin costly 1 1;
        /// `acos x`.
        acos Acos costly 1 1;
        /// `atan x`.
        atan Atan costly 1 1;
        /// `sinh x`.
        sinh Sinh costly 1 1;
        /// `cosh x`.
        cosh Cosh costly 1 1;
        /// `tanh x`.
        tanh Tanh costly 1 1;
        /// `arsinh x`.
        asinh Asinh costly 1 1;
        /// `arcosh x`.
        acosh Acosh costly 1 1;
        /// `artanh x`.
        atanh Atanh costly 1 1;
        // Special and power functions.
        /// `2/√π ∫₀ˣ e^(−t²) dt`.
        erf Erf costly 1 1;
        /// `1 − erf x`.
        erfc Erfc costly 1 1;
        /// `∛x`.
        cbrt Cbrt costly 1 1;
        /// `1 / √x`.
        rsqrt Rsqrt costly 1 1;
        /// `x³`.
        pow3 Pow3 cheap 1 1;
        /// `x⁴`.
        pow4 Pow4 cheap 1 1;
        /// `x^−2`.
        pow_minus2 PowMinus2 cheap 1 1;
        /// `x^½`, as C's `pow`.
        pow_half PowHalf cheap 0 0;
        /// `x^−½`, as C's `pow`.
        pow_minus_half PowMinusHalf costly 1 1;
        // Rounding.
        /// The largest integer that is not above `x`.
        floor Floor cheap 0 0;
        /// The smallest integer that is not below `x`.
        ceil Ceil cheap 0 0;
        /// The nearest integer; ties go to the even one.
        round Round cheap 0 0;
        /// `x` rounded towards zero.
        trunc Trunc cheap 0 0;
        // Activations.
        /// `x` where positive, zero elsewhere.
        relu Relu cheap 0 0;
        /// `x` clamped to `0..=6`.
        relu6 Relu6 cheap 0 0;
        /// `(x + 3) / 6` between −3 and 3, 0 below, 1 above.
        hardsigmoid Hardsigmoid cheap 1 1;
        /// `x (x + 3) / 6` between −3 and 3, 0 below, `x` above.
        hardswish Hardswish cheap 1 1;
        /// `1 / (1 + e^−x)`.
        sigmoid Sigmoid costly 1 1;
        /// `x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
        gelu_tanh GeluTanh costly 1 1;
        /// `x/2 (1 + erf(x/√2))`.
        gelu Gelu costly 1 1;
        /// `x / (1 + e^−x)`.
        silu Silu costly 1 1;
        /// `ln(1 + e^x)`.
        softplus Softplus costly 1 1;
        /// `ln(1 / (1 + e^−x))`.
        log_sigmoid LogSigmoid costly 1 1;
        /// `x tanh(ln(1 + e^x))`.
        mish Mish costly 1 1;
        /// `λ x` where `x ≥ 0`, else `λ α (e^x − 1)`.
        selu Selu costly 1 1;
    }
    binary {
        // Arithmetic.
        /// `a + b`.
        add Add cheap 0 0;
        /// `a − b`.
        sub Sub cheap 0 0;
        /// `a × b`.
        mul Mul cheap 0 0;
        /// `a / b`.
        div Div cheap 0 0;
        /// The larger of the two; NaN if either is.
        maximum Maximum cheap 0 0;
        /// The smaller of the two; NaN if either is.
        minimum Minimum cheap 0 0;
        /// The angle of the point (`b`, `a`).
        atan2 Atan2 costly 1 1;
        /// `a^b`, as C's `pow`.
        pow Pow costly 1 1;
        /// `√(a² + b²)`, without intermediate overflow.
        hypot Hypot costly 1 1;
        /// The exact remainder of `a / b` truncated towards zero, with the sign of `a`.
        rem Rem costly 0 0;
        /// The remainder of `a / b` rounded down, with the sign of `b`.
        remainder Remainder costly 0 0;
        /// `a / b` rounded down.
        floor_divide FloorDivide costly 2 2;
        /// `a ln b`; 0 where `a` is zero.
        xlogy XLogY costly 2 2;
        /// `a` where `a ≥ 0`, else `a b`.
        leaky_relu LeakyRelu cheap 0 0;
        /// `a` where `a ≥ 0`, else `b (e^a − 1)`.
        elu Elu costly 1 1;
        // Gradients.
        /// The gradient of [`erf`] from upstream gradient `a` and input `b`.
        erf_grad ErfGrad costly;
        /// The gradient of [`tanh`] from upstream gradient `a` and output `b`.
        tanh_grad TanhGrad cheap;
        /// The gradient of [`sigmoid`] from upstream gradient `a` and output `b`.
        sigmoid_grad SigmoidGrad cheap;
        /// The gradient of [`relu`] from upstream gradient `a` and input `b`.
        relu_grad ReluGrad cheap;
        /// The gradient of [`silu`] from upstream gradient `a` and input `b`.
        silu_grad SiluGrad costly;
        /// The gradient of [`gelu_tanh`] from upstream gradient `a` and input `b`.
        gelu_tanh_grad GeluTanhGrad costly;
        /// The gradient of [`gelu`] from upstream gradient `a` and input `b`.
        gelu_grad GeluGrad costly;
        /// The gradient of [`softplus`] from upstream gradient `a` and input `b`.
        softplus_grad SoftplusGrad costly;
        /// The gradient of [`log_sigmoid`] from upstream gradient `a` and input `b`.
        log_sigmoid_grad LogSigmoidGrad costly;
        /// The gradient of [`mish`] from upstream gradient `a` and input `b`.
        mish_grad MishGrad costly;
        /// The gradient of [`selu`] from upstream gradient `a` and input `b`.
        selu_grad SeluGrad costly;
        /// The gradient of [`relu6`] from upstream gradient `a` and input or output `b`.
        relu6_grad Relu6Grad cheap;
        /// The gradient of [`hardsigmoid`] from upstream gradient `a` and input `b`.
        hardsigmoid_grad HardsigmoidGrad cheap;
        /// The gradient of [`hardswish`] from upstream gradient `a` and input `b`.
        hardswish_grad HardswishGrad cheap;
    }
    ternary {
        /// `a b + c`, rounded once.
        mul_add MulAdd cheap;
        /// `a` clamped to `b..=c`.
        clamp Clamp cheap;
        /// `a + c (b − a)`.
        lerp Lerp cheap;
        /// The Huber loss of `a` and `b` with threshold `c`.
        huber Huber cheap;
        // Gradients.
        /// The gradient of [`leaky_relu`] from upstream gradient `a`, input `b` and slope `c`.
        leaky_relu_grad LeakyReluGrad cheap;
        /// The gradient of [`elu`] from upstream gradient `a`, input `b` and scale `c`.
        elu_grad EluGrad costly;
    }
}

/// One function's promised bound: the largest distance, in floats, from the correctly rounded
/// result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UlpBound {
    /// The function's name, as in [`Kernel::name`](crate::Kernel::name).
    pub name: &'static str,
    /// Its bound for `f32`.
    pub f32: u32,
    /// Its bound for `f64`.
    pub f64: u32,
}

/// Collects the rows that promise bounds.
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

/// Evaluates the polynomial with these coefficients, lowest power first, by Horner's rule.
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

/// [`horner`] with even and odd powers apart: the same number of operations at half the latency,
/// for callers that have `square`, x², already.
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
        // An odd count leaves the other sum one power higher after the first step.
        i -= 1;
        sums = [sums[1].mul_add(square, simd.splat(coefficients[i])), sums[0]];
    }
    sums[1].mul_add(x, sums[0])
}

/// The quotient of two unevaluated sums `[high, low]`, within 0.51 ULP if it is normal.
///
/// The reciprocal of the high denominator gives a first quotient, which its residual corrects; the
/// residual is exact up to the rounding of the low parts.
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

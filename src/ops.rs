//! The op enums, and the op table with one row for each unary, binary and ternary op.
//!
//! This module uses nothing else of the crate. A row holds everything that the rest of the crate
//! knows about an op; the macros `unary_ops!`, `binary_ops!` and `ternary_ops!` pass the rows to
//! the macros that expand them:
//!
//! | file | expands a row to |
//! |---|---|
//! | this file | the enum variant, `name()`, `ALL`, the reference formulas, the test domain |
//! | `tensor/elementwise.rs` | the documented `Tensor` method |
//! | `autodiff/rules.rs` | the derivative, and the values that are saved for it |
//! | `backend/cpu/elementwise.rs` | the kernel: `UnaryOp::Exp` is `swath_kernels::math::Exp` |
//!
//! A row looks like this:
//!
//! ```text
//! {
//!     /// One line of documentation.
//!     exp, Exp;                          method and enum variant (= kernel name)
//!     value: |x| x.exp();                the definition in f64
//!     integer: (|x| x.abs());            the definition on i64; left out if there is none
//!     domain: -5.0, 5.0;                 the interval of test inputs
//!     gradient: (g, y) => g.mul(y);      gradient of the input; its parameters are saved
//! }
//! ```
//!
//! In a gradient, `g` is the upstream gradient, `x` (or `a`, `b`) an input and `y` the output; the
//! expression is a `Result<Tensor>`. The engine sums gradients of broadcast inputs; rows need not.

mod formulas;
mod fused;
mod integer;
mod order;
pub(crate) mod special;
pub(crate) mod table;
mod ternary;
mod update;

use formulas::*;
pub(crate) use formulas::{
    GELU_TANH_CUBIC, GELU_TANH_FACTOR, NORMAL_DENSITY_AT_0, SELU_ALPHA, SELU_SCALE,
};
pub use fused::{Activation, AttentionParameters, DropoutMask, FusedOp};
pub(crate) use integer::{IntegerFn, greatest_divisor, integer_functions};
pub use order::{Extremum, OrderOp};
pub use swath_kernels::{Geometry, GeometryError, Sliding};
pub(crate) use table::{binary_ops, unary_ops};
pub use ternary::TernaryOp;
pub(crate) use ternary::ternary_ops;
pub use update::UpdateOp;

macro_rules! unary_enum {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        value: $value:expr;
        $(integer: ($integer:expr);)?
        domain: $low:expr, $high:expr;
        gradient: $parameters:tt => $gradient:expr;
    })*) => {
        /// An element-wise function of one tensor.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum UnaryOp {
            $($(#[$doc])* $Variant,)*
        }

        impl UnaryOp {
            /// All ops.
            pub const ALL: &[UnaryOp] = &[$(UnaryOp::$Variant),*];

            /// The name of the method, for error messages.
            pub const fn name(self) -> &'static str {
                match self {
                    $(UnaryOp::$Variant => stringify!($method),)*
                }
            }

            /// The definition, in `f64`.
            pub fn reference(self) -> fn(f64) -> f64 {
                match self {
                    $(UnaryOp::$Variant => $value,)*
                }
            }

            /// The definition on integers, whose result is taken modulo the dtype's range; `None` if there is none.
            pub fn reference_integer(self) -> Option<fn(i128) -> i128> {
                match self {
                    $(UnaryOp::$Variant => unary_enum!(@optional $($integer)?),)*
                }
            }

            /// The interval of test inputs.
            pub const fn domain(self) -> (f64, f64) {
                match self {
                    $(UnaryOp::$Variant => ($low, $high),)*
                }
            }
        }
    };
    (@optional $formula:expr) => { Some($formula) };
    (@optional) => { None };
}
unary_ops!(unary_enum);

macro_rules! binary_enum {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        value: $value:expr;
        $(integer: ($integer:expr);)?
        domain: $a_low:expr, $a_high:expr; $b_low:expr, $b_high:expr;
        gradient_a: $a_parameters:tt => $a_gradient:expr;
        gradient_b: $b_parameters:tt => $b_gradient:expr;
    })*) => {
        /// An element-wise function of two tensors.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum BinaryOp {
            $($(#[$doc])* $Variant,)*
        }

        impl BinaryOp {
            /// All ops.
            pub const ALL: &[BinaryOp] = &[$(BinaryOp::$Variant),*];

            /// The name of the method, for error messages.
            pub const fn name(self) -> &'static str {
                match self {
                    $(BinaryOp::$Variant => stringify!($method),)*
                }
            }

            /// The definition, in `f64`.
            pub fn reference(self) -> fn(f64, f64) -> f64 {
                match self {
                    $(BinaryOp::$Variant => $value,)*
                }
            }

            /// The definition on integers; `None` if there is none. It returns `None` if division
            /// fails.
            pub fn reference_integer(self) -> Option<fn(i128, i128) -> Option<i128>> {
                match self {
                    $(BinaryOp::$Variant => unary_enum!(@optional $($integer)?),)*
                }
            }

            /// True if it divides integers, which can fail.
            pub const fn divides_integers(self) -> bool {
                use BinaryOp::{Div, FloorDivide, Rem, Remainder};
                matches!(self, Div | Rem | Remainder | FloorDivide)
            }

            /// The intervals of the two test inputs.
            pub const fn domain(self) -> [(f64, f64); 2] {
                match self {
                    $(BinaryOp::$Variant => [($a_low, $a_high), ($b_low, $b_high)],)*
                }
            }
        }
    };
}
binary_ops!(binary_enum);

/// An element-wise comparison of two tensors; the result is `Bool` and has no gradient. Comparisons
/// with NaN are false, except `ne`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the six usual ones")]
pub enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl CompareOp {
    /// All ops.
    pub const ALL: [CompareOp; 6] =
        [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];

    /// The name of the method, for error messages.
    pub const fn name(self) -> &'static str {
        match self {
            CompareOp::Eq => "eq",
            CompareOp::Ne => "ne",
            CompareOp::Lt => "lt",
            CompareOp::Le => "le",
            CompareOp::Gt => "gt",
            CompareOp::Ge => "ge",
        }
    }

    /// The definition.
    pub fn apply<T: PartialOrd>(self, a: T, b: T) -> bool {
        match self {
            CompareOp::Eq => a == b,
            CompareOp::Ne => a != b,
            CompareOp::Lt => a < b,
            CompareOp::Le => a <= b,
            CompareOp::Gt => a > b,
            CompareOp::Ge => a >= b,
        }
    }
}

/// An element-wise test; the result is `Bool` and has no gradient. Integers and booleans are
/// finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumberTest {
    /// True for NaN.
    IsNan,
    /// True for +∞ and −∞.
    IsInf,
    /// True for finite numbers.
    IsFinite,
}

impl NumberTest {
    /// All tests.
    pub const ALL: [NumberTest; 3] = [NumberTest::IsNan, NumberTest::IsInf, NumberTest::IsFinite];

    /// The name of the method, for error messages.
    pub const fn name(self) -> &'static str {
        match self {
            NumberTest::IsNan => "isnan",
            NumberTest::IsInf => "isinf",
            NumberTest::IsFinite => "isfinite",
        }
    }

    /// The definition.
    pub fn apply(self, x: f64) -> bool {
        match self {
            NumberTest::IsNan => x.is_nan(),
            NumberTest::IsInf => x.is_infinite(),
            NumberTest::IsFinite => x.is_finite(),
        }
    }
}

/// A cumulative operation along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScanOp {
    /// Cumulative sums. Those of integers and booleans are `I64` and wrap.
    Sum,
    /// Cumulative products. Those of integers and booleans are `I64` and wrap.
    Product,
}

impl ScanOp {
    /// All ops.
    pub const ALL: [ScanOp; 2] = [ScanOp::Sum, ScanOp::Product];

    /// The name of the method, for error messages.
    pub const fn name(self) -> &'static str {
        match self {
            ScanOp::Sum => "cumsum",
            ScanOp::Product => "cumprod",
        }
    }
}

/// A reduction over axes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReduceOp {
    /// Sum; 0 for no elements. Sums of integers and booleans are `I64` and wrap.
    Sum,
    /// Product; 1 for no elements. Products of integers and booleans are `I64` and wrap.
    Prod,
    /// Arithmetic mean of floats; NaN for no elements, infinite if the sum overflows `f64`.
    Mean,
    /// Variance of floats: the sum of squared distances from the mean, divided by the number of
    /// elements minus `ddof`. For at most `ddof` elements ∞, or NaN if the sum is 0.
    Variance {
        /// Delta degrees of freedom: 0 for a population, 1 for an estimate from a sample.
        ddof: usize,
    },
    /// Square root of [`ReduceOp::Variance`].
    Std {
        /// As in [`ReduceOp::Variance`].
        ddof: usize,
    },
    /// The p-norm `(Σ |x|^p)^(1/p)` of floats. p = 0 counts the elements that are not 0; p = ∞ and
    /// p = −∞ give the largest and the smallest magnitude. 0 for no elements, ∞ for negative p.
    Norm {
        /// The order, not NaN.
        p: f64,
    },
    /// `ln Σ e^x` of floats, without overflow; −∞ for no elements.
    LogSumExp,
    /// Maximum; NaN if an element is. No elements are an error.
    Max,
    /// Minimum; NaN if an element is. No elements are an error.
    Min,
    /// Index of the maximum, as `I64`, in row-major order over the axes: that of the first of equal
    /// elements (−0 equals +0), or of the first NaN. No elements are an error.
    ArgMax,
    /// Index of the minimum; see [`ReduceOp::ArgMax`].
    ArgMin,
    /// True if any element is not 0, as `Bool`; NaN is not 0. False for no elements.
    Any,
    /// True if all elements are not 0, as `Bool`. True for no elements.
    All,
}

impl ReduceOp {
    /// Every op; those with parameters occur more than once.
    pub const ALL: [ReduceOp; 19] = [
        ReduceOp::Sum,
        ReduceOp::Prod,
        ReduceOp::Mean,
        ReduceOp::Variance { ddof: 0 },
        ReduceOp::Variance { ddof: 1 },
        ReduceOp::Std { ddof: 1 },
        ReduceOp::Norm { p: 0.0 },
        ReduceOp::Norm { p: 1.0 },
        ReduceOp::Norm { p: 2.0 },
        ReduceOp::Norm { p: f64::INFINITY },
        ReduceOp::Norm { p: f64::NEG_INFINITY },
        ReduceOp::Norm { p: 2.5 },
        ReduceOp::LogSumExp,
        ReduceOp::Max,
        ReduceOp::Min,
        ReduceOp::ArgMax,
        ReduceOp::ArgMin,
        ReduceOp::Any,
        ReduceOp::All,
    ];

    /// The name of the method, for error messages.
    pub const fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Prod => "prod",
            ReduceOp::Mean => "mean",
            ReduceOp::Variance { .. } => "variance",
            ReduceOp::Std { .. } => "std",
            ReduceOp::Norm { .. } => "norm",
            ReduceOp::LogSumExp => "logsumexp",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
            ReduceOp::ArgMax => "argmax",
            ReduceOp::ArgMin => "argmin",
            ReduceOp::Any => "any",
            ReduceOp::All => "all",
        }
    }

    /// True if the reduction is defined for floats only.
    pub const fn needs_floats(self) -> bool {
        use ReduceOp::{LogSumExp, Mean, Norm, Std, Variance};
        matches!(self, Mean | Variance { .. } | Std { .. } | Norm { .. } | LogSumExp)
    }

    /// True if no elements are an error.
    pub const fn needs_elements(self) -> bool {
        use ReduceOp::{ArgMax, ArgMin, Max, Min};
        matches!(self, Max | Min | ArgMax | ArgMin)
    }
}

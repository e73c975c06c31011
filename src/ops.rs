//! What can be computed: the op enums, and one table row for each unary, binary and ternary op.
//!
//! This module names nothing else of the crate. A row holds all that the rest of the crate says
//! about an op; the macros `unary_ops!`, `binary_ops!` and `ternary_ops!` hand the
//! rows to whoever expands them:
//!
//! | who expands | what it makes of a row |
//! |---|---|
//! | this file | the enum variant, `name()`, `ALL`, the reference formulas, the test domain |
//! | `tensor/elementwise.rs` | the documented `Tensor` method |
//! | `autodiff/rules.rs` | the derivative, and which of its values are kept for it |
//! | `backend/cpu/elementwise.rs` | the kernel: `UnaryOp::Exp` is `swath_kernels::math::Exp` |
//!
//! A row reads
//!
//! ```text
//! {
//!     /// One line of documentation.
//!     exp, Exp;                          method and enum variant (= kernel name)
//!     value: |x| x.exp();                the definition in f64
//!     integer: ();                       the definition on i64, or () where there is none
//!     domain: -5.0, 5.0;                 where tests draw inputs from
//!     gradient: (g, y) => g.mul(y);      gradient of the input; its parameters say what is kept
//! }
//! ```
//!
//! In a gradient, `g` is the upstream gradient, `x` (or `a`, `b`) an input and `y` the output; the
//! expression is a `Result<Tensor>`. Broadcasting is undone by the engine, never in a rule.

mod convolution;
mod formulas;
mod fused;
mod pooling;
pub(crate) mod table;
mod ternary;
mod window;

pub use convolution::Convolution;
use formulas::*;
pub(crate) use formulas::{
    GELU_TANH_CUBIC, GELU_TANH_FACTOR, NORMAL_DENSITY_AT_0, SELU_ALPHA, SELU_SCALE,
};
pub use fused::{Activation, AttentionParameters, DropoutMask, FusedOp, UpdateOp};
pub use pooling::Pooling;
pub(crate) use table::{binary_ops, unary_ops};
pub use ternary::TernaryOp;
pub(crate) use ternary::ternary_ops;
pub use window::Window;

macro_rules! unary_enum {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        value: $value:expr;
        integer: ($($integer:expr)?);
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
            /// Every op.
            pub const ALL: &[UnaryOp] = &[$(UnaryOp::$Variant),*];

            /// The method's name, which errors give.
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

            /// The definition on integers, if there is one.
            pub fn reference_integer(self) -> Option<fn(i64) -> i64> {
                match self {
                    $(UnaryOp::$Variant => unary_enum!(@optional $($integer)?),)*
                }
            }

            /// The interval that tests draw inputs from.
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
        integer: ($($integer:expr)?);
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
            /// Every op.
            pub const ALL: &[BinaryOp] = &[$(BinaryOp::$Variant),*];

            /// The method's name, which errors give.
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

            /// The definition on integers, if there is one; it gives `None` where division fails.
            pub fn reference_integer(self) -> Option<fn(i64, i64) -> Option<i64>> {
                match self {
                    $(BinaryOp::$Variant => unary_enum!(@optional $($integer)?),)*
                }
            }

            /// The intervals that tests draw the two inputs from.
            pub const fn domain(self) -> [(f64, f64); 2] {
                match self {
                    $(BinaryOp::$Variant => [($a_low, $a_high), ($b_low, $b_high)],)*
                }
            }
        }
    };
}
binary_ops!(binary_enum);

/// A comparison of two tensors, element by element; the result is `Bool` and has no gradient.
/// Comparisons with NaN are false, but `ne` is true.
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
    /// Every op.
    pub const ALL: [CompareOp; 6] =
        [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];

    /// The method's name, which errors give.
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

/// What a number can be tested for; the result is `Bool` and has no gradient. Integers and truth values
/// are finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumberTest {
    /// Not a number.
    IsNan,
    /// +∞ or −∞.
    IsInf,
    /// Neither NaN nor infinite.
    IsFinite,
}

impl NumberTest {
    /// Every test.
    pub const ALL: [NumberTest; 3] = [NumberTest::IsNan, NumberTest::IsInf, NumberTest::IsFinite];

    /// The method's name, which errors give.
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

/// Running totals along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScanOp {
    /// Sums. Integers and truth values add up in `I64`, wrapping.
    Sum,
    /// Products; of integers and truth values in `I64`, wrapping.
    Product,
}

impl ScanOp {
    /// Every op.
    pub const ALL: [ScanOp; 2] = [ScanOp::Sum, ScanOp::Product];

    /// The method's name, which errors give.
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
    /// Sum; 0 of no elements. Integers and truth values add up in `I64`, wrapping.
    Sum,
    /// Product; 1 of no elements. Integers and truth values multiply in `I64`, wrapping.
    Prod,
    /// Arithmetic mean, floats only; NaN of no elements. A sum beyond the numbers of `f64` makes it ∞.
    Mean,
    /// Sum of squared distances from the mean over the number of elements less `ddof`, floats only;
    /// of no more than `ddof` elements ∞, or NaN where the sum is 0.
    Variance {
        /// "Delta degrees of freedom": 0 for a population, 1 for an estimate from a sample.
        ddof: usize,
    },
    /// Square root of [`ReduceOp::Variance`].
    Std {
        /// As for the variance.
        ddof: usize,
    },
    /// `(Σ |x|^p)^(1/p)`, floats only; p = 0: the number of elements that are not 0; p = ∞, −∞: the
    /// largest, the smallest magnitude. Of no elements 0, for negative p ∞.
    Norm {
        /// The order, not NaN.
        p: f64,
    },
    /// `ln Σ e^x` without overflow, floats only; −∞ of no elements.
    LogSumExp,
    /// Largest element; NaN if there is one; an error of no elements.
    Max,
    /// Smallest element; NaN if there is one; an error of no elements.
    Min,
    /// Where the largest element is, as `I64`, counted in row-major order over the axes: the first of
    /// equals (−0 equals +0), the first NaN if there is one; an error of no elements.
    ArgMax,
    /// Where the smallest element is, as [`ReduceOp::ArgMax`].
    ArgMin,
    /// Whether an element is not 0, as `Bool`; a NaN is not 0. False of no elements.
    Any,
    /// Whether no element is 0, as `Bool`. True of no elements.
    All,
}

impl ReduceOp {
    /// Every op, those with parameters more than once.
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

    /// The method's name, which errors give.
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

    /// True if it is defined on floats alone.
    pub const fn needs_floats(self) -> bool {
        use ReduceOp::{LogSumExp, Mean, Norm, Std, Variance};
        matches!(self, Mean | Variance { .. } | Std { .. } | Norm { .. } | LogSumExp)
    }

    /// True if it is an error of no elements.
    pub const fn needs_elements(self) -> bool {
        use ReduceOp::{ArgMax, ArgMin, Max, Min};
        matches!(self, Max | Min | ArgMax | ArgMin)
    }
}

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

mod fused;
pub(crate) mod table;
mod ternary;

pub use fused::{Activation, AttentionParameters, DropoutMask, FusedOp, UpdateOp};
pub(crate) use table::{binary_ops, unary_ops};
pub use ternary::TernaryOp;
pub(crate) use ternary::ternary_ops;

/// √(2/π), the inner factor of [`UnaryOp::GeluTanh`].
pub(crate) const GELU_TANH_FACTOR: f64 = 0.797_884_560_802_865_4;
/// The cubic coefficient of [`UnaryOp::GeluTanh`] (Hendrycks & Gimpel, 2016).
pub(crate) const GELU_TANH_CUBIC: f64 = 0.044_715;

/// 1/√(2π).
pub(crate) const NORMAL_DENSITY_AT_0: f64 = 0.398_942_280_401_432_7;

fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

/// `x σ(v)` for `x` and `v` of one sign; −0, its limit, where σ(v) is 0.
fn gate(x: f64, v: f64) -> f64 {
    match sigmoid(v) {
        0.0 => -0.0,
        s => x * s,
    }
}

/// Derivative of [`gate`] where `v` is a function of `x`: `σ(v) (1 + x (1 - σ(v)) v′)`, or its limit
/// where σ(v) is 0 or 1. `1 - σ(v)` is `σ(-v)`, without the cancellation.
fn gate_slope(x: f64, v: f64, v_slope: f64) -> f64 {
    let s = sigmoid(v);
    match v.abs() > 800.0 {
        true => s.copysign(v),
        false => s * (1.0 + x * sigmoid(-v) * v_slope),
    }
}

/// `ln(1 + e^x)`.
fn softplus(x: f64) -> f64 {
    let positive = if x < 0.0 { 0.0 } else { x };
    positive + (-x.abs()).exp().ln_1p()
}

/// `tanh(softplus(x))` as numerator and denominator, and `e^-|x|`.
fn mish_ratio(x: f64) -> [f64; 3] {
    let e = (-x.abs()).exp();
    if x < 0.0 {
        [e * (2.0 + e), e * (2.0 + e) + 2.0, e]
    } else {
        [1.0 + 2.0 * e, 1.0 + 2.0 * e + 2.0 * e * e, e]
    }
}

/// `x tanh(softplus(x))`; −0, its limit, where the tangent is 0.
fn mish(x: f64) -> f64 {
    match mish_ratio(x) {
        [0.0, ..] => -0.0,
        [above, below, _] => x * (above / below),
    }
}

/// Derivative of [`mish`], or its limit.
fn mish_slope(x: f64) -> f64 {
    let [above, below, e] = mish_ratio(x);
    let bend = 4.0 * e * (1.0 + e) * if x < 0.0 { 1.0 } else { e };
    match x.abs() > 800.0 {
        true => above / below,
        false => above / below + x * bend / (below * below),
    }
}

/// Argument of the tanh in [`UnaryOp::GeluTanh`], and its derivative.
fn gelu_tanh_argument(x: f64) -> (f64, f64) {
    let square = x * x;
    (
        GELU_TANH_FACTOR * x * (1.0 + GELU_TANH_CUBIC * square),
        GELU_TANH_FACTOR * (1.0 + 3.0 * GELU_TANH_CUBIC * square),
    )
}

/// 1 − Φ(a) of the normal distribution, for `a >= 0`.
fn normal_tail(a: f64) -> f64 {
    if a < 1.0 {
        // Φ(a) = 1/2 + φ(a) (a + a³/3 + a⁵/15 + …)
        let (mut term, mut sum, mut n) = (a, a, 1.0);
        while term > 1e-18 * sum {
            n += 2.0;
            term *= a * a / n;
            sum += term;
        }
        return 0.5 - normal_density(a) * sum;
    }
    // Laplace's continued fraction: φ(a) / (a + 1/(a + 2/(a + 3/…))); these many
    // leave 2^-55 at 1, less elsewhere.
    let terms = (350.0 / (a * a)) as i32 + 50;
    normal_density(a) / (1..=terms).rev().fold(a, |below, n| a + f64::from(n) / below)
}

/// φ(a), the normal density; the rounding error of a² is a factor of its own.
fn normal_density(a: f64) -> f64 {
    let square = a * a;
    let rounded_away = if square.is_finite() { a.mul_add(a, -square) } else { 0.0 };
    (-0.5 * square).exp() * (1.0 - 0.5 * rounded_away) / std::f64::consts::TAU.sqrt()
}

/// `x Φ(x)`; its limits where the tail is 0.
fn gelu(x: f64) -> f64 {
    match normal_tail(x.abs()) {
        0.0 if x < 0.0 => -0.0,
        0.0 => x,
        tail if x < 0.0 => x * tail,
        tail => x * (1.0 - tail),
    }
}

/// Derivative of [`gelu`], `Φ(x) + x φ(x)`.
fn gelu_slope(x: f64) -> f64 {
    let a = x.abs();
    let below = if a > 40.0 { 0.0 } else { normal_tail(a) - a * normal_density(a) };
    if x < 0.0 { below } else { 1.0 - below }
}

/// arsinh x; ln 2x where x² is too large.
fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let y = match a > 1e150 {
        true => a.ln() + std::f64::consts::LN_2,
        false => (a + a * a / (1.0 + (a * a + 1.0).sqrt())).ln_1p(),
    };
    y.copysign(x)
}

/// arcosh x; ln 2x where x² is too large.
fn acosh(x: f64) -> f64 {
    let d = x - 1.0;
    if x < 1.0 {
        f64::NAN
    } else if x > 1e150 {
        x.ln() + std::f64::consts::LN_2
    } else {
        (d + (d * (d + 2.0)).sqrt()).ln_1p()
    }
}

/// artanh x.
fn atanh(x: f64) -> f64 {
    let a = x.abs();
    (0.5 * (2.0 * a / (1.0 - a)).ln_1p()).copysign(x)
}

/// The error function: its series `2/√π e^(-x²) (x + 2x³/3 + 4x⁵/15 + …)`, or 1 less its complement.
fn erf(x: f64) -> f64 {
    if x.abs() >= 1.0 {
        return (1.0 - erfc(x.abs())).copysign(x);
    }
    let (mut term, mut sum, mut n) = (x, x, 1.0);
    while term.abs() > 1e-18 * sum.abs() {
        n += 2.0;
        term *= 2.0 * x * x / n;
        sum += term;
    }
    erf_slope(x) * sum
}

/// Its complement: Laplace's continued fraction where it is small.
fn erfc(x: f64) -> f64 {
    if x < 0.5 {
        return 1.0 - erf(x);
    }
    let terms = (175.0 / (x * x)) as i32 + 50;
    let fraction = (1..=terms).rev().fold(x, |below, n| x + 0.5 * f64::from(n) / below);
    0.5 * erf_slope(x) / fraction
}

/// Derivative of [`erf`], `2/√π e^(-x²)`; the square's rounding error, times x², would be the result's.
fn erf_slope(x: f64) -> f64 {
    let square = x * x;
    let rest = if square < 1e4 { x.mul_add(x, -square) } else { 0.0 };
    std::f64::consts::FRAC_2_SQRT_PI * (-square).exp() * (1.0 - rest)
}

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
    /// Arithmetic mean, floats only; NaN of no elements.
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
    /// Whether an element is not 0, as `Bool`; NaN is not. False of no elements.
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

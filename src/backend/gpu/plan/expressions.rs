//! The functions of the op table as WGSL expressions of `a`, `b` and `c`. A row without one does not compile.

use crate::ops::{BinaryOp, CompareOp, NumberTest, TernaryOp, UnaryOp};

use super::super::shader::{OPERANDS, Store};

pub(super) fn is_float(store: Store) -> bool {
    matches!(store, Store::F32 | Store::F16)
}

/// Returns the expression that reads operand `k` from the words, for one that is a number.
pub(super) fn number(store: Store, k: usize) -> String {
    let word = format!("p.number_{}", OPERANDS[k]);
    match store {
        Store::F32 | Store::F16 => format!("bitcast<f32>({word})"),
        Store::I64 => "i64((u64(p.number_b) << 32u) | u64(p.number_a))".to_owned(),
        Store::I32 => format!("bitcast<i32>({word})"),
        Store::U32 | Store::U8 | Store::Bool => word,
    }
}

/// Returns a function of one float.
pub(super) fn unary(op: UnaryOp) -> &'static str {
    match op {
        UnaryOp::Neg => "-a",
        UnaryOp::Abs => "abs(a)",
        UnaryOp::Sign => "select(select(a, -1.0, a < 0.0), 1.0, a > 0.0)",
        UnaryOp::Square => "a * a",
        UnaryOp::Sqrt => "sqrt(a)",
        UnaryOp::Recip => "1.0 / a",
        UnaryOp::Rsqrt => "1.0 / sqrt(a)",
        UnaryOp::Cbrt => "cube_root(a)",
        UnaryOp::Exp => "exponential(a)",
        UnaryOp::Exp2 => "exponential_2(a)",
        UnaryOp::Exp10 => "exponential_10(a)",
        UnaryOp::Expm1 => "exponential_minus_1(a)",
        UnaryOp::Log => "logarithm(a)",
        UnaryOp::Log2 => "logarithm_2(a)",
        UnaryOp::Log10 => "logarithm_10(a)",
        UnaryOp::Log1p => "logarithm_of_1_plus(a)",
        UnaryOp::Sin => "sine(a)",
        UnaryOp::Cos => "cosine(a)",
        UnaryOp::Tan => "tangent(a)",
        UnaryOp::Asin => "inverse_sine(a)",
        UnaryOp::Acos => "inverse_cosine(a)",
        UnaryOp::Atan => "inverse_tangent(a)",
        UnaryOp::Sinh => "hyperbolic_sine(a)",
        UnaryOp::Cosh => "hyperbolic_cosine(a)",
        UnaryOp::Tanh => "hyperbolic_tangent(a)",
        UnaryOp::Asinh => "inverse_hyperbolic_sine(a)",
        UnaryOp::Acosh => "inverse_hyperbolic_cosine(a)",
        UnaryOp::Atanh => "inverse_hyperbolic_tangent(a)",
        UnaryOp::Erf => "error_function(a)",
        UnaryOp::Erfc => "error_complement(a)",
        UnaryOp::Floor => "floor(a)",
        UnaryOp::Ceil => "ceil(a)",
        UnaryOp::Round => "round(a)",
        UnaryOp::Trunc => "trunc(a)",
        UnaryOp::Relu => "select(a, 0.0, a < 0.0)",
        UnaryOp::Sigmoid => "logistic(a)",
        UnaryOp::Silu => "gate(a, a)",
        UnaryOp::Gelu => "gelu(a)",
        UnaryOp::GeluTanh => "gate_of_sum(a, gelu_argument(a))",
        UnaryOp::Softplus => "soft_plus(a)",
        UnaryOp::LogSigmoid => "-soft_plus(-a)",
        UnaryOp::Mish => "mish(a)",
        UnaryOp::Selu => {
            "1.0507009873554805 * select(a, 1.6732632423543772 * exponential_minus_1(a), a < 0.0)"
        }
        UnaryOp::Relu6 => "select(select(a, 6.0, a > 6.0), 0.0, a < 0.0)",
        UnaryOp::Hardsigmoid => "select(clamp(a + 3.0, 0.0, 6.0) / 6.0, a, is_nan(a))",
        UnaryOp::Hardswish => "select(select(a * (a + 3.0) / 6.0, a, a >= 3.0), -0.0, a <= -3.0)",
    }
}

/// Returns a function of one integer; `None` if the table does not define it.
pub(super) fn integer_unary(op: UnaryOp, store: Store) -> Option<String> {
    let is_signed = matches!(store, Store::I64 | Store::I32);
    let text = match op {
        UnaryOp::Neg if is_signed => "-a",
        UnaryOp::Neg => "(0u - a)",
        UnaryOp::Abs if is_signed => "select(a, -a, a < T(0))",
        UnaryOp::Sign if is_signed => "select(select(T(0), T(-1), a < T(0)), T(1), a > T(0))",
        UnaryOp::Sign => "min(a, 1u)",
        UnaryOp::Square => "a * a",
        UnaryOp::Relu if is_signed => "max(a, T(0))",
        UnaryOp::Relu6 if is_signed => "min(max(a, T(0)), T(6))",
        UnaryOp::Relu6 => "min(a, 6u)",
        UnaryOp::Abs | UnaryOp::Relu => "a",
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc => "a",
        _ => return None,
    };
    Some(text.replace("T(", &format!("{}(", store.working())))
}

/// Returns a function of two floats.
pub(super) fn binary(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "a + b",
        BinaryOp::Sub => "a - b",
        BinaryOp::Mul => "a * b",
        BinaryOp::Div => "a / b",
        BinaryOp::Maximum => {
            "select(select(b, a, a > b || (a == b && !is_negative(a))), nan(), is_nan(a) || is_nan(b))"
        }
        BinaryOp::Minimum => {
            "select(select(b, a, a < b || (a == b && is_negative(a))), nan(), is_nan(a) || is_nan(b))"
        }
        BinaryOp::Atan2 => "angle_of(a, b)",
        BinaryOp::Pow => "power(a, b)",
        BinaryOp::Hypot => "length_of(a, b)",
        BinaryOp::Rem => "remainder(a, b)",
        BinaryOp::Remainder => "floored_remainder(a, b)",
        BinaryOp::FloorDivide => "floored_quotient(a, b)",
        BinaryOp::XLogY => "select(a * logarithm(b), 0.0, a == 0.0 && !is_nan(b))",
        BinaryOp::LeakyRelu => "select(a * b, a, a >= 0.0)",
        BinaryOp::Elu => "select(b * exponential_minus_1(a), a, a >= 0.0)",
        BinaryOp::ErfGrad => "a * error_slope(b)",
        BinaryOp::TanhGrad => "a * (1.0 - b * b)",
        BinaryOp::SigmoidGrad => "a * b * (1.0 - b)",
        BinaryOp::ReluGrad => "select(select(0.0, a, b > 0.0), b, is_nan(b))",
        BinaryOp::SiluGrad => "a * gate_slope(b, b, 1.0)",
        BinaryOp::GeluTanhGrad => "a * gate_slope(b, gelu_argument(b).x, gelu_argument_slope(b))",
        BinaryOp::GeluGrad => "a * gelu_slope(b)",
        BinaryOp::SoftplusGrad => "a * logistic(b)",
        BinaryOp::LogSigmoidGrad => "a * logistic(-b)",
        BinaryOp::SeluGrad => {
            "a * (1.0507009873554805 * select(1.6732632423543772 * exponential(b), 1.0, b > 0.0))"
        }
        BinaryOp::MishGrad => "a * mish_slope(b)",
        BinaryOp::Relu6Grad => "select(select(0.0, a, b > 0.0 && b < 6.0), b, is_nan(b))",
        BinaryOp::HardsigmoidGrad => {
            "select(select(0.0, a / 6.0, b > -3.0 && b < 3.0), b, is_nan(b))"
        }
        BinaryOp::HardswishGrad => {
            "select(select(a * ((2.0 * b + 3.0) / 6.0), a, b >= 3.0), 0.0, b <= -3.0)"
        }
    }
}

/// Returns a function of two integers; `None` if the table does not define it. A division without a quotient is a
/// fault.
pub(super) fn integer_binary(op: BinaryOp) -> Option<&'static str> {
    Some(match op {
        BinaryOp::Add => "a + b",
        BinaryOp::Sub => "a - b",
        BinaryOp::Mul => "a * b",
        BinaryOp::Maximum => "max(a, b)",
        BinaryOp::Minimum => "min(a, b)",
        BinaryOp::Div => "a / divisor(a, b, i)",
        BinaryOp::Rem => "a % divisor(a, b, i)",
        BinaryOp::Remainder => "rest_of_floored(a, divisor(a, b, i))",
        BinaryOp::FloorDivide => "floored(a, divisor(a, b, i))",
        _ => return None,
    })
}

/// Returns a function of three floats.
pub(super) fn ternary(op: TernaryOp) -> &'static str {
    match op {
        TernaryOp::MulAdd => "fma(a, b, c)",
        TernaryOp::Clamp => "clamped(a, b, c)",
        TernaryOp::Lerp => "select(b - (1.0 - c) * (b - a), a + c * (b - a), c < 0.5)",
        TernaryOp::Huber => "clamped(a - b, -c, c) * (a - b - 0.5 * clamped(a - b, -c, c))",
        TernaryOp::LeakyReluGrad => "select(select(a * c, a, b > 0.0), b, is_nan(b))",
        TernaryOp::EluGrad => "select(a * (c * exponential(b)), a, b > 0.0)",
    }
}

/// Returns WGSL functions: `divisor` reports a division without a quotient and gives 1 instead; `floored` rounds a
/// quotient down, and `rest_of_floored` is its remainder.
pub(super) fn divisor(store: Store) -> String {
    let t = store.working();
    let overflows = match store {
        Store::I64 | Store::I32 => format!(" || (b == {t}(-1) && a != {t}(0) && a == -a)"),
        _ => String::new(),
    };
    format!(
        "fn divisor(a: {t}, b: {t}, i: u32) -> {t} {{\n    \
         if b == {t}(0){overflows} {{\n        fault(i);\n        return {t}(1);\n    }}\n    return b;\n}}\n\
         fn floored(a: {t}, b: {t}) -> {t} {{\n    let q = a / b;\n    \
         return select(q, q - {t}(1), a % b != {t}(0) && (a < {t}(0)) != (b < {t}(0)));\n}}\n\
         fn rest_of_floored(a: {t}, b: {t}) -> {t} {{\n    let r = a % b;\n    \
         return select(r, r + b, r != {t}(0) && (r < {t}(0)) != (b < {t}(0)));\n}}"
    )
}

pub(super) fn comparison(op: CompareOp, is_float: bool) -> String {
    let symbol = match op {
        CompareOp::Eq => "==",
        CompareOp::Ne => "!=",
        CompareOp::Lt => "<",
        CompareOp::Le => "<=",
        CompareOp::Gt => ">",
        CompareOp::Ge => ">=",
    };
    match (is_float, op) {
        (false, _) => format!("a {symbol} b"),
        (true, CompareOp::Ne) => "(a != b || is_nan(a) || is_nan(b))".to_owned(),
        (true, _) => format!("(a {symbol} b && !is_nan(a) && !is_nan(b))"),
    }
}

pub(super) fn test(op: NumberTest, store: Store) -> &'static str {
    match (op, is_float(store)) {
        (NumberTest::IsNan, true) => "u32(is_nan(a))",
        (NumberTest::IsInf, true) => "u32(is_infinite(a))",
        (NumberTest::IsFinite, true) => "u32(!is_nan(a) && !is_infinite(a))",
        (NumberTest::IsNan | NumberTest::IsInf, false) => "0u",
        (NumberTest::IsFinite, false) => "1u",
    }
}

/// Returns the expression that converts `a` like Rust's `as`.
pub(super) fn conversion(from: Store, to: Store) -> String {
    use Store::{Bool, F16, F32, I32, I64, U8, U32};
    match (from, to) {
        (F32 | F16, F32 | F16) => "a".to_owned(),
        (_, F32 | F16) => "f32(a)".to_owned(),
        (F32 | F16, Bool) => "u32(a != 0.0 || is_nan(a))".to_owned(),
        (x, Bool) => format!("u32(a != {}(0))", x.working()),
        (F32 | F16, I64) => "i64_of(a)".to_owned(),
        // Clamp to the largest f32 below the limit. Values above it saturate.
        (F32 | F16, I32) => {
            "select(select(i32(clamp(a, -2147483648.0, 2147483520.0)), 2147483647, a >= 2147483648.0), 0, is_nan(a))"
                .to_owned()
        }
        (F32 | F16, U32) => {
            "select(select(u32(clamp(a, 0.0, 4294967040.0)), 4294967295u, a >= 4294967296.0), 0u, is_nan(a))"
                .to_owned()
        }
        (F32 | F16, U8) => "select(u32(clamp(a, 0.0, 255.0)), 0u, is_nan(a))".to_owned(),
        (_, U8) => "(u32(a) & 255u)".to_owned(),
        // Converting `u32` to `i64` directly would extend the sign.
        (U32 | U8 | Bool, I64) => "i64(u64(a))".to_owned(),
        (_, I64) => "i64(a)".to_owned(),
        (_, I32) => "i32(a)".to_owned(),
        (_, U32) => "u32(a)".to_owned(),
    }
}

//! The text of each reduction.

use crate::ops::ReduceOp;

use super::super::super::shader::Store;
use super::Pass;

/// The reductions that have kernels. A parameter, such as `ddof`, is a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "those of `ReduceOp`")]
pub enum Kind {
    Sum,
    Prod,
    Mean,
    Variance,
    Std,
    Nonzeros,
    Magnitudes,
    Euclid,
    LargestMagnitude,
    SmallestMagnitude,
    Norm,
    LogSumExp,
    Max,
    Min,
    ArgMax,
    ArgMin,
    Any,
    All,
}

/// Returns the kind of an op, and its parameter as a word.
pub fn kind_of(op: ReduceOp) -> (Kind, u32) {
    match op {
        ReduceOp::Sum => (Kind::Sum, 0),
        ReduceOp::Prod => (Kind::Prod, 0),
        ReduceOp::Mean => (Kind::Mean, 0),
        ReduceOp::Variance { ddof } => (Kind::Variance, u32::try_from(ddof).unwrap_or(u32::MAX)),
        ReduceOp::Std { ddof } => (Kind::Std, u32::try_from(ddof).unwrap_or(u32::MAX)),
        ReduceOp::Norm { p } => match p {
            0.0 => (Kind::Nonzeros, 0),
            1.0 => (Kind::Magnitudes, 0),
            2.0 => (Kind::Euclid, 0),
            f64::INFINITY => (Kind::LargestMagnitude, 0),
            f64::NEG_INFINITY => (Kind::SmallestMagnitude, 0),
            p => (Kind::Norm, (p as f32).to_bits()),
        },
        ReduceOp::LogSumExp => (Kind::LogSumExp, 0),
        ReduceOp::Max => (Kind::Max, 0),
        ReduceOp::Min => (Kind::Min, 0),
        ReduceOp::ArgMax => (Kind::ArgMax, 0),
        ReduceOp::ArgMin => (Kind::ArgMin, 0),
        ReduceOp::Any => (Kind::Any, 0),
        ReduceOp::All => (Kind::All, 0),
    }
}

/// A reduction's text: the type of its accumulator, and four expressions.
pub struct Text {
    /// Type of the accumulator.
    pub kind: &'static str,
    /// The accumulator of no elements.
    pub start: String,
    /// The accumulator `s` with element `x`, the j-th, added.
    pub add: String,
    /// The accumulator of `s` and `t`.
    pub join: String,
    /// The result of the accumulator `s`.
    pub finish: String,
    /// Start, add and join of the first pass, for ops that have one.
    pub first: Option<[String; 3]>,
}

impl Text {
    /// Type of the accumulator of the first pass.
    pub fn first_kind(&self) -> Option<&'static str> {
        let [start, ..] = self.first.as_ref()?;
        Some(if start.starts_with("vec2") { "vec2<f32>" } else { "f32" })
    }

    /// Type, start, add and join of a pass.
    pub fn pass(&self, pass: Pass) -> Option<[&str; 4]> {
        match pass {
            Pass::First => {
                let [start, add, join] = self.first.as_ref()?;
                Some([self.first_kind()?, start, add, join])
            }
            Pass::Last => Some([self.kind, &self.start, &self.add, &self.join]),
        }
    }

    /// Returns the text of a kind, for elements of a store.
    pub fn of(kind: Kind, store: Store) -> Text {
        let is_float = store.is_float();
        match kind {
            Kind::Sum if is_float => pair("vec2(x, 0.0)", "s.x"),
            Kind::Sum => single("i64", "i64(0)", [&format!("s + {}", as_i64(store)), "s + t"]),
            Kind::Prod if is_float => Text {
                finish: "scaled_far(s.x, i32(clamp(s.z, -400.0, 400.0)))".to_owned(),
                ..single(
                    "vec3<f32>",
                    "vec3(1.0, 0.0, 0.0)",
                    ["scaled_product(s, vec3(x, 0.0, 0.0))", "scaled_product(s, t)"],
                )
            },
            Kind::Prod => single("i64", "i64(1)", [&format!("s * {}", as_i64(store)), "s * t"]),
            Kind::Mean => pair("vec2(x, 0.0)", "quotient_of(s, f32(p.elements)).x"),
            Kind::Variance => variance(""),
            Kind::Std => variance("sqrt"),
            Kind::Nonzeros => pair("vec2(select(0.0, 1.0, x != 0.0 || is_nan(x)), 0.0)", "s.x"),
            Kind::Magnitudes => pair("vec2(abs(x), 0.0)", "s.x"),
            Kind::Euclid => Text {
                first: first("-infinity()", "larger", "abs(x)"),
                ..pair(
                    "square_of(vec2(x / scale_of(first_pass), 0.0))",
                    "edge_or(first_pass, scale_of(first_pass) * sqrt(s.x))",
                )
            },
            Kind::Norm => Text {
                first: first(
                    "select(0.0, infinity(), bitcast<f32>(p.parameter) < 0.0)",
                    "further",
                    "abs(x)",
                ),
                ..pair(
                    "vec2(power(abs(x) / scale_of(first_pass), bitcast<f32>(p.parameter)), 0.0)",
                    "edge_or(first_pass, select(scale_of(first_pass) * power(s.x, 1.0 / bitcast<f32>(p.parameter)), infinity(), p.elements == 0u && bitcast<f32>(p.parameter) < 0.0))",
                )
            },
            Kind::LargestMagnitude => extremum(store, "0.0", "larger", "abs(x)"),
            Kind::SmallestMagnitude => extremum(store, "infinity()", "smaller", "abs(x)"),
            Kind::LogSumExp => Text {
                first: first("-infinity()", "larger", "x"),
                ..pair(
                    "vec2(exponential(x - finite_or_0(first_pass)), 0.0)",
                    "sum_of(logarithm_pair(s), vec2(finite_or_0(first_pass), 0.0)).x",
                )
            },
            Kind::Max if is_float => extremum(store, "-infinity()", "larger", "x"),
            Kind::Min if is_float => extremum(store, "infinity()", "smaller", "x"),
            Kind::Max => extremum(store, smallest(store), "max", "x"),
            Kind::Min => extremum(store, largest(store), "min", "x"),
            Kind::ArgMax => index_of_extremum(store, ">"),
            Kind::ArgMin => index_of_extremum(store, "<"),
            Kind::Any => logical(store, "0u", "|"),
            Kind::All => logical(store, "1u", "&"),
        }
    }
}

/// A reduction in one pass. Its result is the accumulator.
fn single(kind: &'static str, start: &str, [add, join]: [&str; 2]) -> Text {
    let [start, add, join, finish] = [start, add, join, "s"].map(str::to_owned);
    Text { kind, start, add, join, finish, first: None }
}

/// A sum in two floats.
fn pair(add: &str, finish: &str) -> Text {
    let sum = single("vec2<f32>", "vec2(0.0)", [&format!("sum_of(s, {add})"), "sum_of(s, t)"]);
    Text { finish: finish.to_owned(), ..sum }
}

/// The extremum of `x`, an expression of the element.
fn extremum(store: Store, start: &str, function: &str, x: &str) -> Text {
    let [add, join] = [x, "t"].map(|x| format!("{function}(s, {x})"));
    single(store.working(), start, [&add, &join])
}

/// A first pass that finds the extremum of `x`.
fn first(start: &str, function: &str, x: &str) -> Option<[String; 3]> {
    Some([start.to_owned(), format!("{function}(s, {x})"), format!("{function}(s, t)")])
}

/// The variance, or with `root` the deviation. The first pass computes the sum.
fn variance(root: &str) -> Text {
    let sum = pair("vec2(x, 0.0)", "s.x");
    let square = "square_of(sum_of(vec2(x, 0.0), -mean_of(first_pass)))";
    Text {
        first: Some([sum.start, sum.add, sum.join]),
        ..pair(square, &format!("{root}(quotient_of(s, degrees()).x)"))
    }
}

/// The index of the extremum that compares by `sign`: the first of equal elements, or of NaN if there is one.
fn index_of_extremum(store: Store, sign: &str) -> Text {
    let is_better = |x: &str, index: &str| {
        let text = match store.is_float() {
            true => format!(
                "(is_nan({x}) && !is_nan(s.value)) || ({x} {sign} s.value && !is_nan({x}) && !is_nan(s.value)) \
                 || (({x} == s.value || (is_nan({x}) && is_nan(s.value))) && {index} < s.index)"
            ),
            false => format!("{x} {sign} s.value || ({x} == s.value && {index} < s.index)"),
        };
        format!("s.index == 0xffffffffu || {text}")
    };
    let add = format!("better(s, Best(x, j), {})", is_better("x", "j"));
    let join = is_better("t.value", "t.index");
    let join = format!("better(s, t, t.index != 0xffffffffu && ({join}))");
    let start = format!("Best({}(0), 0xffffffffu)", store.working());
    Text { finish: "i64(u64(s.index))".to_owned(), ..single("Best", &start, [&add, &join]) }
}

/// `any` or `all`.
fn logical(store: Store, start: &str, sign: &str) -> Text {
    let is_true = match store.is_float() {
        true => "u32(x != 0.0 || is_nan(x))".to_owned(),
        false => format!("u32(x != {}(0))", store.working()),
    };
    single("u32", start, [&format!("s {sign} {is_true}"), &format!("s {sign} t")])
}

/// The element as `I64`. Converting `u32` directly would extend the sign.
fn as_i64(store: Store) -> &'static str {
    if store.working() == "u32" { "i64(u64(x))" } else { "i64(x)" }
}

/// The smallest integer of a store.
fn smallest(store: Store) -> &'static str {
    match store {
        Store::I64 => "-9223372036854775807li - 1li",
        Store::I32 => "i32(-2147483647) - 1",
        _ => "0u",
    }
}

/// The largest integer of a store.
fn largest(store: Store) -> &'static str {
    match store {
        Store::I64 => "9223372036854775807li",
        Store::I32 => "2147483647",
        _ => "0xffffffffu",
    }
}

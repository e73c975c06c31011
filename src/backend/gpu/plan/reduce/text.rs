//! What each reduction does with its elements, as text.

use crate::ops::ReduceOp;

use super::super::super::shader::Store;
use super::Pass;

/// The reductions that have kernels. Variance and the like take their parameters from the words.
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

/// The kernel of an op, and its parameter as a word.
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

/// The text of a reduction: a type, and the four functions.
pub struct Text {
    /// Type of the accumulator.
    pub kind: &'static str,
    pub start: String,
    /// The accumulator `s` with element `x`, the j-th.
    pub add: String,
    /// Of accumulators `s` and `t`.
    pub join: String,
    /// The result of `s`.
    pub finish: String,
    /// The first pass, if there is one: start, add, join.
    pub first: Option<[String; 3]>,
}

impl Text {
    /// Type of the accumulator of the first pass.
    pub fn first_kind(&self) -> Option<&'static str> {
        let [start, ..] = self.first.as_ref()?;
        Some(if start.starts_with("vec2") { "vec2<f32>" } else { "f32" })
    }

    /// Type, start, addition and joining of a pass.
    pub fn pass(&self, pass: Pass) -> Option<[&str; 4]> {
        match pass {
            Pass::First => {
                let [start, add, join] = self.first.as_ref()?;
                Some([self.first_kind()?, start, add, join])
            }
            Pass::Last => Some([self.kind, &self.start, &self.add, &self.join]),
        }
    }

    /// The text of a kind, for elements of a store.
    pub fn of(kind: Kind, store: Store) -> Text {
        let (t, is_float) = (store.working(), store.is_float());
        // Not from `u32` at once: that extends the sign.
        let wide = if t == "u32" { "i64(u64(x))" } else { "i64(x)" };
        let pair = |add: &str, finish: &str| Text {
            kind: "vec2<f32>",
            start: "vec2(0.0)".to_owned(),
            add: format!("sum_of(s, {add})"),
            join: "sum_of(s, t)".to_owned(),
            finish: finish.to_owned(),
            first: None,
        };
        let extreme = |start: &str, function: &str| Text {
            kind: store.working(),
            start: start.to_owned(),
            add: format!("{function}(s, x)"),
            join: format!("{function}(s, t)"),
            finish: "s".to_owned(),
            first: None,
        };
        let largest =
            ["-infinity()".to_owned(), "larger(s, x)".to_owned(), "larger(s, t)".to_owned()];
        match kind {
            Kind::Sum if is_float => pair("vec2(x, 0.0)", "s.x"),
            Kind::Sum => Text {
                kind: "i64",
                start: "i64(0)".to_owned(),
                add: format!("s + {wide}"),
                join: "s + t".to_owned(),
                finish: "s".to_owned(),
                first: None,
            },
            Kind::Prod if is_float => Text {
                kind: "vec3<f32>",
                start: "vec3(1.0, 0.0, 0.0)".to_owned(),
                add: "scaled_product(s, vec3(x, 0.0, 0.0))".to_owned(),
                join: "scaled_product(s, t)".to_owned(),
                finish: "scaled_far(s.x, i32(clamp(s.z, -400.0, 400.0)))".to_owned(),
                first: None,
            },
            Kind::Prod => Text {
                kind: "i64",
                start: "i64(1)".to_owned(),
                add: format!("s * {wide}"),
                join: "s * t".to_owned(),
                finish: "s".to_owned(),
                first: None,
            },
            Kind::Mean => pair("vec2(x, 0.0)", "quotient_of(s, f32(p.words[4])).x"),
            Kind::Variance | Kind::Std => {
                let root = if kind == Kind::Std { "sqrt" } else { "" };
                let finish = format!("{root}(quotient_of(s, degrees()).x)");
                let square = "square_of(sum_of(vec2(x, 0.0), -mean_of(first_pass)))";
                Text {
                    first: Some([
                        "vec2(0.0)".to_owned(),
                        "sum_of(s, vec2(x, 0.0))".to_owned(),
                        "sum_of(s, t)".to_owned(),
                    ]),
                    ..pair(square, &finish)
                }
            }
            Kind::Nonzeros => pair("vec2(select(0.0, 1.0, x != 0.0 || is_nan(x)), 0.0)", "s.x"),
            Kind::Magnitudes => pair("vec2(abs(x), 0.0)", "s.x"),
            Kind::Euclid => Text {
                first: Some(largest.map(|text| text.replace("(s, x)", "(s, abs(x))"))),
                ..pair(
                    "square_of(vec2(x / scale_of(first_pass), 0.0))",
                    "edge_or(first_pass, scale_of(first_pass) * sqrt(s.x))",
                )
            },
            Kind::Norm => Text {
                first: Some([
                    "select(0.0, infinity(), bitcast<f32>(p.words[6]) < 0.0)".to_owned(),
                    "further(s, abs(x))".to_owned(),
                    "further(s, t)".to_owned(),
                ]),
                ..pair(
                    "vec2(power(abs(x) / scale_of(first_pass), bitcast<f32>(p.words[6])), 0.0)",
                    "edge_or(first_pass, select(scale_of(first_pass) * power(s.x, 1.0 / bitcast<f32>(p.words[6])), infinity(), p.words[4] == 0u && bitcast<f32>(p.words[6]) < 0.0))",
                )
            },
            Kind::LargestMagnitude => {
                Text { add: "larger(s, abs(x))".to_owned(), ..extreme("0.0", "larger") }
            }
            Kind::SmallestMagnitude => {
                Text { add: "smaller(s, abs(x))".to_owned(), ..extreme("infinity()", "smaller") }
            }
            Kind::LogSumExp => Text {
                first: Some(largest),
                ..pair(
                    "vec2(exponential(x - finite_or_0(first_pass)), 0.0)",
                    "sum_of(logarithm_pair(s), vec2(finite_or_0(first_pass), 0.0)).x",
                )
            },
            Kind::Max if is_float => extreme("-infinity()", "larger"),
            Kind::Min if is_float => extreme("infinity()", "smaller"),
            Kind::Max => extreme(&smallest(store), "max"),
            Kind::Min => extreme(&largest_of(store), "min"),
            Kind::ArgMax | Kind::ArgMin => {
                let is_max = kind == Kind::ArgMax;
                let sign = if is_max { ">" } else { "<" };
                let beats = match is_float {
                    true => format!(
                        "(is_nan(VALUE) && !is_nan(s.value)) || (VALUE {sign} s.value && !is_nan(VALUE) && !is_nan(s.value)) \
                         || ((VALUE == s.value || (is_nan(VALUE) && is_nan(s.value))) && PLACE < s.place)"
                    ),
                    false => {
                        format!("VALUE {sign} s.value || (VALUE == s.value && PLACE < s.place)")
                    }
                };
                let beats = |value: &str, place: &str| {
                    let text = beats.replace("VALUE", value).replace("PLACE", place);
                    format!("s.place == 0xffffffffu || {text}")
                };
                Text {
                    kind: "Best",
                    start: format!("Best({t}(0), 0xffffffffu)"),
                    add: format!("better(s, Best(x, j), {})", beats("x", "j")),
                    join: format!(
                        "better(s, t, t.place != 0xffffffffu && ({}))",
                        beats("t.value", "t.place")
                    ),
                    finish: "i64(u64(s.place))".to_owned(),
                    first: None,
                }
            }
            Kind::Any | Kind::All => {
                let is_true = match is_float {
                    true => "u32(x != 0.0 || is_nan(x))".to_owned(),
                    false => format!("u32(x != {t}(0))"),
                };
                let (start, sign) = if kind == Kind::Any { ("0u", "|") } else { ("1u", "&") };
                Text {
                    kind: "u32",
                    start: start.to_owned(),
                    add: format!("s {sign} {is_true}"),
                    join: format!("s {sign} t"),
                    finish: "s".to_owned(),
                    first: None,
                }
            }
        }
    }
}

/// The smallest and the largest value of integers, as expressions.
fn smallest(store: Store) -> String {
    match store {
        Store::I64 => "-9223372036854775807li - 1li".to_owned(),
        Store::I32 => "i32(-2147483647) - 1".to_owned(),
        _ => "0u".to_owned(),
    }
}

fn largest_of(store: Store) -> String {
    match store {
        Store::I64 => "9223372036854775807li".to_owned(),
        Store::I32 => "2147483647".to_owned(),
        _ => "0xffffffffu".to_owned(),
    }
}

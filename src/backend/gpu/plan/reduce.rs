//! Reductions over any axes.
//!
//! ```text
//! words   0  results              4  elements of a result     6  ddof, or the bits of p
//!         1  row of the grid      5  offset                   7  reserved
//!         2  kept axes            8..  extent and step of each kept axis, the innermost first, then of each reduced
//!         3  reduced axes
//! ```
//!
//! Floats are summed in two floats each, so that a sum is rounded about once. A workgroup computes a result where there
//! are many elements for each, else a thread does.

use crate::error::Result;
use crate::layout::{Layout, merge_some_axes};
use crate::ops::ReduceOp;

use super::super::shader::{GROUP, Module, Source, Store, WORDS};
use super::{MAX_GROUPS, Plan, Words, grid_of, step, word};

/// Elements of a result from which on a workgroup computes it.
const GROUPED_FROM: usize = 128;

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

/// A reduction of elements of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reduction {
    /// The op.
    pub kind: Kind,
    /// Store of the elements.
    pub store: Store,
    /// True if a workgroup computes a result.
    pub is_grouped: bool,
}

/// The kernel of an op, and its parameter as a word.
fn kind_of(op: ReduceOp) -> (Kind, u32) {
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
struct Text {
    /// Type of the accumulator.
    kind: &'static str,
    start: String,
    /// The accumulator `s` with element `x`, the j-th.
    add: String,
    /// Of accumulators `s` and `t`.
    join: String,
    /// The result of `s`.
    finish: String,
    /// The first pass, if there is one: start, add, join.
    first: Option<[String; 3]>,
}

impl Reduction {
    /// Store of the results.
    pub fn result(self) -> Store {
        match self.kind {
            Kind::Sum | Kind::Prod if !self.is_float() => Store::I64,
            Kind::ArgMax | Kind::ArgMin => Store::I64,
            Kind::Any | Kind::All => Store::Bool,
            _ => self.store,
        }
    }

    fn is_float(self) -> bool {
        matches!(self.store, Store::F32 | Store::F16)
    }

    fn text(self) -> Text {
        let t = self.store.working();
        let pair = |add: &str, finish: &str| Text {
            kind: "vec2<f32>",
            start: "vec2(0.0)".to_owned(),
            add: format!("sum_of(s, {add})"),
            join: "sum_of(s, t)".to_owned(),
            finish: finish.to_owned(),
            first: None,
        };
        let extreme = |start: &str, function: &str| Text {
            kind: self.store.working(),
            start: start.to_owned(),
            add: format!("{function}(s, x)"),
            join: format!("{function}(s, t)"),
            finish: "s".to_owned(),
            first: None,
        };
        let largest =
            ["-infinity()".to_owned(), "larger(s, x)".to_owned(), "larger(s, t)".to_owned()];
        match self.kind {
            Kind::Sum if self.is_float() => pair("vec2(x, 0.0)", "s.x"),
            Kind::Sum => Text {
                kind: "i64",
                start: "i64(0)".to_owned(),
                add: "s + i64(x)".to_owned(),
                join: "s + t".to_owned(),
                finish: "s".to_owned(),
                first: None,
            },
            Kind::Prod if self.is_float() => Text {
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
                add: "s * i64(x)".to_owned(),
                join: "s * t".to_owned(),
                finish: "s".to_owned(),
                first: None,
            },
            Kind::Mean => pair("vec2(x, 0.0)", "quotient_of(s, f32(p.words[4])).x"),
            Kind::Variance | Kind::Std => {
                let root = if self.kind == Kind::Std { "sqrt" } else { "" };
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
            Kind::Max if self.is_float() => extreme("-infinity()", "larger"),
            Kind::Min if self.is_float() => extreme("infinity()", "smaller"),
            Kind::Max => extreme(&smallest(self.store), "max"),
            Kind::Min => extreme(&largest_of(self.store), "min"),
            Kind::ArgMax | Kind::ArgMin => {
                let is_max = self.kind == Kind::ArgMax;
                let sign = if is_max { ">" } else { "<" };
                let beats = match self.is_float() {
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
                let is_true = match self.is_float() {
                    true => "u32(x != 0.0 || is_nan(x))".to_owned(),
                    false => format!("u32(x != {t}(0))"),
                };
                let (start, sign) = if self.kind == Kind::Any { ("0u", "|") } else { ("1u", "&") };
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

    /// Adds the functions of a sum or product that a scan uses: `start`, `add`, `join` and `finish` of a `Total`.
    pub fn add_steps(self, source: &mut Source) {
        let Text { kind, start, add, join, finish, .. } = self.text();
        let (x, y) = (self.store.working(), self.result().working());
        source.math();
        source.add(include_str!("../shaders/reduce_steps.wgsl"));
        source.add(&format!("alias Total = {kind};"));
        source.add(&format!("fn start() -> Total {{ return {start}; }}"));
        source.add(&format!("fn add(s: Total, x: {x}) -> Total {{ return {add}; }}"));
        source.add(&format!("fn join(s: Total, t: Total) -> Total {{ return {join}; }}"));
        source.add(&format!("fn finish(s: Total) -> {y} {{ return {finish}; }}"));
    }

    /// The module.
    pub fn module(self) -> Module {
        let text = self.text();
        let result = self.result();
        let mut source = Source::new(&[self.store]);
        source.result("y", result);
        source.math();
        source.add(include_str!("../shaders/logarithm_pair.wgsl"));
        source.add(include_str!("../shaders/reduce.wgsl"));
        source.add(include_str!("../shaders/reduce_steps.wgsl"));
        source.add("struct Best { value: A, place: u32 }");
        source.add("fn better(s: Best, t: Best, is_better: bool) -> Best {");
        source.add("    if is_better { return t; }\n    return s;\n}");
        let passes: Vec<(&str, &str, [String; 3])> = match &text.first {
            Some(first) => vec![
                ("first", if text.first_is_pair() { "vec2<f32>" } else { "f32" }, first.clone()),
                ("last", text.kind, [text.start.clone(), text.add.clone(), text.join.clone()]),
            ],
            None => {
                vec![("last", text.kind, [text.start.clone(), text.add.clone(), text.join.clone()])]
            }
        };
        source.add(&format!("const THREADS: u32 = {}u;", if self.is_grouped { GROUP } else { 1 }));
        let mut calls = String::new();
        for (name, kind, [start, add, join]) in &passes {
            let takes = if *name == "last" && passes.len() > 1 {
                format!(", first_pass: {}", passes[0].1)
            } else {
                String::new()
            };
            let gives = if takes.is_empty() { "" } else { ", first_pass" };
            source.add(&format!(
                "fn {name}_part(at: u32, thread: u32{takes}) -> {kind} {{\n    \
                 var s = {start};\n    \
                 for (var j = thread; j < p.words[4]; j += THREADS) {{\n        \
                 let x = element(at, j);\n        s = {add};\n    }}\n    return s;\n}}"
            ));
            if self.is_grouped {
                source.add(&format!("var<workgroup> {name}_parts: array<{kind}, {GROUP}>;"));
                source.add(&format!(
                    "fn {name}_whole(part: {kind}, thread: u32) -> {kind} {{\n    \
                     {name}_parts[thread] = part;\n    workgroupBarrier();\n    \
                     for (var half = {}u; half > 0u; half /= 2u) {{\n        \
                     if thread < half {{\n            \
                     let s = {name}_parts[thread];\n            \
                     let t = {name}_parts[thread + half];\n            \
                     {name}_parts[thread] = {join};\n        }}\n        \
                     workgroupBarrier();\n    }}\n    \
                     return {name}_parts[0];\n}}",
                    GROUP / 2
                ));
            } else {
                source.add(&format!(
                    "fn {name}_whole(part: {kind}, thread: u32) -> {kind} {{ return part; }}"
                ));
            }
            calls.push_str(&format!(
                "    let {name}_pass = {name}_whole({name}_part(at, thread{gives}), thread);\n"
            ));
        }
        let takes = match passes.len() {
            1 => String::new(),
            _ => format!(", first_pass: {}", passes[0].1),
        };
        let gives = if takes.is_empty() { "" } else { ", first_pass" };
        source.add(&format!(
            "fn finish(s: {}{takes}) -> {} {{ return {}; }}",
            text.kind,
            result.working(),
            text.finish
        ));
        source.add(&format!(
            "fn result(i: u32, thread: u32) -> {} {{\n    let at = base(i);\n{calls}    \
             return finish(last_pass{gives});\n}}",
            result.working()
        ));
        match self.is_grouped {
            false => {
                source.add(&format!(
                    "fn each(i: u32) -> {} {{ return result(i, 0u); }}",
                    result.working()
                ));
                source.each_word(result, "each");
            }
            // A group writes a result, or the four of a word.
            true => {
                let n = result.per_thread();
                let names = ["x", "y", "z", "w"];
                let write = match n {
                    1 => "let value = result(i, thread);\n    \
                          if thread == 0u { write_y(i, value); }"
                        .to_owned(),
                    _ => {
                        let mut text = "var value = vec4(0u);\n".to_owned();
                        for (k, name) in names.iter().enumerate() {
                            text.push_str(&format!(
                                "    value.{name} = result(min(4u * i + {k}u, p.words[0] - 1u), thread);\n    \
                                 workgroupBarrier();\n"
                            ));
                        }
                        text + "    if thread == 0u { write_y(i, value); }"
                    }
                };
                source.each_group([0, 1], &format!("{n}u * i"), &write);
            }
        }
        let how = if self.is_grouped { "groups" } else { "threads" };
        let name = format!("{:?}_{}_{how}", self.kind, self.store.name()).to_lowercase();
        source.finish(name)
    }

    /// The dispatch of a reduction of `x` over sorted axes.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) if a position does not fit a word.
    pub fn plan(op: ReduceOp, store: Store, x: &Layout, axes: &[usize]) -> Result<Plan<Reduction>> {
        let (name, shape) = (op.name(), x.shape());
        let kept = (0..x.dims().len()).filter(|axis| !axes.contains(axis));
        let outer = merge_some_axes(&[x], kept);
        let inner = merge_some_axes(&[x], axes.iter().copied());
        let results: usize = outer.dims().iter().product();
        let count: usize = inner.dims().iter().product();
        let (kind, parameter) = kind_of(op);
        let is_grouped = count >= GROUPED_FROM;
        let kernel = Reduction { kind, store, is_grouped };
        word(name, shape, x.extent().map_or(0, |(_, last)| last))?;
        let per_thread = kernel.result().per_thread();
        let (grid, row) = match is_grouped {
            true => {
                let groups = results.div_ceil(per_thread).max(1);
                let across = groups.min(MAX_GROUPS);
                ([across as u32, groups.div_ceil(across) as u32, 1], across as u32)
            }
            false => grid_of(results.div_ceil(per_thread)),
        };
        let mut words = Words::from_slice(&[
            word(name, shape, results)?,
            row,
            outer.dims().len() as u32,
            inner.dims().len() as u32,
            word(name, shape, count)?,
            word(name, shape, x.offset())?,
            parameter,
            0,
        ]);
        for nest in [&outer, &inner] {
            for axis in (0..nest.dims().len()).rev() {
                words.push(word(name, shape, nest.dims()[axis])?);
                words.push(step(name, shape, nest.strides(0)[axis])?);
            }
        }
        words.resize(WORDS, 0);
        Ok(Plan { kernel, words, grid })
    }
}

impl Text {
    fn first_is_pair(&self) -> bool {
        self.first.as_ref().is_some_and(|[start, ..]| start.starts_with("vec2"))
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

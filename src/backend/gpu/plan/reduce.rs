//! Reductions over any axes.
//!
//! A sum is a pair of floats, the value and its rounding error, so that its whole error is about one rounding. A thread
//! reduces few elements, a workgroup many.
//! With still more, workgroups reduce parts of them to accumulators, and a second dispatch joins these. Ops with two
//! passes over the elements do so for each pass.

mod text;

use smallvec::{SmallVec, smallvec};

use crate::error::Result;
use crate::layout::{Layout, merge_some_axes};
use crate::ops::ReduceOp;

use super::super::shader::{GROUP, Module, Source, Store};
use super::words::{GridWords, axes_of, words};
use super::{Plan, check_positions, grid_of, groups_of, word};
pub use text::Kind;
use text::{Text, kind_of};

words! {
    /// `elements` inputs are reduced to one output, `part` of them by one workgroup. `parameter` is `ddof` or the bits of p.
    /// The axes are the `kept` ones, then the `reduced` ones.
    ReduceWords { kept: u32, reduced: u32, elements: u32, from_x: u32, parameter: u32, part: u32, }
}

/// Smallest number of inputs per output for which a workgroup, rather than a thread, computes it.
const GROUPED_FROM: usize = 128;

/// Smallest number of inputs per output for which several workgroups compute it in parts.
const SPLIT_FROM: usize = 1 << 15;

/// Number of inputs of a part.
const PART: usize = 1 << 13;

/// Maximum number of bytes of an accumulator.
pub const ACCUMULATOR: usize = 16;

/// Returns the number of elements of a part: all of them, if they are not split.
pub fn part_of(count: usize) -> usize {
    if count < SPLIT_FROM { count.max(1) } else { PART }
}

/// A pass over the elements. Most ops have only the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Computes the mean or maximum that the last pass needs.
    First,
    /// Computes the result.
    Last,
}

/// The output of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Results, each by a thread.
    Threads,
    /// Results, each by a workgroup.
    Groups,
    /// Accumulators of parts, each by a workgroup.
    Parts(Pass),
    /// The accumulators of all parts combined into one or, after the last pass, the results, each by a workgroup.
    Joined(Pass),
}

/// A reduction, of a buffer that holds its elements as `store` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reduction {
    pub kind: Kind,
    pub store: Store,
    pub stage: Stage,
}

impl Reduction {
    /// Returns the store of the results.
    pub fn result(self) -> Store {
        match self.kind {
            Kind::Sum | Kind::Prod if !self.store.is_float() => Store::I64,
            Kind::ArgMax | Kind::ArgMin => Store::I64,
            Kind::Any | Kind::All => Store::Bool,
            _ => self.store,
        }
    }

    /// Adds the functions that a scan uses: `start`, `add`, `join` and `finish` of a `Total`.
    pub fn add_steps(self, source: &mut Source) {
        let Text { kind, start, add, join, finish, .. } = Text::of(self.kind, self.store);
        let (x, y) = (self.store.working(), self.result().working());
        source.math();
        source.add(shader!("reduce_steps"));
        source.add(&format!("alias Total = {kind};"));
        source.add(&format!("fn start() -> Total {{ return {start}; }}"));
        source.add(&format!("fn add(s: Total, x: {x}) -> Total {{ return {add}; }}"));
        source.add(&format!("fn join(s: Total, t: Total) -> Total {{ return {join}; }}"));
        source.add(&format!("fn finish(s: Total) -> {y} {{ return {finish}; }}"));
    }

    /// Returns the kernel's text.
    pub fn module(self) -> Module {
        let Reduction { kind, store, stage } = self;
        let text = Text::of(kind, store);
        let mut source = self.bindings(&text);
        source.math();
        source.add(shader!("logarithm_pair"));
        source.add(shader!("reduce_steps"));
        source.add(shader!("reduce_finish"));
        source.add("fn part_count() -> u32 { return (p.elements + p.part - 1u) / p.part; }");
        source.add("struct Best { value: A, index: u32 }");
        source.add("fn better(s: Best, t: Best, is_better: bool) -> Best {");
        source.add("    if is_better { return t; }\n    return s;\n}");
        let calls = self.add_passes(&mut source, &text);
        let mut write_accumulator = |pass: &str| {
            let write = format!("{calls}    if thread == 0u {{ y_data[i] = {pass}_pass; }}");
            source.each_group("i", &write);
        };
        let suffix = match stage {
            Stage::Parts(Pass::First) | Stage::Joined(Pass::First) => {
                write_accumulator("first");
                if let Stage::Parts(_) = stage { "first_parts" } else { "first_joined" }
            }
            Stage::Parts(Pass::Last) => {
                write_accumulator("last");
                "parts"
            }
            Stage::Threads | Stage::Groups | Stage::Joined(Pass::Last) => {
                self.add_results(&mut source, &text, &calls);
                match stage {
                    Stage::Threads => "threads",
                    Stage::Groups => "groups",
                    _ => "joined",
                }
            }
        };
        source.finish(format!("{kind:?}_{}_{suffix}", store.name()).to_lowercase())
    }

    /// Begins the text: binds the operands and the results of the stage.
    fn bindings(self, text: &Text) -> Source {
        let accumulator = |pass| {
            let [kind, ..] = text.pass(pass).expect("`plans` uses only passes of the op");
            kind
        };
        let fields = [GridWords::FIELDS, ReduceWords::FIELDS];
        let mut source = match self.stage {
            Stage::Joined(pass) => {
                let mut source = Source::new(&fields, &[]);
                source.bind("parts_data", "read", accumulator(pass));
                source.add(&format!("alias A = {};", self.store.working()));
                source
            }
            _ => {
                let mut source = Source::new(&fields, &[self.store]);
                source.add(shader!("reduce"));
                source
            }
        };
        if let (Stage::Parts(Pass::Last) | Stage::Joined(Pass::Last), Some(kind)) =
            (self.stage, text.first_kind())
        {
            source.bind("firsts_data", "read", kind);
        }
        match self.stage {
            Stage::Parts(pass) | Stage::Joined(pass @ Pass::First) => {
                source.bind("y_data", "read_write", accumulator(pass));
            }
            _ => source.result("y", self.result()),
        }
        source
    }

    /// Adds the functions of the stage's passes. Returns the statements that call them.
    fn add_passes(self, source: &mut Source, text: &Text) -> String {
        let passes: &[Pass] = match self.stage {
            Stage::Threads | Stage::Groups => &[Pass::First, Pass::Last],
            Stage::Parts(Pass::First) | Stage::Joined(Pass::First) => &[Pass::First],
            Stage::Parts(Pass::Last) | Stage::Joined(Pass::Last) => &[Pass::Last],
        };
        let (parameter, argument) = first_pass(text);
        let mut calls = match (self.stage, text.first_kind()) {
            (Stage::Parts(Pass::Last), Some(_)) => {
                "    let first_pass = firsts_data[i / part_count()];\n".to_owned()
            }
            (Stage::Joined(Pass::Last), Some(_)) => {
                "    let first_pass = firsts_data[i];\n".to_owned()
            }
            _ => String::new(),
        };
        for &pass in passes {
            let Some(functions) = text.pass(pass) else { continue };
            let (name, parameter, argument) = match pass {
                Pass::First => ("first", "", ""),
                Pass::Last => ("last", &*parameter, argument),
            };
            self.add_pass(source, name, functions, parameter);
            calls.push_str(&format!("    let {name}_pass = {name}(i, thread{argument});\n"));
        }
        calls
    }

    /// Adds the entry point that writes results. A workgroup writes one, or the four of a word.
    fn add_results(self, source: &mut Source, text: &Text, calls: &str) {
        let result = self.result();
        let working = result.working();
        let (parameter, argument) = first_pass(text);
        source.add(&format!(
            "fn finish(s: {}{parameter}) -> {working} {{ return {}; }}",
            text.kind, text.finish
        ));
        source.add(&format!(
            "fn result(i: u32, thread: u32) -> {working} {{\n{calls}    return finish(last_pass{argument});\n}}"
        ));
        if self.stage == Stage::Threads {
            source.add(&format!("fn each(i: u32) -> {working} {{ return result(i, 0u); }}"));
            return source.each_word(result, "each");
        }
        let n = result.per_thread();
        let write = match n {
            1 => "let value = result(i, thread);\n    if thread == 0u { write_y(i, value); }"
                .to_owned(),
            _ => {
                let mut text = "var value = vec4(0u);\n".to_owned();
                for (k, name) in ["x", "y", "z", "w"].iter().enumerate() {
                    text.push_str(&format!(
                        "    value.{name} = result(min(4u * i + {k}u, p.count - 1u), thread);\n    \
                         workgroupBarrier();\n"
                    ));
                }
                text + "    if thread == 0u { write_y(i, value); }"
            }
        };
        source.each_group(&format!("{n}u * i"), &write);
    }

    /// Adds the function `name`, which gives every thread the accumulator of a pass for result or part `i`.
    fn add_pass(
        self,
        source: &mut Source,
        name: &str,
        [kind, start, add, join]: [&str; 4],
        parameter: &str,
    ) {
        let is_grouped = self.stage != Stage::Threads;
        let threads = if is_grouped { GROUP } else { 1 };
        // The position of element 0, the range of elements, and the statement for each.
        let (base, from, end, each) = match self.stage {
            Stage::Threads | Stage::Groups => {
                ("base(i)", "0u", "p.elements", format!("let x = element(at, j); s = {add};"))
            }
            Stage::Parts(_) => (
                "base(i / part_count())",
                "(i % part_count()) * p.part",
                "min(from_j + p.part, p.elements)",
                format!("let x = element(at, j); s = {add};"),
            ),
            Stage::Joined(_) => (
                "i * part_count()",
                "0u",
                "part_count()",
                format!("let t = parts_data[at + j]; s = {join};"),
            ),
        };
        let whole = match is_grouped {
            false => "s".to_owned(),
            true => {
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
                format!("{name}_whole(s, thread)")
            }
        };
        source.add(&format!(
            "fn {name}(i: u32, thread: u32{parameter}) -> {kind} {{\n    \
             let at = {base};\n    let from_j = {from};\n    let end = {end};\n    var s = {start};\n    \
             for (var j = from_j + thread; j < end; j += {threads}u) {{ {each} }}\n    return {whole};\n}}"
        ));
    }

    /// Returns the dispatches, in order, that reduce `x` over sorted axes.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) if a position does not fit a word.
    pub fn plans(
        op: ReduceOp,
        store: Store,
        x: &Layout,
        axes: &[usize],
    ) -> Result<SmallVec<[Plan<Reduction>; 4]>> {
        let (name, shape) = (op.name(), x.shape());
        let kept = (0..x.dims().len()).filter(|axis| !axes.contains(axis));
        let outer = merge_some_axes(&[x], kept);
        let inner = merge_some_axes(&[x], axes.iter().copied());
        let results: usize = outer.dims().iter().product();
        let count: usize = inner.dims().iter().product();
        let part = part_of(count);
        let parts = results.saturating_mul(count.div_ceil(part));
        let (kind, parameter) = kind_of(op);
        check_positions(name, x)?;
        let fields = ReduceWords {
            kept: outer.dims().len() as u32,
            reduced: inner.dims().len() as u32,
            elements: word(name, shape, count)?,
            from_x: word(name, shape, x.offset())?,
            parameter,
            part: word(name, shape, part)?,
        };
        let mut axes = axes_of(name, shape, &outer, 1)?;
        axes.extend(axes_of(name, shape, &inner, 1)?);
        let has_first = Text::of(kind, store).first.is_some();
        let both: &[Pass] = if has_first { &[Pass::First, Pass::Last] } else { &[Pass::Last] };
        let stages: SmallVec<[Stage; 4]> = match count {
            _ if part < count => {
                both.iter().flat_map(|&pass| [Stage::Parts(pass), Stage::Joined(pass)]).collect()
            }
            GROUPED_FROM.. => smallvec![Stage::Groups],
            _ => smallvec![Stage::Threads],
        };
        let plans = stages.into_iter().map(|stage| {
            let kernel = Reduction { kind, store, stage };
            let per_thread = match stage {
                Stage::Parts(_) | Stage::Joined(Pass::First) => 1,
                _ => kernel.result().per_thread(),
            };
            let many = if let Stage::Parts(_) = stage { parts } else { results };
            let grid = match stage {
                Stage::Threads => grid_of(many.div_ceil(per_thread)),
                _ => groups_of(many.div_ceil(per_thread)),
            };
            Plan::new(kernel, (name, shape), many, grid, &[&fields], &axes)
        });
        plans.collect()
    }
}

/// The first pass's accumulator as a parameter and as an argument; empty without a first pass.
fn first_pass(text: &Text) -> (String, &'static str) {
    match text.first_kind() {
        Some(kind) => (format!(", first_pass: {kind}"), ", first_pass"),
        None => (String::new(), ""),
    }
}

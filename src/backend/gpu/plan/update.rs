//! Steps of optimizers. A thread computes one element.
//!
//! ```text
//! words   0  elements     1  threads in a row of the grid     4..12  the step's numbers, as `plan` orders them
//! ```

use crate::error::Result;
use crate::ops::UpdateOp;
use crate::shape::Shape;

use super::super::shader::{Module, Source, Store, WORDS};
use super::{Plan, Words, grid_of, word};

/// A step of an optimizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "those of `UpdateOp`")]
pub enum Update {
    Sgd { store: Store, has_momentum: bool, nesterov: bool, first: bool },
    Adam { store: Store, decoupled: bool },
}

impl Update {
    /// Returns the kernel of a step.
    pub fn of(op: &UpdateOp, store: Store) -> Update {
        match *op {
            UpdateOp::Sgd { momentum, nesterov, first, .. } => {
                Update::Sgd { store, has_momentum: momentum != 0.0, nesterov, first }
            }
            UpdateOp::Adam { decoupled, .. } => Update::Adam { store, decoupled },
        }
    }

    /// Returns the kernel's text.
    pub fn module(self) -> Module {
        let (name, store, states) = match self {
            Update::Sgd { store, has_momentum, .. } => ("sgd", store, usize::from(has_momentum)),
            Update::Adam { store, .. } => ("adam", store, 2),
        };
        // a: the gradient.
        let mut source = Source::new(&[store]);
        source.changed("parameter", store);
        for state in &["m", "v"][..states] {
            source.changed(state, store);
        }
        let text = match self {
            Update::Sgd { has_momentum, nesterov, first, .. } => {
                let sum = match (has_momentum, first) {
                    (false, _) => "",
                    (true, true) => "    let b = g;\n    write_m(i, b);\n",
                    (true, false) => {
                        "    let b = number(5u) * m(i) + number(6u) * g;\n    write_m(i, b);\n"
                    }
                };
                let step = match (has_momentum, nesterov) {
                    (false, _) => "g",
                    (true, false) => "b",
                    (true, true) => "(g + number(5u) * b)",
                };
                format!(
                    "    let x = parameter(i);\n    let g = a(i) + decay(number(7u), x);\n{sum}    \
                     write_parameter(i, x - number(4u) * {step});"
                )
            }
            Update::Adam { decoupled, .. } => {
                let [x, g] = match decoupled {
                    true => ["parameter(i) * number(11u)", "a(i)"],
                    false => ["parameter(i)", "a(i) + decay(number(11u), x)"],
                };
                format!(
                    "    let x = {x};\n    let g = {g};\n    \
                     let mean = number(5u) * m(i) + number(6u) * g;\n    \
                     let square = number(7u) * v(i) + number(8u) * g * g;\n    \
                     write_m(i, mean);\n    write_v(i, square);\n    \
                     write_parameter(i, x - number(4u) * (mean / (sqrt(square) / number(9u) + number(10u))));"
                )
            }
        };
        source.add("fn number(at: u32) -> f32 { return bitcast<f32>(p.words[at]); }");
        // A rate of 0 gives 0 even for an infinite parameter.
        source.add(
            "fn decay(rate: f32, x: f32) -> f32 { return select(rate * x, 0.0, rate == 0.0); }",
        );
        source.each_thread("i", text.trim_start());
        let flags = match self {
            Update::Sgd { has_momentum, nesterov, first, .. } => {
                [(has_momentum, "_momentum"), (nesterov, "_nesterov"), (first, "_first")]
            }
            Update::Adam { decoupled, .. } => [(decoupled, "_decoupled"), (false, ""), (false, "")],
        };
        let flags: String = flags.iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
        source.finish(format!("{name}_{}{flags}", store.name()))
    }

    /// Returns the dispatch for contiguous tensors.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) if a position does not fit a word.
    pub fn plan(self, op: &UpdateOp, shape: &Shape) -> Result<Plan<Update>> {
        let numel = word(op.name(), shape, shape.numel())?;
        let (grid, row) = grid_of(shape.numel());
        let numbers = match *op {
            UpdateOp::Sgd { rate, momentum, dampening, weight_decay, .. } => {
                [rate, momentum, 1.0 - dampening, weight_decay, 0.0, 0.0, 0.0, 0.0]
            }
            UpdateOp::Adam { rate, betas: [b, c], eps, weight_decay, decoupled, step } => {
                let [b_left, c_left] = [b, c].map(|beta| 1.0 - beta.powf(step as f64));
                let decay = if decoupled { 1.0 - rate * weight_decay } else { weight_decay };
                [rate / b_left, b, 1.0 - b, c, 1.0 - c, c_left.sqrt(), eps, decay]
            }
        };
        let mut words = Words::from_elem(0, WORDS);
        (words[0], words[1]) = (numel, row);
        for (at, number) in numbers.into_iter().enumerate() {
            words[4 + at] = (number as f32).to_bits();
        }
        Ok(Plan { kernel: self, words, grid })
    }
}

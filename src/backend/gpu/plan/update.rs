//! Steps of optimizers. A thread computes one element.

use crate::error::Result;
use crate::ops::UpdateOp;
use crate::shape::Shape;

use super::super::shader::{Module, Source, Store};
use super::words::{GridWords, Pack, words};
use super::{Plan, grid_of};

words! {
    /// `share` is the factor of the gradient in the momentum.
    SgdWords { rate: f32, momentum: f32, share: f32, decay: f32, }
}

words! {
    /// `rate` is the rate over `1 - β₁ᵗ`, `divisor` is `√(1 - β₂ᵗ)`. The momenta keep `beta` and `square_beta` of
    /// themselves and add a `share` of the gradient. If the weight decay is decoupled, `decay` is the factor of the
    /// parameter.
    AdamWords {
        rate: f32, beta: f32, share: f32, square_beta: f32, square_share: f32, divisor: f32, eps: f32, decay: f32,
    }
}

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
        let (name, store, states, fields) = match self {
            Update::Sgd { store, has_momentum, .. } => {
                ("sgd", store, usize::from(has_momentum), SgdWords::FIELDS)
            }
            Update::Adam { store, .. } => ("adam", store, 2, AdamWords::FIELDS),
        };
        // a: the gradient.
        let mut source = Source::new(&[GridWords::FIELDS, fields], &[store]);
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
                        "    let b = p.momentum * m(i) + p.share * g;\n    write_m(i, b);\n"
                    }
                };
                let step = match (has_momentum, nesterov) {
                    (false, _) => "g",
                    (true, false) => "b",
                    (true, true) => "(g + p.momentum * b)",
                };
                format!(
                    "    let x = parameter(i);\n    let g = a(i) + decay(p.decay, x);\n{sum}    \
                     write_parameter(i, x - p.rate * {step});"
                )
            }
            Update::Adam { decoupled, .. } => {
                let [x, g] = match decoupled {
                    true => ["parameter(i) * p.decay", "a(i)"],
                    false => ["parameter(i)", "a(i) + decay(p.decay, x)"],
                };
                format!(
                    "    let x = {x};\n    let g = {g};\n    \
                     let mean = p.beta * m(i) + p.share * g;\n    \
                     let square = p.square_beta * v(i) + p.square_share * g * g;\n    \
                     write_m(i, mean);\n    write_v(i, square);\n    \
                     write_parameter(i, x - p.rate * (mean / (sqrt(square) / p.divisor + p.eps)));"
                )
            }
        };
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
        let numbers: &dyn Pack = match *op {
            UpdateOp::Sgd { rate, momentum, dampening, weight_decay, .. } => {
                let [rate, momentum, share, decay] =
                    [rate, momentum, 1.0 - dampening, weight_decay].map(|x| x as f32);
                &SgdWords { rate, momentum, share, decay }
            }
            UpdateOp::Adam { rate, betas: [b, c], eps, weight_decay, decoupled, step } => {
                let [b_left, c_left] = [b, c].map(|beta| 1.0 - beta.powf(step as f64));
                let decay = if decoupled { 1.0 - rate * weight_decay } else { weight_decay };
                &AdamWords {
                    rate: (rate / b_left) as f32,
                    beta: b as f32,
                    share: (1.0 - b) as f32,
                    square_beta: c as f32,
                    square_share: (1.0 - c) as f32,
                    divisor: c_left.sqrt() as f32,
                    eps: eps as f32,
                    decay: decay as f32,
                }
            }
        };
        let (numel, grid) = (shape.numel(), grid_of(shape.numel()));
        Plan::new(self, (op.name(), shape), numel, grid, &[numbers], &[])
    }
}

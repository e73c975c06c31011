//! What fused gradients are given wrongly: operands and parameters, one at a time.

use smallvec::SmallVec;

use crate::backend::{Backend, TensorData};
use crate::dtype::Scalar;
use crate::error::Result;
use crate::ops::{Activation, FusedOp};
use crate::tensor::Tensor;

use super::{Mutation, moved_on};

/// One thing that a fused gradient is given wrongly; operands are numbered as in [`FusedOp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misgiven {
    /// The operand is 0 everywhere.
    Zeroed(usize),
    /// The operand is left out.
    Absent(usize),
    /// Every element of the operand is at the next place.
    MovedOn(usize),
    /// The parameter of this name is another one, or none.
    Changed(&'static str),
}

/// What the gradient of a recorded op is given beside g.
struct Given {
    op: &'static str,
    operands: usize,
    /// Operands that may be absent.
    optional: &'static [usize],
    /// Parameters without which a term is missing.
    terms: &'static [&'static str],
    /// Parameters that say which function it is.
    functions: &'static [&'static str],
}

const GIVEN: &[Given] = &[
    Given { op: "softmax", operands: 1, optional: &[], terms: &[], functions: &[] },
    Given { op: "log_softmax", operands: 1, optional: &[], terms: &[], functions: &[] },
    Given {
        op: "cross_entropy",
        operands: 3,
        optional: &[],
        terms: &["ignore_index", "label_smoothing"],
        functions: &[],
    },
    Given { op: "layer_norm", operands: 3, optional: &[2], terms: &[], functions: &[] },
    Given {
        op: "bias_activation",
        operands: 2,
        optional: &[],
        terms: &[],
        functions: &["activation"],
    },
    Given {
        op: "scaled_dot_product_attention",
        operands: 6,
        optional: &[4],
        terms: &["causal", "dropout"],
        functions: &["scale"],
    },
];

/// Every way in which the gradient of an op can be given something wrong. It makes the gradients of all
/// inputs wrong at once, and is counted for the first.
pub(crate) fn misgivens(op: &str, input: usize, mutation: Mutation) -> Vec<Misgiven> {
    let Some(given) = GIVEN.iter().find(|given| given.op == op && input == 0) else {
        return Vec::new();
    };
    let operands = 1..=given.operands;
    let changed = |names: &'static [&'static str]| names.iter().map(|name| Misgiven::Changed(name));
    match mutation {
        Mutation::Sign | Mutation::Factor => Vec::new(),
        Mutation::DropTerm => operands
            .map(Misgiven::Zeroed)
            .chain(given.optional.iter().map(|&i| Misgiven::Absent(i)))
            .chain(changed(given.terms))
            .collect(),
        Mutation::WrongInput => {
            operands.map(Misgiven::MovedOn).chain(changed(given.functions)).collect()
        }
    }
}

/// The op and the operands, with what is given wrongly.
pub(crate) type Wrong<T> = (FusedOp, SmallVec<[Option<T>; 8]>);

pub(super) fn apply<B: Backend>(
    misgiven: Misgiven,
    op: &FusedOp,
    operands: &[Option<&B::Tensor>],
) -> Result<Wrong<B::Tensor>> {
    let mut operands: SmallVec<[Option<B::Tensor>; 8]> =
        operands.iter().map(|x| x.cloned()).collect();
    let mut op = *op;
    match misgiven {
        Misgiven::Absent(i) => operands[i] = None,
        Misgiven::Zeroed(i) => {
            if let Some(x) = &mut operands[i] {
                *x = B::full(*x.shape(), Scalar::Int(0), x.dtype())?;
            }
        }
        Misgiven::MovedOn(i) => {
            if let Some(x) = &mut operands[i] {
                *x = moved_on(&Tensor::<B>::from_data(x.clone()))?.data().clone();
            }
        }
        Misgiven::Changed(name) => change(name, &mut op),
    }
    Ok((op, operands))
}

fn change(name: &str, op: &mut FusedOp) {
    match (name, op) {
        ("ignore_index", FusedOp::CrossEntropyGrad { ignore_index, .. }) => *ignore_index = None,
        ("label_smoothing", FusedOp::CrossEntropyGrad { label_smoothing, .. }) => {
            *label_smoothing = 0.0;
        }
        ("activation", FusedOp::BiasActivationGrad(activation)) => {
            let at = Activation::ALL.iter().position(|other| other == activation).unwrap_or(0);
            *activation = Activation::ALL[(at + 1) % Activation::ALL.len()];
        }
        ("causal", FusedOp::AttentionGrad(parameters)) => parameters.causal = !parameters.causal,
        ("dropout", FusedOp::AttentionGrad(parameters)) => parameters.dropout = None,
        ("scale", FusedOp::AttentionGrad(parameters)) => parameters.scale *= 1.1,
        (name, op) => unreachable!("{} has no parameter {name}", op.name()),
    }
}

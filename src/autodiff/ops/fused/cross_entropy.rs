//! Derivative of `cross_entropy` of rows.

use smallvec::smallvec;

use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, shared_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::ops::FusedOp;
use crate::tensor::Tensor;
use crate::tensor::fused::cross_entropy::CrossEntropy;

use super::{definition_gradients, fused_gradient};

struct CrossEntropyRule<B: Backend> {
    logits: Tensor<B>,
    targets: Tensor<B>,
    largest: B::Tensor,
    rest: B::Tensor,
    options: CrossEntropy,
}

/// `g (softmax(x) - (1 - ε) onehot(target) - ε/n)`.
pub(crate) fn cross_entropy_rule<B: Backend>(
    logits: &Tensor<B>,
    targets: &Tensor<B>,
    [largest, rest]: [B::Tensor; 2],
    options: CrossEntropy,
) -> SharedRule<B> {
    let (logits, targets) = (logits.clone(), targets.clone());
    shared_rule(CrossEntropyRule { logits, targets, largest, rest, options })
}

impl<B: Backend> Rule<B> for CrossEntropyRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, _wanted: &[bool]) -> Result<InputGradients<B>> {
        let CrossEntropyRule { logits, targets, largest, rest, options } = self;
        let g = upstream.g;
        if upstream.create_graph() {
            let losses = logits.cross_entropy_definition(targets, options)?;
            return definition_gradients(&[Some(logits)], g, &losses);
        }
        let &CrossEntropy { ignore_index, label_smoothing, .. } = options;
        let op = FusedOp::CrossEntropyGrad { ignore_index, label_smoothing };
        let operands = [g.data(), logits.data(), targets.data(), largest, rest].map(Some);
        let [gradient] = fused_gradient(&op, &operands)?;
        Ok(smallvec![Some(gradient)])
    }
}

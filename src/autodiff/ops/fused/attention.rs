//! Derivative of `scaled_dot_product_attention`.

use super::{definition_gradients, fused_gradient};
use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, shared_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::ops::{AttentionParameters, FusedOp};
use crate::tensor::Tensor;

struct AttentionRule<B: Backend> {
    q: Tensor<B>,
    k: Tensor<B>,
    v: Tensor<B>,
    mask: Option<Tensor<B>>,
    largest: B::Tensor,
    inverse: B::Tensor,
    /// Of the statistics' dtype.
    y: B::Tensor,
    parameters: AttentionParameters,
}

/// The fused gradient, which computes the weights anew from each row's largest score and 1/Σ e^(score − it).
pub(crate) fn attention_rule<B: Backend>(
    [q, k, v]: [&Tensor<B>; 3],
    mask: Option<&Tensor<B>>,
    [largest, inverse, y]: [B::Tensor; 3],
    parameters: AttentionParameters,
) -> SharedRule<B> {
    let (q, k, v, mask) = (q.clone(), k.clone(), v.clone(), mask.cloned());
    shared_rule(AttentionRule { q, k, v, mask, largest, inverse, y, parameters })
}

impl<B: Backend> Rule<B> for AttentionRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, wanted: &[bool]) -> Result<InputGradients<B>> {
        let AttentionRule { q, k, v, mask, largest, inverse, y, parameters } = self;
        if upstream.create_graph() {
            let y = q.attention_definition(k, v, mask.as_ref(), parameters)?;
            return definition_gradients(&[Some(q), Some(k), Some(v)], upstream.g, &y);
        }
        let mask = mask.as_ref().map(|mask| mask.data());
        let (g, q, k, v) = (upstream.g.data(), q.data(), k.data(), v.data());
        let saved = [Some(y), Some(largest), Some(inverse)];
        let operands = [Some(g), Some(q), Some(k), Some(v), mask, saved[0], saved[1], saved[2]];
        let op = FusedOp::AttentionGrad(*parameters);
        let gradients: [Tensor<B>; 3] = fused_gradient(&op, &operands)?;
        let each = gradients.into_iter().zip(wanted);
        Ok(each.map(|(gradient, &wanted)| wanted.then_some(gradient)).collect())
    }
}

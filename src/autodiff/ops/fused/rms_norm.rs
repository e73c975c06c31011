//! Derivative of `rms_norm`.

use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, shared_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::ops::FusedOp;
use crate::tensor::Tensor;

use super::{definition_gradients, fused_gradient};

struct RmsNormRule<B: Backend> {
    x: Tensor<B>,
    weight: Option<Tensor<B>>,
    eps: f64,
    /// 1/rms of each row.
    reciprocal: B::Tensor,
}

/// Gradients of x and of the weight, if there is one.
pub(crate) fn rms_norm_rule<B: Backend>(
    x: &Tensor<B>,
    weight: Option<&Tensor<B>>,
    eps: f64,
    reciprocal: B::Tensor,
) -> SharedRule<B> {
    shared_rule(RmsNormRule { x: x.clone(), weight: weight.cloned(), eps, reciprocal })
}

impl<B: Backend> Rule<B> for RmsNormRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, _wanted: &[bool]) -> Result<InputGradients<B>> {
        let weight = self.weight.as_ref();
        if upstream.create_graph() {
            let y = self.x.rms_norm_definition(weight, self.eps)?;
            return match weight {
                Some(_) => definition_gradients(&[Some(&self.x), weight], upstream.g, &y),
                None => definition_gradients(&[Some(&self.x)], upstream.g, &y),
            };
        }
        let (g, x, weight) = (upstream.g.data(), self.x.data(), weight.map(Tensor::data));
        let operands = [Some(g), Some(x), weight, Some(&self.reciprocal)];
        let gradients: [Tensor<B>; 2] = fused_gradient(&FusedOp::RmsNormGrad, &operands)?;
        let there = if weight.is_some() { 2 } else { 1 };
        Ok(gradients.into_iter().take(there).map(Some).collect())
    }
}

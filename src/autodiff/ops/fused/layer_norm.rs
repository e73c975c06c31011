//! Derivative of `layer_norm`.

use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, shared_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::ops::FusedOp;
use crate::tensor::Tensor;

use super::{definition_gradients, fused_gradient};

struct LayerNormRule<B: Backend> {
    x: Tensor<B>,
    weight: Option<Tensor<B>>,
    /// For the recorded definition; its values are not needed.
    bias: Option<Tensor<B>>,
    eps: f64,
    reciprocal_deviation: B::Tensor,
}

/// Gradients of x and of those of weight and bias that there are.
pub(crate) fn layer_norm_rule<B: Backend>(
    x: &Tensor<B>,
    weight: Option<&Tensor<B>>,
    bias: Option<&Tensor<B>>,
    eps: f64,
    reciprocal_deviation: B::Tensor,
) -> SharedRule<B> {
    let (weight, bias) = (weight.cloned(), bias.cloned());
    shared_rule(LayerNormRule { x: x.clone(), weight, bias, eps, reciprocal_deviation })
}

impl<B: Backend> Rule<B> for LayerNormRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, _wanted: &[bool]) -> Result<InputGradients<B>> {
        let (weight, bias) = (self.weight.as_ref(), self.bias.as_ref());
        let gradients = if upstream.create_graph() {
            let y = self.x.layer_norm_definition(weight, bias, self.eps)?;
            definition_gradients(&[Some(&self.x), weight, bias], upstream.g, &y)?
        } else {
            let (g, x, weight) = (upstream.g.data(), self.x.data(), weight.map(Tensor::data));
            let operands = [Some(g), Some(x), weight, Some(&self.reciprocal_deviation)];
            let gradients: [Tensor<B>; 3] = fused_gradient(&FusedOp::LayerNormGrad, &operands)?;
            gradients.into_iter().map(Some).collect()
        };
        let there = [true, weight.is_some(), bias.is_some()];
        let gradients = gradients.into_iter().zip(there);
        Ok(gradients.filter_map(|(gradient, there)| there.then_some(gradient)).collect())
    }
}

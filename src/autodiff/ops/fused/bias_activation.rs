//! Derivative of `bias_activation`.

use smallvec::smallvec;

use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, shared_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::ops::{Activation, FusedOp};
use crate::tensor::Tensor;

use super::{definition_gradients, fused_gradient};

struct BiasActivationRule<B: Backend> {
    x: Tensor<B>,
    bias: Tensor<B>,
    activation: Activation,
}

/// `g f′(x + bias)` for both; the engine sums it to the bias' shape.
pub(crate) fn bias_activation_rule<B: Backend>(
    x: &Tensor<B>,
    bias: &Tensor<B>,
    activation: Activation,
) -> SharedRule<B> {
    shared_rule(BiasActivationRule { x: x.clone(), bias: bias.clone(), activation })
}

impl<B: Backend> Rule<B> for BiasActivationRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, wanted: &[bool]) -> Result<InputGradients<B>> {
        let BiasActivationRule { x, bias, activation } = self;
        if upstream.create_graph() {
            let y = x.bias_activation_definition(bias, *activation)?;
            return definition_gradients(&[Some(x), Some(bias)], upstream.g, &y);
        }
        let op = FusedOp::BiasActivationGrad(*activation);
        let operands = [Some(upstream.g.data()), Some(x.data()), Some(bias.data())];
        let [gradient] = fused_gradient(&op, &operands)?;
        let each = |wanted: bool| wanted.then(|| gradient.clone());
        Ok(smallvec![each(wanted[0]), each(wanted[1])])
    }
}

//! Derivatives of `softmax` and `log_softmax` along the last axis, from their outputs.

use smallvec::smallvec;

use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, shared_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::ops::FusedOp;
use crate::tensor::Tensor;

use super::fused_gradient;

struct SoftmaxRule<B: Backend> {
    y: B::Tensor,
    log: bool,
}

/// `y (g - Σ g y)`.
pub(crate) fn softmax_rule<B: Backend>(y: &B::Tensor) -> SharedRule<B> {
    shared_rule(SoftmaxRule { y: y.clone(), log: false })
}

/// `g - e^y Σ g`.
pub(crate) fn log_softmax_rule<B: Backend>(y: &B::Tensor) -> SharedRule<B> {
    shared_rule(SoftmaxRule { y: y.clone(), log: true })
}

impl<B: Backend> Rule<B> for SoftmaxRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, _wanted: &[bool]) -> Result<InputGradients<B>> {
        let g = upstream.g;
        let gradient = if upstream.create_graph() {
            recorded(g, &upstream.output(&self.y), self.log)?
        } else {
            let op = if self.log { FusedOp::LogSoftmaxGrad } else { FusedOp::SoftmaxGrad };
            let [gradient] = fused_gradient(&op, &[Some(g.data()), Some(&self.y)])?;
            gradient
        };
        Ok(smallvec![Some(gradient)])
    }
}

fn recorded<B: Backend>(g: &Tensor<B>, y: &Tensor<B>, log: bool) -> Result<Tensor<B>> {
    let (last, dtype) = (Some(&[y.rank() - 1][..]), g.dtype());
    let (g, y) = (g.widened()?, y.widened()?);
    let gradient = match log {
        true => g.sub(&y.exp()?.mul(&g.sum(last, true)?)?)?,
        false => y.mul(&g.sub(&g.mul(&y)?.sum(last, true)?)?)?,
    };
    gradient.to_dtype(dtype)
}

//! Derivatives of the two results of `sincos`, each from the other.

use smallvec::smallvec;

use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, shared_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::tensor::Tensor;

struct SinCosRule<B: Backend> {
    x: Tensor<B>,
    /// The other result.
    other: B::Tensor,
    /// True for the rule of the sine.
    of_sine: bool,
}

/// Of the sine: `g cos(x)`.
pub(crate) fn sine_rule<B: Backend>(x: &Tensor<B>, cosine: B::Tensor) -> SharedRule<B> {
    shared_rule(SinCosRule { x: x.clone(), other: cosine, of_sine: true })
}

/// Of the cosine: `-g sin(x)`.
pub(crate) fn cosine_rule<B: Backend>(x: &Tensor<B>, sine: B::Tensor) -> SharedRule<B> {
    shared_rule(SinCosRule { x: x.clone(), other: sine, of_sine: false })
}

impl<B: Backend> Rule<B> for SinCosRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, _wanted: &[bool]) -> Result<InputGradients<B>> {
        let other = match (upstream.create_graph(), self.of_sine) {
            (true, true) => self.x.cos()?,
            (true, false) => self.x.sin()?,
            (false, _) => Tensor::from_data(self.other.clone()),
        };
        let gradient = upstream.g.mul(&other)?;
        Ok(smallvec![Some(if self.of_sine { gradient } else { gradient.neg()? })])
    }
}

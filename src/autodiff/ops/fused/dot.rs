//! Derivative of `dot`.

use smallvec::smallvec;

use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, shared_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::tensor::Tensor;

struct DotRule<B: Backend> {
    a: Option<Tensor<B>>,
    b: Option<Tensor<B>>,
}

/// `g b` and `g a`, row by row; each factor is kept only if the other one is tracked.
pub(crate) fn dot_rule<B: Backend>(a: &Tensor<B>, b: &Tensor<B>) -> SharedRule<B> {
    shared_rule(DotRule {
        a: b.is_tracked().then(|| a.clone()),
        b: a.is_tracked().then(|| b.clone()),
    })
}

impl<B: Backend> Rule<B> for DotRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, wanted: &[bool]) -> Result<InputGradients<B>> {
        let (a, b) = (self.a.as_ref().filter(|_| wanted[1]), self.b.as_ref().filter(|_| wanted[0]));
        let times = |x: &Tensor<B>| upstream.g.unsqueeze(-1)?.mul(x);
        Ok(smallvec![b.map(times).transpose()?, a.map(times).transpose()?])
    }
}

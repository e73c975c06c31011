//! Rules of ops that are linear in their inputs.

use smallvec::smallvec;

use crate::autodiff::graph::{
    InputGradients, SharedRule, Upstream, bytes_of_kept, rule, rule_keeping,
};
use crate::backend::Backend;
use crate::error::Result;
use crate::tensor::Tensor;

/// Makes the rule of an op of one tensor whose derivative is a function of the upstream gradient
/// alone.
pub(crate) fn linear<B, F>(gradient: F) -> SharedRule<B>
where
    B: Backend,
    F: Fn(&Tensor<B>) -> Result<Tensor<B>> + Send + Sync + 'static,
{
    rule(move |upstream: &Upstream<'_, B>, _| Ok(smallvec![Some(gradient(upstream.g)?)]))
}

/// Makes the rule of an op that is linear in each of two inputs. `gradient(upstream, i, other)` is the gradient of input
/// i; `other` is the other input, which is saved only if input i is tracked. A third input, which is added to the result,
/// has the upstream gradient.
pub(crate) fn bilinear<B, F>(inputs: [&Tensor<B>; 2], gradient: F) -> SharedRule<B>
where
    B: Backend,
    F: Fn(&Upstream<'_, B>, usize, &Tensor<B>) -> Result<Tensor<B>> + Send + Sync + 'static,
{
    bilinear_with_bias(inputs, gradient, |g| Ok(g.clone()))
}

/// Like [`bilinear`], with the gradient of the third input from the upstream one.
pub(crate) fn bilinear_with_bias<B, F, G>(
    [a, b]: [&Tensor<B>; 2],
    gradient: F,
    bias: G,
) -> SharedRule<B>
where
    B: Backend,
    F: Fn(&Upstream<'_, B>, usize, &Tensor<B>) -> Result<Tensor<B>> + Send + Sync + 'static,
    G: Fn(&Tensor<B>) -> Result<Tensor<B>> + Send + Sync + 'static,
{
    let others = [a.is_tracked().then(|| b.clone()), b.is_tracked().then(|| a.clone())];
    rule_keeping(bytes_of_kept(others.each_ref()), move |upstream: &Upstream<'_, B>, wanted| {
        let mut gradients = InputGradients::<B>::new();
        for (i, other) in others.iter().enumerate() {
            let other = other.as_ref().filter(|_| wanted[i]);
            gradients.push(other.map(|other| gradient(upstream, i, other)).transpose()?);
        }
        if let Some(&wanted) = wanted.get(2) {
            gradients.push(wanted.then(|| bias(upstream.g)).transpose()?);
        }
        Ok(gradients)
    })
}

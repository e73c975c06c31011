//! Ops with parameters: their derivatives. The forward side is in `tensor/`, under the same names.

pub(crate) mod fused;
pub(crate) mod index;
pub(crate) mod matmul;
pub(crate) mod reduce;
pub(crate) mod scan;
pub(crate) mod select;
pub(crate) mod view;

use smallvec::smallvec;

use crate::backend::Backend;
use crate::error::Result;
use crate::tensor::Tensor;

use super::graph::{InputGradients, Rule, SharedRule, Upstream, shared_rule};

/// The rule of an op of one tensor whose derivative is one function of the upstream gradient.
struct OneInput<F>(F);

impl<B, F> Rule<B> for OneInput<F>
where
    B: Backend,
    F: Fn(&Tensor<B>) -> Result<Tensor<B>> + Send + Sync,
{
    fn backward(&self, upstream: &Upstream<'_, B>, _wanted: &[bool]) -> Result<InputGradients<B>> {
        Ok(smallvec![Some((self.0)(upstream.g)?)])
    }
}

/// A rule from a function of the upstream gradient.
fn one_input<B, F>(gradient: F) -> SharedRule<B>
where
    B: Backend,
    F: Fn(&Tensor<B>) -> Result<Tensor<B>> + Send + Sync + 'static,
{
    shared_rule(OneInput(gradient))
}

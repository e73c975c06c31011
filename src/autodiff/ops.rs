//! Derivatives of ops with parameters. The ops are in `tensor/`, in files of the same names.
//! Fused ops and their derivatives are in `tensor/fused/`.

pub(crate) mod arithmetic;
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

use super::graph::{SharedRule, Upstream, rule};

/// Makes the rule of an op of one tensor whose derivative is a function of the upstream gradient
/// alone.
pub(crate) fn one_input<B, F>(gradient: F) -> SharedRule<B>
where
    B: Backend,
    F: Fn(&Tensor<B>) -> Result<Tensor<B>> + Send + Sync + 'static,
{
    rule(move |upstream: &Upstream<'_, B>, _| Ok(smallvec![Some(gradient(upstream.g)?)]))
}

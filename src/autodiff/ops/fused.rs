//! Derivatives of fused ops: one file a family, as in `tensor/fused/`.
//!
//! A rule calls the fused gradient, or, where the gradient will itself be differentiated, records the
//! op's definition and differentiates that.

pub(crate) mod attention;
pub(crate) mod linear;

use smallvec::SmallVec;

use crate::autodiff::backward::vjp;
use crate::autodiff::graph::InputGradients;
use crate::backend::Backend;
use crate::error::Result;
use crate::tensor::Tensor;

/// Recorded gradients of an op's inputs by its definition: `y` is the definition at `inputs`.
#[allow(dead_code, reason = "the rules come with the kernels")]
pub(crate) fn definition_gradients<B: Backend>(
    inputs: &[Option<&Tensor<B>>],
    upstream: &Tensor<B>,
    y: &Tensor<B>,
) -> Result<InputGradients<B>> {
    let tensors: SmallVec<[&Tensor<B>; 4]> = inputs.iter().flatten().copied().collect();
    let mut gradients = vjp(y, upstream, &tensors)?;
    let each = inputs.iter().map(|x| match x {
        Some(x) if x.is_tracked() => match gradients.remove(x) {
            Some(gradient) => Ok(Some(gradient)),
            // The same tensor a second time: its gradient went to the first place.
            None => x.detach().zeros_like().map(Some),
        },
        _ => Ok(None),
    });
    each.collect()
}

//! Derivatives of fused ops: one file a family, as in `tensor/fused/`.
//!
//! A rule calls the fused gradient, or, where the gradient will itself be differentiated, records the
//! op's definition and differentiates that.

pub(crate) mod attention;
pub(crate) mod bias_activation;
pub(crate) mod columns;
pub(crate) mod cross_entropy;
pub(crate) mod dot;
pub(crate) mod dropout;
pub(crate) mod layer_norm;
pub(crate) mod linear;
pub(crate) mod rms_norm;
pub(crate) mod sincos;
pub(crate) mod softmax;

use smallvec::SmallVec;

use crate::autodiff::backward::vjp;
use crate::autodiff::graph::InputGradients;
use crate::backend::{Backend, Results};
use crate::error::{Error, Result};
use crate::ops::FusedOp;
use crate::tensor::Tensor;

fn results<B: Backend>(
    op: &FusedOp,
    operands: &[Option<&B::Tensor>],
) -> Result<Results<B::Tensor>> {
    #[cfg(feature = "testing")]
    if let Some((op, wrong)) = crate::autodiff::mutation::misgiven::<B>(op, operands)? {
        let wrong: SmallVec<[Option<&B::Tensor>; 8]> = wrong.iter().map(Option::as_ref).collect();
        return B::fused(&op, &wrong);
    }
    B::fused(op, operands)
}

/// The results of a gradient op, as untracked tensors.
fn fused_gradient<B: Backend, const N: usize>(
    op: &FusedOp,
    operands: &[Option<&B::Tensor>],
) -> Result<[Tensor<B>; N]> {
    let results = results::<B>(op, operands)?;
    let count = results.len();
    let tensors: SmallVec<[Tensor<B>; N]> = results.into_iter().map(Tensor::from_data).collect();
    tensors.into_inner().map_err(|_| {
        let reason = format!("the backend gave {count} results, not {N}");
        Error::InvalidArgument { op: op.name(), reason }
    })
}

/// Recorded gradients of an op's inputs by its definition: `y` is the definition at `inputs`.
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

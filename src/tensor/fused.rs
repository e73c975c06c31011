//! Fused ops: several passes over memory in one.
//!
//! Each file holds a family: the public methods, the *composite* that defines them by simpler ops, and
//! the derivative.
//!
//! ```text
//! method     check; kernel(FusedOp …)?       some results: record them with the rule
//!                                            none:         the composite, recorded op by op
//! rule       gradient_kernel(FusedOp …)?     some results: the gradients
//!                                            none:         the composite, recorded, and its gradients
//! ```
//!
//! A backend has no kernel where its `fused` says [`Error::Unsupported`]. The rule also goes by the
//! composite where the gradients will be differentiated.
//!
//! | file | what |
//! |---|---|
//! | `softmax.rs` | `softmax`, `log_softmax` |
//! | `cross_entropy.rs` | `cross_entropy` |
//! | `norm.rs` | `layer_norm`, `rms_norm` |
//! | `linear.rs` | `linear`, `linear_activation`, `bias_activation` |
//! | `dropout.rs` | `dropout` |
//! | `sincos.rs` | `sincos` |
//! | `columns.rs` | `im2col`, `col2im` |
//! | `conv.rs` | `conv2d`, `conv_transpose2d` and their kin |
//! | `pool.rs` | `max_pool2d`, `avg_pool2d` and their kin |
//! | `dot.rs` | `dot` |
//! | `attention.rs` | `scaled_dot_product_attention` |

pub(crate) mod attention;
mod columns;
pub(crate) mod conv;
pub(crate) mod cross_entropy;
mod dot;
mod dropout;
mod linear;
mod norm;
pub(crate) mod pool;
mod sincos;
mod softmax;

use smallvec::SmallVec;

use crate::autodiff::Backward;
use crate::autodiff::backward::partial;
use crate::autodiff::graph::{InputGradients, Upstream};
use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::FusedOp;
use crate::runtime::recording::with_recording;

use super::Tensor;

/// The results of a fused op by the backend's kernel; `None` if it has none.
fn kernel<B: Backend, const N: usize>(
    op: &FusedOp<'_, B::Tensor>,
) -> Result<Option<[B::Tensor; N]>> {
    let results = match B::fused(op) {
        Err(Error::Unsupported { op: lacking, .. }) if lacking == op.name() => return Ok(None),
        results => results?,
    };
    let count = results.len();
    let each: SmallVec<[B::Tensor; N]> = results.into_iter().collect();
    let reason = || format!("expected {N} results of the backend, got {count}");
    let wrong = |_| Error::InvalidArgument { op: op.name(), reason: reason() };
    each.into_inner().map(Some).map_err(wrong)
}

/// The gradients of a fused op by the backend's kernel; `None` if it has none, or if the gradients
/// will be differentiated.
fn gradient_kernel<B: Backend, const N: usize>(
    upstream: &Upstream<'_, B>,
    op: &FusedOp<'_, B::Tensor>,
) -> Result<Option<[Tensor<B>; N]>> {
    if upstream.create_graph() {
        return Ok(None);
    }
    Ok(kernel::<B, N>(op)?.map(|gradients| gradients.map(Tensor::from_data)))
}

/// Those of a kernel's gradients whose inputs are there.
fn of_present<B: Backend, const N: usize>(
    inputs: [Option<&Tensor<B>>; N],
    gradients: [Tensor<B>; N],
) -> InputGradients<B> {
    let pairs = inputs.into_iter().zip(gradients);
    pairs.filter_map(|(input, gradient)| input.map(|_| Some(gradient))).collect()
}

/// The gradients of those inputs of an op that are there, by its composite.
fn composite_gradients<B: Backend>(
    upstream: &Upstream<'_, B>,
    inputs: &[Option<&Tensor<B>>],
    composite: impl FnOnce() -> Result<Tensor<B>>,
) -> Result<InputGradients<B>> {
    let y = with_recording(true, composite)?;
    let tensors: SmallVec<[&Tensor<B>; 4]> = inputs.iter().flatten().copied().collect();
    let options = Backward { create_graph: upstream.create_graph(), ..Backward::default() };
    let mut gradients = partial(&y, upstream.g, &tensors, options)?;
    let each = tensors.iter().map(|x| match x.is_tracked() {
        false => Ok(None),
        true => match gradients.remove(x) {
            Some(gradient) => Ok(Some(gradient)),
            // The same tensor a second time: its gradient went to the first place.
            None => x.detach().zeros_like().map(Some),
        },
    });
    each.collect()
}

/// Fused ops are functions of floats.
pub(super) fn check_float<B: Backend>(op: &'static str, x: &Tensor<B>) -> Result<()> {
    match x.dtype() {
        dtype if dtype.is_float() => Ok(()),
        dtype => Err(Error::UnsupportedDType { op, dtype, shape: *x.shape() }),
    }
}

/// A second operand of the dtype of the first.
pub(super) fn check_same_dtype<B: Backend>(
    op: &'static str,
    x: &Tensor<B>,
    other: &Tensor<B>,
) -> Result<()> {
    check_dtype(op, other, x.dtype(), x)
}

fn check_dtype<B: Backend>(
    op: &'static str,
    x: &Tensor<B>,
    wanted: DType,
    beside: &Tensor<B>,
) -> Result<()> {
    if x.dtype() != wanted {
        let shape = *beside.shape();
        return Err(Error::DTypeMismatch { op, lhs: wanted, rhs: x.dtype(), shape });
    }
    Ok(())
}

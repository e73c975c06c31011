//! Fused ops: several passes over memory in one.
//!
//! Each file holds a family of ops: the public methods, the *composite* of simpler ops that defines
//! each, and the derivative.
//!
//! ```text
//! method     check; kernel(FusedOp …)?       if the backend has a kernel: record its results with the rule
//!                                            otherwise: the composite, recorded op by op
//! rule       gradient_kernel(FusedOp …)?     if the backend has a kernel: its results are the gradients
//!                                            otherwise: the composite, recorded, and its gradients
//! ```
//!
//! A backend without a kernel returns [`Error::Unsupported`] from `fused`. The rule also uses the
//! composite if the gradients will themselves be differentiated.
//!
//! | file | what |
//! |---|---|
//! | `softmax.rs` | `softmax`, `log_softmax` |
//! | `cross_entropy.rs` | `cross_entropy` |
//! | `norm.rs` | `layer_norm`, `rms_norm` |
//! | `batch_norm.rs` | `batch_norm`, `group_norm`, and those of training |
//! | `linear.rs` | `linear`, `linear_activation`, `bias_activation` |
//! | `dropout.rs` | `dropout` |
//! | `sincos.rs` | `sincos` |
//! | `conv.rs` | `conv1d` to `conv3d`, `conv_transpose1d` to `conv_transpose3d` |
//! | `pool.rs` | `max_pool1d` to `max_pool3d`, `avg_pool1d` to `avg_pool3d` |
//! | `adaptive.rs` | `adaptive_avg_pool1d`, `adaptive_avg_pool2d`, `adaptive_max_pool1d`, `adaptive_max_pool2d` |
//! | `windows.rs` | views of windows, `im2col`, `col2im` |
//! | `dot.rs` | `dot` |
//! | `attention.rs` | `scaled_dot_product_attention` |

mod adaptive;
pub(crate) mod attention;
mod batch_norm;
pub(crate) mod conv;
pub(crate) mod cross_entropy;
mod dot;
mod dropout;
mod linear;
mod norm;
pub(crate) mod pool;
mod sincos;
mod softmax;
mod windows;

use smallvec::SmallVec;

use crate::autodiff::Backward;
use crate::autodiff::backward::partial;
use crate::autodiff::graph::{InputGradients, Upstream};
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::ops::FusedOp;
use crate::runtime::recording::with_recording;

use super::base::Tensor;

/// Runs the backend's kernel of a fused op; `None` if it has none. Inlined, and so are its callers: the compiler then sees
/// which op is meant, and the linker drops the kernels of all others.
#[inline(always)]
fn kernel<B: Backend, const N: usize>(
    op: &FusedOp<'_, B::Tensor>,
) -> Result<Option<[B::Tensor; N]>> {
    let results = match B::fused(op) {
        Err(Error::Unsupported { op: lacking, .. }) if lacking == op.name() => return Ok(None),
        results => results?,
    };
    let count = results.len();
    let each: SmallVec<[B::Tensor; N]> = results.into_iter().collect();
    let reason = || format!("expected {N} results from the backend, got {count}");
    let wrong = |_| Error::InvalidArgument { op: op.name(), reason: reason() };
    each.into_inner().map(Some).map_err(wrong)
}

/// Runs the backend's gradient kernel; `None` if it has none, or if the gradients will be
/// differentiated.
#[inline(always)]
fn gradient_kernel<B: Backend, const N: usize>(
    upstream: &Upstream<'_, B>,
    op: &FusedOp<'_, B::Tensor>,
) -> Result<Option<[Tensor<B>; N]>> {
    if upstream.create_graph() {
        return Ok(None);
    }
    Ok(kernel::<B, N>(op)?.map(|gradients| gradients.map(Tensor::from_data)))
}

/// Computes the gradients of those inputs of an op that were given, as some may be left out, by the backend's kernel, which
/// has one result per input, or through the composite.
#[inline(always)]
fn gradients<B: Backend, const N: usize>(
    upstream: &Upstream<'_, B>,
    op: &FusedOp<'_, B::Tensor>,
    inputs: [Option<&Tensor<B>>; N],
    composite: impl FnOnce() -> Result<Tensor<B>>,
) -> Result<InputGradients<B>> {
    let Some(gradients) = gradient_kernel::<B, N>(upstream, op)? else {
        return composite_gradients(upstream, &inputs, composite);
    };
    let pairs = inputs.into_iter().zip(gradients);
    Ok(pairs.filter_map(|(input, gradient)| input.map(|_| Some(gradient))).collect())
}

/// Computes the gradients of those inputs of an op that were given through its composite.
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
            // If one tensor is two inputs, the first has the whole gradient and the second zeros.
            None => x.detach().zeros_like().map(Some),
        },
    });
    each.collect()
}

//! Fused ops: several passes over memory in one.
//!
//! Each file holds the public methods of a family and their *definition* in simpler ops. The
//! definition is what the methods mean; it is also recorded in place of the fused op where its
//! gradient will itself be differentiated.
//!
//! | file | what |
//! |---|---|
//! | `softmax.rs` | `softmax`, `log_softmax` |
//! | `cross_entropy.rs` | `cross_entropy` |
//! | `layer_norm.rs` | `layer_norm` |
//! | `rms_norm.rs` | `rms_norm` |
//! | `linear.rs` | `linear`, `linear_activation`, `bias_activation` |
//! | `dropout.rs` | `dropout` |
//! | `sincos.rs` | `sincos` |
//! | `columns.rs` | `im2col`, `col2im` |
//! | `dot.rs` | `dot` |
//! | `attention.rs` | `scaled_dot_product_attention` |

pub(crate) mod attention;
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

use crate::backend::{Backend, Results};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

use super::Tensor;

/// The results of a fused op that has N.
fn exactly<T, const N: usize>(op: &'static str, results: Results<T>) -> Result<[T; N]> {
    let count = results.len();
    let each: SmallVec<[T; N]> = results.into_iter().collect();
    let reason = || format!("the backend gave {count} results, not {N}");
    each.into_inner().map_err(|_| Error::InvalidArgument { op, reason: reason() })
}

/// Fused ops are functions of floats.
pub(super) fn check_float<B: Backend>(op: &'static str, x: &Tensor<B>) -> Result<()> {
    match x.dtype() {
        dtype if dtype.is_float() => Ok(()),
        dtype => Err(Error::UnsupportedDType { op, dtype, shape: *x.shape() }),
    }
}

/// What is added to a variance or a mean square before its root is taken.
fn check_eps(op: &'static str, eps: f64, shape: &Shape) -> Result<()> {
    if eps >= 0.0 {
        return Ok(());
    }
    let reason = format!("eps is {eps:?}, not at least 0, of a tensor {shape}");
    Err(Error::InvalidArgument { op, reason })
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

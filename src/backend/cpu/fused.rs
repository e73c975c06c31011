//! Fused ops: several passes over memory in one.
//!
//! Operands are taken row-major (copied where they are not), rows are shared by threads and handed
//! to the kernels many at a time. 16-bit floats go through `f32`; see `working.rs`.

mod attention;
mod bias_activation;
mod columns;
mod cross_entropy;
mod dot;
mod dropout;
mod layer_norm;
mod linear;
mod norm;
mod rms_norm;
mod sincos;
mod softmax;
pub(super) mod working;

pub(super) use bias_activation::FORWARD_COST as ACTIVATION_COST;

use super::{CpuTensor, Results};
use crate::backend::TensorData;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::FusedOp;
use crate::shape::Shape;

pub(super) fn fused(op: &FusedOp, operands: &[Option<&CpuTensor>]) -> Result<Results<CpuTensor>> {
    match op {
        FusedOp::Attention(parameters) => attention::attention(parameters, operands),
        FusedOp::AttentionGrad(parameters) => attention::attention_grad(parameters, operands),
        FusedOp::Softmax => softmax::forward(op.name(), operands, false),
        FusedOp::SoftmaxGrad => softmax::backward(op.name(), operands, false),
        FusedOp::LogSoftmax => softmax::forward(op.name(), operands, true),
        FusedOp::LogSoftmaxGrad => softmax::backward(op.name(), operands, true),
        &FusedOp::CrossEntropy { ignore_index, label_smoothing } => {
            cross_entropy::forward(operands, ignore_index, label_smoothing)
        }
        &FusedOp::CrossEntropyGrad { ignore_index, label_smoothing } => {
            cross_entropy::backward(operands, ignore_index, label_smoothing)
        }
        &FusedOp::LayerNorm { eps } => layer_norm::forward(operands, eps),
        FusedOp::LayerNormGrad => layer_norm::backward(operands),
        &FusedOp::RmsNorm { eps } => rms_norm::forward(operands, eps),
        FusedOp::RmsNormGrad => rms_norm::backward(operands),
        &FusedOp::BiasActivation(f) => bias_activation::forward(operands, f),
        &FusedOp::BiasActivationGrad(f) => bias_activation::backward(operands, f),
        FusedOp::Dropout(mask) => dropout::dropout(operands, mask),
        FusedOp::Linear => linear::linear(op.name(), operands, None, false),
        &FusedOp::LinearActivation { activation, keep_sums } => {
            linear::linear(op.name(), operands, Some(activation), keep_sums)
        }
        FusedOp::SinCos => sincos::sincos(operands),
        FusedOp::Im2col(window) => columns::im2col(operands, window),
        &FusedOp::Col2im { image, ref window } => columns::col2im(operands, image, window),
        FusedOp::Dot => dot::dot(operands),
    }
}

/// Operand `i`, which the op cannot do without.
fn operand<'a>(
    op: &'static str,
    operands: &[Option<&'a CpuTensor>],
    i: usize,
) -> Result<&'a CpuTensor> {
    let missing = || Error::InvalidArgument { op, reason: format!("operand {i} is missing") };
    operands.get(i).copied().flatten().ok_or_else(missing)
}

/// An operand that the op can do without.
fn optional<'a>(operands: &[Option<&'a CpuTensor>], i: usize) -> Option<&'a CpuTensor> {
    operands.get(i).copied().flatten()
}

/// The extent of the last axis.
fn columns(op: &'static str, x: &CpuTensor) -> Result<usize> {
    let reason = "there is no axis of rows";
    let last = x.shape().dims().last().copied();
    last.ok_or(Error::InvalidShape { op, shape: *x.shape(), reason })
}

fn check_shape(op: &'static str, x: &CpuTensor, shape: &Shape) -> Result<()> {
    if x.shape() != shape {
        return Err(Error::ShapeMismatch { op, lhs: *shape, rhs: *x.shape() });
    }
    Ok(())
}

fn check_dtype(op: &'static str, x: &CpuTensor, dtype: DType) -> Result<()> {
    if x.dtype() != dtype {
        return Err(Error::DTypeMismatch { op, lhs: dtype, rhs: x.dtype(), shape: *x.shape() });
    }
    Ok(())
}

//! Definitions of the fused ops: a row at a time, in `f64`, sums exact, every result rounded once.

mod attention;
mod bias_activation;
mod columns;
mod cross_entropy;
mod dot;
mod dropout;
mod layer_norm;
mod linear;
mod rms_norm;
mod sincos;
mod softmax;

use super::{ReferenceTensor, build, ravel};
use crate::backend::{Results, TensorData};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::FusedOp;
use crate::shape::Shape;

pub(super) fn fused(
    op: &FusedOp,
    operands: &[Option<&ReferenceTensor>],
) -> Result<Results<ReferenceTensor>> {
    match op {
        FusedOp::Attention(parameters) => attention::attention(parameters, operands),
        FusedOp::AttentionGrad(parameters) => attention::attention_grad(parameters, operands),
        FusedOp::Softmax => softmax::softmax(op.name(), operands, false),
        FusedOp::SoftmaxGrad => softmax::gradient(op.name(), operands, false),
        FusedOp::LogSoftmax => softmax::softmax(op.name(), operands, true),
        FusedOp::LogSoftmaxGrad => softmax::gradient(op.name(), operands, true),
        &FusedOp::CrossEntropy { ignore_index, label_smoothing } => {
            cross_entropy::losses(operands, ignore_index, label_smoothing)
        }
        &FusedOp::CrossEntropyGrad { ignore_index, label_smoothing } => {
            cross_entropy::gradient(operands, ignore_index, label_smoothing)
        }
        &FusedOp::LayerNorm { eps } => layer_norm::layer_norm(operands, eps),
        FusedOp::LayerNormGrad => layer_norm::gradients(operands),
        &FusedOp::RmsNorm { eps } => rms_norm::rms_norm(operands, eps),
        FusedOp::RmsNormGrad => rms_norm::gradients(operands),
        &FusedOp::BiasActivation(f) => bias_activation::bias_activation(operands, f),
        &FusedOp::BiasActivationGrad(f) => bias_activation::gradient(operands, f),
        FusedOp::Dropout(mask) => dropout::dropout(operands, mask),
        FusedOp::Linear => linear::linear(operands),
        &FusedOp::LinearActivation { activation, keep_sums } => {
            linear::linear_activation(operands, activation, keep_sums)
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
    operands: &[Option<&'a ReferenceTensor>],
    i: usize,
) -> Result<&'a ReferenceTensor> {
    let missing = || Error::InvalidArgument { op, reason: format!("operand {i} is missing") };
    operands.get(i).copied().flatten().ok_or_else(missing)
}

/// An operand that the op can do without.
fn optional<'a>(operands: &[Option<&'a ReferenceTensor>], i: usize) -> Option<&'a ReferenceTensor> {
    operands.get(i).copied().flatten()
}

fn check_float(op: &'static str, x: &ReferenceTensor) -> Result<()> {
    match x.dtype.is_float() {
        true => Ok(()),
        false => Err(Error::UnsupportedDType { op, dtype: x.dtype, shape: *x.shape() }),
    }
}

fn check_shape(op: &'static str, x: &ReferenceTensor, shape: &Shape) -> Result<()> {
    match x.shape() == shape {
        true => Ok(()),
        false => Err(Error::ShapeMismatch { op, lhs: *shape, rhs: *x.shape() }),
    }
}

/// The values row by row: a row is the last axis.
fn rows(op: &'static str, x: &ReferenceTensor) -> Result<Vec<Vec<f64>>> {
    let shape = x.shape();
    let Some(&n) = shape.dims().last() else {
        let reason = "there is no axis of rows";
        return Err(Error::InvalidShape { op, shape: *shape, reason });
    };
    let count: usize = shape.dims()[..shape.ndim() - 1].iter().product();
    let row = |i: usize| (0..n).map(|k| x.values[i * n + k].to_f64()).collect();
    Ok((0..count).map(row).collect())
}

/// The values of a tensor of any shape, row-major.
fn flat(x: &ReferenceTensor) -> Vec<f64> {
    x.values.iter().map(|value| value.to_f64()).collect()
}

/// The tensor of these values, row-major, rounded to the dtype.
fn tensor(
    op: &'static str,
    shape: Shape,
    dtype: DType,
    values: impl IntoIterator<Item = f64>,
) -> Result<ReferenceTensor> {
    let values: Vec<f64> = values.into_iter().collect();
    build(op, shape, dtype, |index| Ok(Scalar::Float(values[ravel(index, &shape)])))
}

/// The dtype of means and other statistics.
fn statistics_dtype(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

//! Kernels of fused ops.
//!
//! Kernels of rows run under the driver in `rows.rs`: operands that are not contiguous are copied, threads
//! share the rows, and 16-bit floats are computed in `f32`. Softmax and cross-entropy along an axis that is not
//! the last in memory run down columns, under the driver in `strips.rs`.

mod attention;
mod bias_activation;
mod conv;
mod cross_entropy;
mod dot;
mod elements;
mod linear;
mod norm;
mod pool;
mod softmax;

use super::CpuBackend;
use super::matmul::After;
use super::tensor::CpuTensor;
use super::working::Working;
use crate::backend::{Backend, Results, TensorData};
use crate::error::{Error, Result};
use crate::ops::{Activation, FusedOp};
use crate::runtime::parallel::Cost;
use crate::shape::Shape;
use cross_entropy::Logits;

/// Inlined, so that a caller that names the op links its kernels alone.
#[inline(always)]
pub(super) fn fused(op: &FusedOp<'_, CpuTensor>) -> Result<Results<CpuTensor>> {
    op.check()?;
    let name = op.name();
    let unsupported = || Error::Unsupported { op: name, backend: CpuBackend::NAME };
    let function = |activation: Activation| activation.op().ok_or_else(unsupported);
    match *op {
        FusedOp::Softmax { x, log } => softmax::forward(name, x, log),
        FusedOp::SoftmaxGrad { g, y, log } => softmax::backward(name, g, y, log),
        FusedOp::CrossEntropy { logits, targets, ignore_index, label_smoothing } => {
            let logits = Logits::new(name, logits, targets, ignore_index, label_smoothing)?;
            cross_entropy::forward(&logits)
        }
        FusedOp::CrossEntropyGrad {
            g,
            logits,
            targets,
            largest,
            rest,
            ignore_index,
            label_smoothing,
        } => {
            let logits = Logits::new(name, logits, targets, ignore_index, label_smoothing)?;
            cross_entropy::backward(&logits, g, [largest, rest])
        }
        FusedOp::LayerNorm { x, weight, bias, eps } => norm::layer(x, weight, bias, eps),
        FusedOp::LayerNormGrad { g, x, weight, reciprocal_deviation } => {
            norm::layer_grad(g, x, weight, reciprocal_deviation)
        }
        FusedOp::RmsNorm { x, weight, eps } => norm::rms(x, weight, eps),
        FusedOp::RmsNormGrad { g, x, weight, reciprocal_rms } => {
            norm::rms_grad(g, x, weight, reciprocal_rms)
        }
        FusedOp::BiasActivation { x, bias, activation } => {
            bias_activation::forward(x, bias, function(activation)?)
        }
        FusedOp::BiasActivationGrad { g, x, bias, activation } => {
            bias_activation::backward(g, x, bias, function(activation)?)
        }
        FusedOp::Dropout { x, mask } => elements::dropout(x, mask),
        FusedOp::SinCos { x } => elements::sincos(x),
        FusedOp::Attention { q, k, v, mask, parameters } => {
            attention::attention(name, attention::Operands { q, k, v, mask, parameters })
        }
        FusedOp::AttentionGrad { g, q, k, v, mask, largest, inverse, y, parameters } => {
            let operands = attention::Operands { q, k, v, mask, parameters };
            attention::attention_grad(name, operands, [g, y], [largest, inverse])
        }
        FusedOp::Linear { x, weight, bias, activation, keep_sums } => {
            let function = activation.map(function).transpose()?;
            linear::linear(name, x, weight, After { bias, function, keep_sums })
        }
        FusedOp::Conv { x, weight, bias, activation, geometry, groups } => {
            let function = activation.map(function).transpose()?;
            conv::forward(name, x, weight, (bias, function), (geometry, groups))
        }
        FusedOp::ConvTranspose { g, weight, geometry, groups } => {
            conv::transpose(name, g, weight, (geometry, groups))
        }
        FusedOp::ConvWeightGrad { g, x, geometry, groups } => {
            conv::weight_grad(name, x, g, (geometry, groups))
        }
        FusedOp::MaxPool { x, geometry, with_positions } => {
            pool::max(name, x, geometry, with_positions)
        }
        FusedOp::AvgPool { x, geometry, count_include_pad } => {
            pool::mean(name, x, geometry, count_include_pad)
        }
        FusedOp::AvgPoolGrad { g, geometry, count_include_pad } => {
            pool::mean_grad(name, g, geometry, count_include_pad)
        }
        FusedOp::Dot { a, b } => dot::dot(a, b),
    }
}

/// Number of columns: the extent of the last axis.
fn columns(x: &CpuTensor) -> usize {
    x.shape().dims().last().copied().unwrap_or(1)
}

/// Shape `[…, 1]` of one value per row of `x`, of shape `[…, n]`.
fn statistics_shape(x: &CpuTensor) -> Shape {
    x.shape().with_axis(x.shape().ndim().saturating_sub(1), Some(1))
}

/// Number of rows, and the cost of a row. `each` is the cost of an `f32`; an `f64` takes about twice as long.
fn work<T: Working>(x: &CpuTensor, each: usize) -> (usize, Cost) {
    (statistics_shape(x).numel(), cost_of::<T>(columns(x), each))
}

/// Cost of `count` elements; see [`work`].
fn cost_of<T: Working>(count: usize, each: usize) -> Cost {
    Cost(each).times(count.max(1) * size_of::<T::Wide>() / 4)
}

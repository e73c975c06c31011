//! `bias_activation` and its gradient, by the op table's formulas.

use smallvec::smallvec;

use super::super::{ReferenceTensor, check_dtype, check_same};
use super::{check_float, check_shape, flat, operand, rows, tensor};
use crate::backend::{Results, TensorData};
use crate::error::Result;
use crate::ops::{Activation, BinaryOp};
use crate::shape::Shape;

/// x + bias, row-major.
fn sums(op: &'static str, x: &ReferenceTensor, bias: &ReferenceTensor) -> Result<Vec<f64>> {
    check_float(op, x)?;
    check_dtype(op, bias, x.dtype)?;
    let rows = rows(op, x)?;
    let n = x.shape().dims().last().copied().unwrap_or(0);
    check_shape(op, bias, &Shape::from(n))?;
    let bias = flat(bias);
    Ok(rows.iter().flat_map(|row| row.iter().zip(&bias).map(|(x, b)| x + b)).collect())
}

pub(super) fn bias_activation(
    operands: &[Option<&ReferenceTensor>],
    activation: Activation,
) -> Result<Results<ReferenceTensor>> {
    let op = "bias_activation";
    let (x, bias) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    let y = sums(op, x, bias)?.into_iter().map(activation.op().reference());
    Ok(smallvec![tensor(op, *x.shape(), x.dtype, y)?])
}

pub(super) fn gradient(
    operands: &[Option<&ReferenceTensor>],
    activation: Activation,
) -> Result<Results<ReferenceTensor>> {
    let op = "bias_activation_grad";
    let (g, x) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    check_same(op, g, x)?;
    let f = activation.op().reference();
    let slope: fn(f64, f64) -> f64 = match activation {
        Activation::Relu => BinaryOp::ReluGrad.reference(),
        Activation::Gelu => BinaryOp::GeluGrad.reference(),
        Activation::GeluTanh => BinaryOp::GeluTanhGrad.reference(),
        Activation::Silu => BinaryOp::SiluGrad.reference(),
        Activation::Sigmoid => BinaryOp::SigmoidGrad.reference(),
        Activation::Tanh => BinaryOp::TanhGrad.reference(),
    };
    let from_output = matches!(activation, Activation::Sigmoid | Activation::Tanh);
    let z = sums(op, x, operand(op, operands, 2)?)?.into_iter();
    let dx = z.zip(flat(g)).map(|(z, g)| slope(g, if from_output { f(z) } else { z }));
    Ok(smallvec![tensor(op, *x.shape(), x.dtype, dx)?])
}

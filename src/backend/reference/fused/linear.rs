//! `linear` and `linear_activation`.

use smallvec::smallvec;

use super::super::{ReferenceTensor, build, check_dtype, exact};
use super::operand;
use crate::backend::{Results, TensorData};
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::ops::Activation;
use crate::shape::AxisSet;

pub(super) fn linear(operands: &[Option<&ReferenceTensor>]) -> Result<Results<ReferenceTensor>> {
    Ok(smallvec![sums("linear", operands, |z| z)?])
}

pub(super) fn linear_activation(
    operands: &[Option<&ReferenceTensor>],
    activation: Activation,
    keep_sums: bool,
) -> Result<Results<ReferenceTensor>> {
    let op = "linear_activation";
    let mut results = smallvec![sums(op, operands, activation.op().reference())?];
    if keep_sums {
        results.push(sums(op, operands, |z| z)?);
    }
    Ok(results)
}

/// Each element f of one exact sum of products with the bias.
fn sums(
    op: &'static str,
    operands: &[Option<&ReferenceTensor>],
    f: fn(f64) -> f64,
) -> Result<ReferenceTensor> {
    let (x, weight) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    let bias = operands.get(2).copied().flatten();
    check_dtype(op, x, weight.dtype)?;
    if !x.dtype.is_float() {
        return Err(Error::UnsupportedDType { op, dtype: x.dtype, shape: *x.shape() });
    }
    let rank = x.shape().ndim();
    let fits =
        rank > 0 && weight.shape().ndim() == 2 && x.shape().dim(rank - 1) == weight.shape().dim(1);
    if !fits {
        return Err(Error::ShapeMismatch { op, lhs: *x.shape(), rhs: *weight.shape() });
    }
    let outputs = weight.shape().dim(0);
    if let Some(bias) = bias {
        check_dtype(op, x, bias.dtype)?;
        if bias.shape().dims() != [outputs] {
            return Err(Error::ShapeMismatch { op, lhs: *weight.shape(), rhs: *bias.shape() });
        }
    }
    let shape = x.shape().with_axis(rank - 1, Some(outputs));
    build(op, shape, x.dtype, |index| {
        let (mut from_x, column) = (AxisSet::from(index), index[rank - 1]);
        let products = (0..weight.shape().dim(1)).map(|k| {
            from_x[rank - 1] = k;
            (x.at(&from_x).to_f64(), weight.at(&[column, k]).to_f64())
        });
        let bias = bias.map_or(0.0, |bias| bias.at(&[column]).to_f64());
        Ok(Scalar::Float(f(exact::dot(products) + bias)))
    })
}

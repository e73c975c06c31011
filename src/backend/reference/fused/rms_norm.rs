//! `rms_norm` and its gradients.

use smallvec::smallvec;

use super::super::{ReferenceTensor, check_dtype, check_same, exact};
use super::layer_norm::parameter;
use super::{check_float, check_shape, flat, operand, optional, rows, statistics_dtype, tensor};
use crate::backend::{Results, TensorData};
use crate::error::Result;
use crate::shape::Shape;

pub(super) fn rms_norm(
    operands: &[Option<&ReferenceTensor>],
    eps: f64,
) -> Result<Results<ReferenceTensor>> {
    let op = "rms_norm";
    let x = operand(op, operands, 0)?;
    check_float(op, x)?;
    let rows = rows(op, x)?;
    let weight = parameter(op, x, optional(operands, 1), 1.0)?;
    let (mut y, mut reciprocals) = (Vec::new(), Vec::new());
    for row in rows {
        let squares = exact::dot(row.iter().map(|&x| (x, x)));
        let rms = (squares / row.len() as f64 + eps).sqrt();
        y.extend(row.iter().zip(&weight).map(|(x, w)| x / rms * w));
        reciprocals.push(1.0 / rms);
    }
    let shape = x.shape().with_axis(x.shape().ndim() - 1, Some(1));
    Ok(smallvec![
        tensor(op, *x.shape(), x.dtype, y)?,
        tensor(op, shape, statistics_dtype(x.dtype), reciprocals)?
    ])
}

pub(super) fn gradients(operands: &[Option<&ReferenceTensor>]) -> Result<Results<ReferenceTensor>> {
    let op = "rms_norm_grad";
    let (g, x) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    check_float(op, x)?;
    check_same(op, g, x)?;
    let (g_rows, x_rows) = (rows(op, g)?, rows(op, x)?);
    let weight = parameter(op, x, optional(operands, 2), 1.0)?;
    let reciprocals = operand(op, operands, 3)?;
    check_dtype(op, reciprocals, statistics_dtype(x.dtype))?;
    let shape = x.shape().with_axis(x.shape().ndim() - 1, Some(1));
    check_shape(op, reciprocals, &shape)?;
    let r = flat(reciprocals);
    let n = weight.len();
    let mut dx = Vec::new();
    for (i, g) in g_rows.iter().enumerate() {
        let h: Vec<f64> = g.iter().zip(&weight).map(|(g, w)| g * w).collect();
        let along = exact::dot((0..n).map(|k| (h[k], x_rows[i][k] * r[i]))) / n as f64;
        dx.extend((0..n).map(|k| r[i] * (h[k] - x_rows[i][k] * r[i] * along)));
    }
    let count = g_rows.len();
    let dweight =
        (0..n).map(|k| exact::dot((0..count).map(|i| (g_rows[i][k], x_rows[i][k] * r[i]))));
    Ok(smallvec![
        tensor(op, *x.shape(), x.dtype, dx)?,
        tensor(op, Shape::from(n), x.dtype, dweight)?
    ])
}

//! `layer_norm` and its gradients.

use smallvec::smallvec;

use super::super::{ReferenceTensor, check_dtype, check_same, exact};
use super::{check_float, check_shape, flat, operand, optional, rows, statistics_dtype, tensor};
use crate::backend::{Results, TensorData};
use crate::error::Result;
use crate::shape::Shape;

/// A parameter's values, or `otherwise` for every column.
pub(super) fn parameter(
    op: &'static str,
    x: &ReferenceTensor,
    parameter: Option<&ReferenceTensor>,
    otherwise: f64,
) -> Result<Vec<f64>> {
    let n = x.shape().dims().last().copied().unwrap_or(0);
    let Some(parameter) = parameter else { return Ok(vec![otherwise; n]) };
    check_dtype(op, parameter, x.dtype)?;
    check_shape(op, parameter, &Shape::from(n))?;
    Ok(flat(parameter))
}

pub(super) fn layer_norm(
    operands: &[Option<&ReferenceTensor>],
    eps: f64,
) -> Result<Results<ReferenceTensor>> {
    let op = "layer_norm";
    let x = operand(op, operands, 0)?;
    check_float(op, x)?;
    let rows = rows(op, x)?;
    let weight = parameter(op, x, optional(operands, 1), 1.0)?;
    let bias = parameter(op, x, optional(operands, 2), 0.0)?;
    let (mut y, mut means, mut deviations) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let n = row.len() as f64;
        let mean = exact::sum(row.iter().copied()) / n;
        let variance = exact::sum(row.iter().map(|x| (x - mean) * (x - mean))) / n;
        let reciprocal = 1.0 / (variance + eps).sqrt();
        let columns = row.iter().zip(&weight).zip(&bias);
        y.extend(columns.map(|((x, w), b)| (x - mean) * reciprocal * w + b));
        means.push(mean);
        deviations.push(reciprocal);
    }
    let shape = x.shape().with_axis(x.shape().ndim() - 1, Some(1));
    let dtype = statistics_dtype(x.dtype);
    Ok(smallvec![
        tensor(op, *x.shape(), x.dtype, y)?,
        tensor(op, shape, dtype, means)?,
        tensor(op, shape, dtype, deviations)?
    ])
}

pub(super) fn gradients(operands: &[Option<&ReferenceTensor>]) -> Result<Results<ReferenceTensor>> {
    let op = "layer_norm_grad";
    let (g, x) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    check_float(op, x)?;
    check_same(op, g, x)?;
    let (g_rows, x_rows) = (rows(op, g)?, rows(op, x)?);
    let weight = parameter(op, x, optional(operands, 2), 1.0)?;
    let shape = x.shape().with_axis(x.shape().ndim() - 1, Some(1));
    let deviations = operand(op, operands, 3)?;
    check_dtype(op, deviations, statistics_dtype(x.dtype))?;
    check_shape(op, deviations, &shape)?;
    let deviations = flat(deviations);
    let mean = |row: &Vec<f64>| exact::sum(row.iter().copied()) / row.len() as f64;
    let means: Vec<f64> = x_rows.iter().map(mean).collect();
    let normal = |i: usize, k: usize| (x_rows[i][k] - means[i]) * deviations[i];
    let n = weight.len();
    let mut dx = Vec::new();
    for (i, g) in g_rows.iter().enumerate() {
        let h: Vec<f64> = g.iter().zip(&weight).map(|(g, w)| g * w).collect();
        let mean = exact::sum(h.iter().copied()) / n as f64;
        let along = exact::dot((0..n).map(|k| (h[k], normal(i, k)))) / n as f64;
        dx.extend((0..n).map(|k| deviations[i] * (h[k] - mean - normal(i, k) * along)));
    }
    let count = g_rows.len();
    let dweight = (0..n).map(|k| exact::dot((0..count).map(|i| (g_rows[i][k], normal(i, k)))));
    let dbias = (0..n).map(|k| exact::sum((0..count).map(|i| g_rows[i][k])));
    Ok(smallvec![
        tensor(op, *x.shape(), x.dtype, dx)?,
        tensor(op, Shape::from(n), x.dtype, dweight)?,
        tensor(op, Shape::from(n), x.dtype, dbias)?
    ])
}

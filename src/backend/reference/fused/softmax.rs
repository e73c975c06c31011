//! `softmax`, `log_softmax` and their gradients.

use smallvec::smallvec;

use super::super::{ReferenceTensor, check_same, exact};
use super::{check_float, operand, rows, tensor};
use crate::backend::{Results, TensorData};
use crate::error::Result;

/// The largest element of those that are numbers, and `Σ e^(x - it)`, which a NaN makes NaN.
pub(super) fn shifted_sum(row: &[f64]) -> (f64, f64) {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (largest, exact::sum(row.iter().map(|x| (x - largest).exp())))
}

pub(super) fn softmax(
    op: &'static str,
    operands: &[Option<&ReferenceTensor>],
    log: bool,
) -> Result<Results<ReferenceTensor>> {
    let x = operand(op, operands, 0)?;
    check_float(op, x)?;
    let mut y = Vec::new();
    for row in rows(op, x)? {
        let (largest, sum) = shifted_sum(&row);
        y.extend(row.iter().map(|x| match log {
            true => x - largest - sum.ln(),
            false => (x - largest).exp() / sum,
        }));
    }
    Ok(smallvec![tensor(op, *x.shape(), x.dtype, y)?])
}

pub(super) fn gradient(
    op: &'static str,
    operands: &[Option<&ReferenceTensor>],
    log: bool,
) -> Result<Results<ReferenceTensor>> {
    let (g, y) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    check_float(op, g)?;
    check_same(op, g, y)?;
    let mut dx = Vec::new();
    for (g, y) in rows(op, g)?.iter().zip(rows(op, y)?) {
        let pairs = || g.iter().copied().zip(y.iter().copied());
        match log {
            true => {
                let sum = exact::sum(g.iter().copied());
                dx.extend(pairs().map(|(g, y)| g - y.exp() * sum));
            }
            false => {
                let sum = exact::dot(pairs());
                dx.extend(pairs().map(|(g, y)| y * (g - sum)));
            }
        }
    }
    Ok(smallvec![tensor(op, *g.shape(), g.dtype, dx)?])
}

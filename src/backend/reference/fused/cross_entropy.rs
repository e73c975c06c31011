//! `cross_entropy` and its gradient.

use smallvec::smallvec;

use super::super::{ReferenceTensor, check_dtype, exact};
use super::softmax::shifted_sum;
use super::{check_float, check_shape, flat, operand, rows, statistics_dtype, tensor};
use crate::backend::{Results, TensorData};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// The class of each row; `None` where it is ignored.
fn classes(
    op: &'static str,
    logits: &ReferenceTensor,
    targets: &ReferenceTensor,
    ignore_index: Option<i64>,
) -> Result<Vec<Option<usize>>> {
    check_float(op, logits)?;
    check_dtype(op, targets, DType::I64)?;
    let (lhs, rhs) = (*logits.shape(), *targets.shape());
    if lhs.ndim() != 2 || rhs.dims() != [lhs.dim(0)] {
        return Err(Error::ShapeMismatch { op, lhs, rhs });
    }
    let class = |target: i64| match usize::try_from(target) {
        _ if ignore_index == Some(target) => Ok(None),
        Ok(class) if class < lhs.dim(1) => Ok(Some(class)),
        _ => Err(Error::IndexOutOfRange { op, index: target, axis: 1, shape: lhs }),
    };
    targets.values.iter().map(|target| class(target.to_i64())).collect()
}

pub(super) fn losses(
    operands: &[Option<&ReferenceTensor>],
    ignore_index: Option<i64>,
    smoothing: f64,
) -> Result<Results<ReferenceTensor>> {
    let op = "cross_entropy";
    let (logits, targets) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    let classes = classes(op, logits, targets, ignore_index)?;
    let (mut losses, mut maxima, mut rests) = (Vec::new(), Vec::new(), Vec::new());
    for (row, class) in rows(op, logits)?.iter().zip(classes) {
        let (largest, sum) = shifted_sum(row);
        maxima.push(largest);
        rests.push(sum - 1.0);
        losses.push(class.map_or(0.0, |class| {
            let mean = exact::sum(row.iter().copied()) / row.len() as f64;
            let below = |x: f64, share: f64| if share == 0.0 { 0.0 } else { share * (largest - x) };
            below(row[class], 1.0 - smoothing) + below(mean, smoothing) + sum.ln()
        }));
    }
    let (shape, dtype) = (*targets.shape(), logits.dtype);
    Ok(smallvec![
        tensor(op, shape, dtype, losses)?,
        tensor(op, shape, statistics_dtype(dtype), maxima)?,
        tensor(op, shape, statistics_dtype(dtype), rests)?
    ])
}

/// From the logits; what the forward pass saved is not looked at.
pub(super) fn gradient(
    operands: &[Option<&ReferenceTensor>],
    ignore_index: Option<i64>,
    smoothing: f64,
) -> Result<Results<ReferenceTensor>> {
    let op = "cross_entropy_grad";
    let (g, logits) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    let targets = operand(op, operands, 2)?;
    let classes = classes(op, logits, targets, ignore_index)?;
    check_dtype(op, g, logits.dtype)?;
    check_shape(op, g, targets.shape())?;
    for i in [3, 4] {
        let saved = operand(op, operands, i)?;
        check_dtype(op, saved, statistics_dtype(logits.dtype))?;
        check_shape(op, saved, targets.shape())?;
    }
    let mut dx = Vec::new();
    let rows = rows(op, logits)?;
    for ((row, class), g) in rows.iter().zip(classes).zip(flat(g)) {
        let (largest, sum) = shifted_sum(row);
        let spread = smoothing / row.len() as f64;
        for (k, x) in row.iter().enumerate() {
            let e = (x - largest).exp();
            let off = match class == Some(k) {
                // p − 1, by what the others add, keeps its places where p is near 1.
                true if smoothing < 0.5 => {
                    let others = row.iter().enumerate().filter(|&(j, _)| j != k);
                    smoothing - exact::sum(others.map(|(_, x)| (x - largest).exp())) / sum
                }
                true => e / sum - (1.0 - smoothing),
                false => e / sum,
            };
            dx.push(class.map_or(0.0, |_| g * (off - spread)));
        }
    }
    Ok(smallvec![tensor(op, *logits.shape(), logits.dtype, dx)?])
}

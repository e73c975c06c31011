//! `linear` and `linear_activation`: one product with a transposed weight, the bias added and the
//! function applied while its tiles are at hand.

use super::super::{CpuTensor, Results, matmul};
use super::operand;
use crate::backend::TensorData;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops::Activation;

pub(super) fn linear(
    op: &'static str,
    operands: &[Option<&CpuTensor>],
    activation: Option<Activation>,
    keep_sums: bool,
) -> Result<Results<CpuTensor>> {
    let (x, weight) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    let bias = operands.get(2).copied().flatten();
    let rank = x.shape().ndim();
    if rank == 0 || weight.shape().ndim() != 2 {
        return Err(Error::ShapeMismatch { op, lhs: *x.shape(), rhs: *weight.shape() });
    }
    let outputs = weight.shape().dim(0);
    for other in [Some(weight), bias].into_iter().flatten() {
        if other.dtype() != x.dtype() {
            let (lhs, rhs) = (x.dtype(), other.dtype());
            return Err(Error::DTypeMismatch { op, lhs, rhs, shape: *other.shape() });
        }
    }
    if let Some(bias) = bias.filter(|bias| bias.shape().dims() != [outputs]) {
        return Err(Error::ShapeMismatch { op, lhs: *weight.shape(), rhs: *bias.shape() });
    }
    let rows = match rank {
        1 => x.with_layout(x.layout().unsqueeze(op, 0)?),
        _ => x.clone(),
    };
    let lead = &rows.shape().dims()[..rows.shape().ndim() - 2];
    let columns = weight.layout().permute(op, &[1, 0])?;
    let shape = lead.iter().chain(columns.dims()).copied().collect();
    let columns = weight.with_layout(columns.broadcast_to(op, &shape)?);
    let after = matmul::After { bias, activation, keep_sums };
    let results = matmul::matmul_then(op, &rows, &columns, after)?;
    let layout = Layout::contiguous(x.shape().with_axis(rank - 1, Some(outputs)));
    Ok(results.into_iter().map(|y| y.with_layout(layout)).collect())
}

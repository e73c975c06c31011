//! `linear`: one product with a transposed weight, the bias added as its tiles are written.

use smallvec::smallvec;

use super::super::{CpuTensor, Results, matmul};
use super::operand;
use crate::backend::TensorData;
use crate::error::{Error, Result};
use crate::layout::Layout;

pub(super) fn linear(operands: &[Option<&CpuTensor>]) -> Result<Results<CpuTensor>> {
    let op = "linear";
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
    let y = matmul::matmul_bias(op, &rows, &columns, bias)?;
    let shape = x.shape().with_axis(rank - 1, Some(outputs));
    Ok(smallvec![y.with_layout(Layout::contiguous(shape))])
}

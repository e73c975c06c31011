//! `linear` and `linear_activation`: a product with a transposed weight. Bias and activation are applied to
//! tiles in the cache.

use super::super::matmul::{After, matmul_then};
use super::super::tensor::CpuTensor;
use crate::backend::{Results, TensorData};
use crate::error::Result;
use crate::layout::Layout;

pub(super) fn linear(
    op: &'static str,
    x: &CpuTensor,
    weight: &CpuTensor,
    after: After<'_>,
) -> Result<Results<CpuTensor>> {
    let rank = x.shape().ndim();
    let rows = match rank {
        0 | 1 => x.with_layout(x.layout().unsqueeze(op, 0)?),
        _ => x.clone(),
    };
    let lead = &rows.shape().dims()[..rank.max(2) - 2];
    let columns = weight.layout().permute(op, &[1, 0])?;
    let shape = lead.iter().chain(columns.dims()).copied().collect();
    let columns = weight.with_layout(columns.broadcast_to(op, &shape)?);
    let layout = x.shape().with_axis(rank.max(1) - 1, Some(columns.shape().dim(lead.len() + 1)));
    let results = matmul_then(op, &rows, &columns, after)?;
    let layout = Layout::contiguous(layout);
    Ok(results.into_iter().map(|y| y.with_layout(layout)).collect())
}

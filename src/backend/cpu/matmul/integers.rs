//! Products of `I64`: threads share the rows of the result.

use swath_kernels::integer_gemm;

use super::{Stack, extents};
use crate::backend::TensorData;
use crate::backend::cpu::{CpuTensor, Output, copy};
use crate::dtype::DType;
use crate::error::Result;
use crate::runtime::parallel::{Band, Cost, for_each_band};

/// Picoseconds of a multiplication and an addition.
const COST_PER_TERM: usize = 250;

/// `[…, m, k] × […, k, n]`, wrapping. A right side that is one matrix for the whole batch is not repeated.
pub(super) fn matmul(op: &'static str, a: &CpuTensor, b: &CpuTensor) -> Result<CpuTensor> {
    let (lead, [m, k, n]) = extents(op, a, b)?;
    let mut out = Output::new(op, &a.shape().with_axis(lead + 1, Some(n)), DType::I64)?;
    if out.numel() == 0 {
        return Ok(out.finish());
    }
    let batch: usize = a.shape().dims()[..lead].iter().product();
    let mut layout = *b.layout();
    let is_one = Stack::<i64>::new(b, &layout).is_one_matrix();
    if is_one {
        layout = (0..lead).fold(layout, |layout, _| layout.without_axis(0));
    }
    let (a, b) = (copy::contiguous(op, a)?, copy::contiguous(op, &b.with_layout(layout))?);
    let (a, b) = (a.run::<i64>(), b.run::<i64>());
    let (height, step) = if is_one { (batch * m, 0) } else { (m, k * n) };
    let cost = Cost(COST_PER_TERM).times(k.saturating_mul(n));
    for_each_band(batch * m, cost, Band::new(out.elements::<i64>(), n), |rows, mut c| {
        c.fill(0);
        let mut first = rows.start;
        while first < rows.end {
            let (matrix, count) =
                (first / height, rows.end.min((first / height + 1) * height) - first);
            let (here, after) = c.split_at_mut(count * n);
            integer_gemm(
                &a[first * k..][..count * k],
                &b[matrix * step..][..k * n],
                [count, k, n],
                here,
            );
            (c, first) = (after, first + count);
        }
    });
    Ok(out.finish())
}

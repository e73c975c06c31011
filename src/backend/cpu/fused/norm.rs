//! What layer norm and rms norm share: their parameters, and sums over rows.
//!
//! Gradients of parameters are sums over rows: chunks of rows, cut by the shape alone, are summed row
//! after row in `f64`, and the chunks' sums are added on the tree of
//! [`sum_columns`](swath_kernels::sum_columns). A thread takes whole chunks.

use std::ops::Range;

use swath_kernels::sum_columns;

use super::super::memory::Buffer;
use super::super::parallel::{Band, Cost, for_each_band, for_each_chunk_mut};
use super::super::{CpuTensor, Output, cast, copy};
use super::check_dtype;
use super::working::Working;
use crate::backend::TensorData;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Rows that are summed one after the other, at least, and chunks of rows, at most.
const CHUNK_ROWS: usize = 16;
const MOST_CHUNKS: usize = 64;

/// Columns of the chunks' sums that a thread adds at a time, and the time for one of them.
const FOLDED_COLUMNS: usize = 64;
const FOLD_COST: usize = 200;

/// A parameter `[n]`, row-major and in the type of the computation.
pub(super) fn parameter<T: Working>(
    op: &'static str,
    x: &CpuTensor,
    cols: usize,
    parameter: Option<&CpuTensor>,
) -> Result<Option<CpuTensor>> {
    let Some(parameter) = parameter else { return Ok(None) };
    check_dtype(op, parameter, x.dtype())?;
    if parameter.shape().dims() != [cols] {
        return Err(Error::ShapeMismatch { op, lhs: *x.shape(), rhs: *parameter.shape() });
    }
    let parameter = copy::contiguous(op, parameter)?;
    cast::cast(&parameter, <T::Wide as Element>::DTYPE).map(Some)
}

/// `[…, 1]` for rows `[…, n]`.
pub(super) fn statistics_shape(x: &CpuTensor) -> Shape {
    x.shape().with_axis(x.shape().ndim() - 1, Some(1))
}

/// Calls `f(rows, their part of dx, totals)` for every chunk of `[rows, cols]`, on threads, and gives
/// the totals `[cols]`, to which each call adds, summed over the chunks. `cost` is that of an element.
pub(super) fn sum_over_rows<T: Working, const K: usize>(
    op: &'static str,
    [rows, cols]: [usize; 2],
    cost: Cost,
    dx: &mut [T],
    f: impl Fn(Range<usize>, &mut [T], [&mut [f64]; K]) + Sync,
) -> Result<[CpuTensor; K]> {
    let chunk = rows.div_ceil(MOST_CHUNKS).max(CHUNK_ROWS);
    let chunks = rows.div_ceil(chunk);
    let width = K * cols;
    let mut sums = Buffer::scratch(chunks * width * size_of::<f64>());
    let sums = &mut sums.as_slice_mut::<f64>()[..chunks * width];
    let bands = (Band::new(dx, chunk * cols), Band::new(&mut *sums, width));
    for_each_band(chunks, cost.times(chunk * cols.max(1)), bands, |range, (dx, sums)| {
        for (i, chunk_index) in range.enumerate() {
            let totals = &mut sums[i * width..][..width];
            totals.fill(0.0);
            let mut totals = totals.chunks_exact_mut(cols.max(1));
            let totals = std::array::from_fn(|_| totals.next().unwrap_or_default());
            let first = chunk_index * chunk;
            let count = chunk.min(rows - first);
            f(first..first + count, &mut dx[i * chunk * cols..][..count * cols], totals);
        }
    });

    let mut total = Buffer::scratch(width * size_of::<f64>());
    let total = &mut total.as_slice_mut::<f64>()[..width];
    if chunks == 0 {
        total.fill(0.0);
    } else {
        let cost = Cost(FOLD_COST).times(chunks);
        for_each_chunk_mut(total, FOLDED_COLUMNS, cost, &|first, total| {
            let sums = &sums[first * FOLDED_COLUMNS..];
            sum_columns(&sums[..(chunks - 1) * width + total.len()], chunks, width, total);
        });
    }
    let mut results = [const { None }; K];
    for (k, result) in results.iter_mut().enumerate() {
        let mut out = Output::new(op, &Shape::from(cols), T::DTYPE)?;
        let rounded = out.elements::<T>().iter_mut().zip(&total[k * cols..]);
        rounded.for_each(|(y, &sum)| *y = T::from_f64(sum));
        *result = Some(out.finish());
    }
    Ok(results.map(|result| result.expect("written above")))
}

//! Layer norm and RMS norm of rows, and their gradients.
//!
//! Gradients of parameters are sums over rows. Chunks of rows, whose size depends on the shape alone, are
//! summed row by row in `f64`, and the sums of the chunks are added in the tree of
//! [`reduce_columns`]. Threads share whole chunks.

use std::ops::Range;

use swath_kernels::reduce::Sum;
use swath_kernels::{
    LayerNormGradRows, LayerNormRows, RmsNormGradRows, RmsNormRows, layer_norm_grad_rows,
    layer_norm_rows, reduce_columns, rms_norm_grad_rows, rms_norm_rows,
};

use super::super::rows::{compute, in_groups};
use super::super::tensor::{CpuTensor, Output};
use super::super::working::{Working, for_float};
use super::super::{cast, copy};
use super::{columns, statistics_shape, work};
use crate::backend::{Results, TensorData};
use crate::error::Result;
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{Band, Cost, for_each_band, for_each_chunk_mut};
use crate::shape::Shape;

/// Picoseconds per `f32`.
const LAYER_COST: usize = 300;
const LAYER_GRAD_COST: usize = 500;
const RMS_COST: usize = 250;
const RMS_GRAD_COST: usize = 450;

/// Minimum number of rows per chunk, and maximum number of chunks.
const CHUNK_ROWS: usize = 16;
const MAX_CHUNKS: usize = 64;

/// Columns of the chunks' sums per unit of work, and picoseconds per element.
const FOLDED_COLUMNS: usize = 64;
const FOLD_COST: usize = 200;

pub(super) fn layer(
    x: &CpuTensor,
    weight: Option<&CpuTensor>,
    bias: Option<&CpuTensor>,
    eps: f64,
) -> Result<Results<CpuTensor>> {
    let (op, cols, shape) = ("layer_norm", columns(x), statistics_shape(x));
    let outputs = [(x.shape(), cols)];
    let (weight, bias) = (parameter(op, weight)?, parameter(op, bias)?);
    for_float!(op, x, T => {
        let [weight, bias] = [&weight, &bias].map(|p| p.as_ref().map(CpuTensor::run));
        let work = work::<T>(x, LAYER_COST);
        compute::<T, _, _, _>(op, work, [(x, cols)], outputs, [&shape; 2], |_, [x], [y], [m, d]| {
            layer_norm_rows(LayerNormRows { x, weight, bias, eps }, y, m, d);
        })
    })
}

pub(super) fn rms(
    x: &CpuTensor,
    weight: Option<&CpuTensor>,
    eps: f64,
) -> Result<Results<CpuTensor>> {
    let (op, cols, shape) = ("rms_norm", columns(x), statistics_shape(x));
    let (weight, outputs) = (parameter(op, weight)?, [(x.shape(), cols)]);
    for_float!(op, x, T => {
        let weight = weight.as_ref().map(CpuTensor::run);
        let work = work::<T>(x, RMS_COST);
        compute::<T, _, _, _>(op, work, [(x, cols)], outputs, [&shape], |_, [x], [y], [r]| {
            rms_norm_rows(RmsNormRows { x, weight, eps }, y, r);
        })
    })
}

pub(super) fn layer_grad(
    g: &CpuTensor,
    x: &CpuTensor,
    weight: Option<&CpuTensor>,
    deviation: &CpuTensor,
) -> Result<Results<CpuTensor>> {
    let op = "layer_norm_grad";
    let (weight, deviation) = (parameter(op, weight)?, copy::contiguous(op, deviation)?);
    for_float!(op, x, T => {
        let (weight, deviation) = (weight.as_ref().map(CpuTensor::run), deviation.run());
        gradients::<T, 2>(op, LAYER_GRAD_COST, [g, x], |rows, [g, x], dx, [dweight, dbias]| {
            let reciprocal_deviation = &deviation[rows];
            let rows = LayerNormGradRows { g, x, weight, reciprocal_deviation };
            layer_norm_grad_rows(rows, dx, dweight, dbias);
        })
    })
}

pub(super) fn rms_grad(
    g: &CpuTensor,
    x: &CpuTensor,
    weight: Option<&CpuTensor>,
    reciprocal: &CpuTensor,
) -> Result<Results<CpuTensor>> {
    let op = "rms_norm_grad";
    let (weight, reciprocal) = (parameter(op, weight)?, copy::contiguous(op, reciprocal)?);
    for_float!(op, x, T => {
        let (weight, reciprocal) = (weight.as_ref().map(CpuTensor::run), reciprocal.run());
        gradients::<T, 1>(op, RMS_GRAD_COST, [g, x], |rows, [g, x], dx, [dweight]| {
            let rows = RmsNormGradRows { g, x, weight, reciprocal_rms: &reciprocal[rows] };
            rms_norm_grad_rows(rows, dx, dweight);
        })
    })
}

/// Converts a parameter `[n]` to a contiguous one of the type of the computation.
fn parameter(op: &'static str, parameter: Option<&CpuTensor>) -> Result<Option<CpuTensor>> {
    let widen = |p| cast::cast(&copy::contiguous(op, p)?, p.dtype().at_least_f32());
    parameter.map(widen).transpose()
}

/// Calls `kernel(rows, [g, x], dx, totals)` for all rows, which threads share. The kernel accumulates into
/// `totals`, `K` arrays `[n]`. Returns dx and the totals of all rows. `each` is the cost of an `f32`.
fn gradients<T: Working, const K: usize>(
    op: &'static str,
    each: usize,
    operands: [&CpuTensor; 2],
    kernel: impl Fn(Range<usize>, [&[T::Wide]; 2], &mut [T::Wide], [&mut [f64]; K]) + Sync,
) -> Result<Results<CpuTensor>> {
    let [_, x] = operands;
    let (cols, (rows, cost)) = (columns(x), work::<T>(x, each));
    let mut dx = Output::new(op, x.shape(), T::DTYPE)?;
    let [g, x] = operands.map(|x| copy::contiguous(op, x));
    let (g, x) = (g?, x?);
    let inputs = [(g.run::<T>(), cols), (x.run(), cols)];
    let chunk = rows.div_ceil(MAX_CHUNKS).max(CHUNK_ROWS);
    let chunks = rows.div_ceil(chunk);
    let width = K * cols;
    let mut sums = Buffer::scratch(chunks * width * size_of::<f64>());
    let sums = &mut sums.as_slice_mut::<f64>()[..chunks * width];
    let bands = (Band::new(dx.elements(), chunk * cols), Band::new(&mut *sums, width));
    for_each_band(chunks, cost.times(chunk), bands, |range, (dx, sums)| {
        for (i, chunk_index) in range.enumerate() {
            let totals = &mut sums[i * width..][..width];
            totals.fill(0.0);
            let mut totals = totals.chunks_exact_mut(cols.max(1));
            let mut totals: [_; K] = std::array::from_fn(|_| totals.next().unwrap_or_default());
            let rows = chunk_index * chunk..rows.min((chunk_index + 1) * chunk);
            let dx = (&mut dx[i * chunk * cols..][..rows.len() * cols], cols);
            in_groups(rows, inputs, [dx], |rows, inputs, [dx]| {
                kernel(rows, inputs, dx, totals.each_mut().map(|total| &mut **total));
            });
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
            let sums = &sums[..(chunks - 1) * width + total.len()];
            reduce_columns(&Sum, sums, chunks, width, total);
        });
    }
    let mut results = Results::from_iter([dx.finish()]);
    for k in 0..K {
        let mut out = Output::new(op, &Shape::from(cols), T::DTYPE)?;
        let rounded = out.elements::<T>().iter_mut().zip(&total[k * cols..]);
        rounded.for_each(|(y, &sum)| *y = T::from_f64(sum));
        results.push(out.finish());
    }
    Ok(results)
}

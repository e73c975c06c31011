//! Layer norm of rows and its three gradients.
//!
//! Gradients of weight and bias are sums over rows: chunks of rows, cut by the shape alone, are summed
//! row after row in `f64`, and the chunks' sums are added on the tree of
//! [`sum_columns`](swath_kernels::sum_columns). A thread takes whole chunks.

use smallvec::smallvec;
use swath_kernels::{
    LayerNormGradRows, LayerNormRows, layer_norm_grad_rows, layer_norm_rows, sum_columns,
};

use super::super::memory::Buffer;
use super::super::parallel::{Band, Cost, for_each_band};
use super::super::{CpuTensor, Output, Results, copy};
use super::working::{Working, for_each_group, for_float};
use super::{check_dtype, check_shape, columns, operand, optional};
use crate::backend::TensorData;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Of an `f32`; an `f64` takes about twice as long.
const FORWARD_COST: usize = 300;
const BACKWARD_COST: usize = 500;

/// Rows that are summed one after the other, at least, and chunks of rows, at most.
const CHUNK_ROWS: usize = 16;
const MOST_CHUNKS: usize = 64;

/// A parameter `[n]`, row-major and in the type of the computation.
fn parameter<T: Working>(
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
    super::super::cast::cast(&parameter, <T::Wide as Element>::DTYPE).map(Some)
}

fn statistics_shape(x: &CpuTensor) -> Shape {
    x.shape().with_axis(x.shape().ndim() - 1, Some(1))
}

pub(super) fn forward(operands: &[Option<&CpuTensor>], eps: f64) -> Result<Results<CpuTensor>> {
    let x = operand("layer_norm", operands, 0)?;
    for_float!("layer_norm", x, T => rows::<T>(operands, x, eps))
}

fn rows<T: Working>(
    operands: &[Option<&CpuTensor>],
    x: &CpuTensor,
    eps: f64,
) -> Result<Results<CpuTensor>> {
    let op = "layer_norm";
    let cols = columns(op, x)?;
    let weight = parameter::<T>(op, x, cols, optional(operands, 1))?;
    let bias = parameter::<T>(op, x, cols, optional(operands, 2))?;
    let [weight, bias] = [&weight, &bias].map(|p| p.as_ref().map(|p| p.run::<T::Wide>()));
    let shape = statistics_shape(x);
    let wide = <T::Wide as Element>::DTYPE;
    let mut y = Output::new(op, x.shape(), x.dtype())?;
    let (mut mean, mut deviation) =
        (Output::new(op, &shape, wide)?, Output::new(op, &shape, wide)?);
    let x = copy::contiguous(op, x)?;
    let x = x.run::<T>();
    let cost = Cost(FORWARD_COST).times(cols.max(1) * size_of::<T::Wide>() / 4);
    let statistics = [&mut mean, &mut deviation].map(|s| Band::new(s.elements::<T::Wide>(), 1));
    let bands = (Band::new(y.elements::<T>(), cols), statistics);
    for_each_band(shape.numel(), cost, bands, |range, (y, [mean, deviation])| {
        let x = &x[range.start * cols..range.end * cols];
        for_each_group::<T, 2>(range.len(), cols, |group, [x_wide, y_wide]| {
            let span = group.start * cols..group.end * cols;
            let x = T::read(&x[span.clone()], x_wide);
            let rows = LayerNormRows { x, weight, bias, eps };
            let (mean, deviation) = (&mut mean[group.clone()], &mut deviation[group]);
            T::write(&mut y[span], y_wide, |y| layer_norm_rows(rows, y, mean, deviation));
        });
    });
    Ok(smallvec![y.finish(), mean.finish(), deviation.finish()])
}

pub(super) fn backward(operands: &[Option<&CpuTensor>]) -> Result<Results<CpuTensor>> {
    let x = operand("layer_norm_grad", operands, 1)?;
    for_float!("layer_norm_grad", x, T => gradients::<T>(operands, x))
}

fn gradients<T: Working>(
    operands: &[Option<&CpuTensor>],
    x: &CpuTensor,
) -> Result<Results<CpuTensor>> {
    let op = "layer_norm_grad";
    let cols = columns(op, x)?;
    let g = operand(op, operands, 0)?;
    check_dtype(op, g, x.dtype())?;
    check_shape(op, g, x.shape())?;
    let weight = parameter::<T>(op, x, cols, optional(operands, 2))?;
    let weight = weight.as_ref().map(|weight| weight.run::<T::Wide>());
    let shape = statistics_shape(x);
    let (mean, deviation) = (operand(op, operands, 3)?, operand(op, operands, 4)?);
    for statistic in [mean, deviation] {
        check_dtype(op, statistic, <T::Wide as Element>::DTYPE)?;
        check_shape(op, statistic, &shape)?;
    }
    let mut dx = Output::new(op, x.shape(), x.dtype())?;
    let (g, x) = (copy::contiguous(op, g)?, copy::contiguous(op, x)?);
    let (mean, deviation) = (copy::contiguous(op, mean)?, copy::contiguous(op, deviation)?);
    let (g, x) = (g.run::<T>(), x.run::<T>());
    let (mean, deviation) = (mean.run::<T::Wide>(), deviation.run::<T::Wide>());

    let rows = shape.numel();
    let chunk = rows.div_ceil(MOST_CHUNKS).max(CHUNK_ROWS);
    let chunks = rows.div_ceil(chunk);
    let mut sums = Buffer::scratch(2 * chunks * cols * size_of::<f64>());
    let sums = &mut sums.as_slice_mut::<f64>()[..2 * chunks * cols];
    sums.fill(0.0);
    let cost = Cost(BACKWARD_COST).times(chunk * cols.max(1) * size_of::<T::Wide>() / 4);
    let bands = (Band::new(dx.elements::<T>(), chunk * cols), Band::new(&mut *sums, 2 * cols));
    for_each_band(chunks, cost, bands, |range, (dx, sums)| {
        for (i, chunk_index) in range.enumerate() {
            let (dweight, dbias) = sums[i * 2 * cols..][..2 * cols].split_at_mut(cols);
            let first = chunk_index * chunk;
            let count = chunk.min(rows - first);
            for_each_group::<T, 3>(count, cols, |group, [g_wide, x_wide, dx_wide]| {
                let here = first + group.start..first + group.end;
                let span = here.start * cols..here.end * cols;
                let rows = LayerNormGradRows {
                    g: T::read(&g[span.clone()], g_wide),
                    x: T::read(&x[span], x_wide),
                    weight,
                    mean: &mean[here.clone()],
                    reciprocal_deviation: &deviation[here],
                };
                let at = i * chunk * cols;
                let dx = &mut dx[at + group.start * cols..at + group.end * cols];
                T::write(dx, dx_wide, |dx| layer_norm_grad_rows(rows, dx, dweight, dbias));
            });
        }
    });

    let mut total = Buffer::scratch(2 * cols * size_of::<f64>());
    let total = &mut total.as_slice_mut::<f64>()[..2 * cols];
    sum_columns(sums, chunks, 2 * cols, total);
    let parameters = [&total[..cols], &total[cols..]].map(|sums| {
        let mut out = Output::new(op, &Shape::from(cols), T::DTYPE)?;
        let rounded = out.elements::<T>().iter_mut().zip(sums);
        rounded.for_each(|(y, &sum)| *y = T::from_f64(sum));
        Ok(out.finish())
    });
    let [dweight, dbias] = parameters;
    Ok(smallvec![dx.finish(), dweight?, dbias?])
}

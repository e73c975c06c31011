//! Softmax and log-softmax of rows, and their gradients.

use smallvec::smallvec;
use swath_kernels::{log_softmax_grad_rows, log_softmax_rows, softmax_grad_rows, softmax_rows};

use super::super::parallel::{Band, Cost, for_each_band};
use super::super::{CpuTensor, Output, Results, copy};
use super::working::{Working, for_each_group, for_float};
use super::{check_dtype, check_shape, columns, operand};
use crate::backend::TensorData;
use crate::error::Result;

/// Of an `f32`; an `f64` takes about twice as long.
const FORWARD_COST: usize = 400;
const BACKWARD_COST: usize = 230;

pub(super) fn forward(
    op: &'static str,
    operands: &[Option<&CpuTensor>],
    log: bool,
) -> Result<Results<CpuTensor>> {
    let x = operand(op, operands, 0)?;
    for_float!(op, x, T => rows::<T>(op, x, log))
}

fn rows<T: Working>(op: &'static str, x: &CpuTensor, log: bool) -> Result<Results<CpuTensor>> {
    let cols = columns(op, x)?;
    let mut out = Output::new(op, x.shape(), x.dtype())?;
    let x = copy::contiguous(op, x)?;
    let x = x.run::<T>();
    let rows = x.len().checked_div(cols).unwrap_or(0);
    let cost = Cost(FORWARD_COST).times(cols * size_of::<T::Wide>() / 4);
    for_each_band(rows, cost, Band::new(out.elements::<T>(), cols), |range, y| {
        let x = &x[range.start * cols..range.end * cols];
        for_each_group::<T, 2>(range.len(), cols, |rows, [x_wide, y_wide]| {
            let span = rows.start * cols..rows.end * cols;
            let x = T::read(&x[span.clone()], x_wide);
            T::write(&mut y[span], y_wide, |y| match log {
                true => log_softmax_rows(x, cols, y),
                false => softmax_rows(x, cols, y),
            });
        });
    });
    Ok(smallvec![out.finish()])
}

pub(super) fn backward(
    op: &'static str,
    operands: &[Option<&CpuTensor>],
    log: bool,
) -> Result<Results<CpuTensor>> {
    let (g, y) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    check_dtype(op, y, g.dtype())?;
    check_shape(op, y, g.shape())?;
    for_float!(op, g, T => gradient::<T>(op, g, y, log))
}

fn gradient<T: Working>(
    op: &'static str,
    g: &CpuTensor,
    y: &CpuTensor,
    log: bool,
) -> Result<Results<CpuTensor>> {
    let cols = columns(op, g)?;
    let mut out = Output::new(op, g.shape(), g.dtype())?;
    let (g, y) = (copy::contiguous(op, g)?, copy::contiguous(op, y)?);
    let (g, y) = (g.run::<T>(), y.run::<T>());
    let rows = g.len().checked_div(cols).unwrap_or(0);
    let cost = if log { FORWARD_COST } else { BACKWARD_COST };
    let cost = Cost(cost).times(cols * size_of::<T::Wide>() / 4);
    for_each_band(rows, cost, Band::new(out.elements::<T>(), cols), |range, dx| {
        let span = range.start * cols..range.end * cols;
        let (g, y) = (&g[span.clone()], &y[span]);
        for_each_group::<T, 3>(range.len(), cols, |rows, [g_wide, y_wide, dx_wide]| {
            let span = rows.start * cols..rows.end * cols;
            let (g, y) = (T::read(&g[span.clone()], g_wide), T::read(&y[span.clone()], y_wide));
            T::write(&mut dx[span], dx_wide, |dx| match log {
                true => log_softmax_grad_rows(g, y, cols, dx),
                false => softmax_grad_rows(g, y, cols, dx),
            });
        });
    });
    Ok(smallvec![out.finish()])
}

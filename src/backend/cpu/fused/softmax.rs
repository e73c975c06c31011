//! Softmax and log-softmax of rows or columns, and their gradients.

use swath_kernels as kernels;

use super::super::rows::compute;
use super::super::strips::{self, Planes};
use super::super::tensor::CpuTensor;
use super::super::working::for_float;
use super::{columns, cost_of, work};
use crate::backend::{Results, TensorData};
use crate::error::Result;

/// Picoseconds per `f32`.
const FORWARD_COST: usize = 400;
const BACKWARD_COST: usize = 230;

pub(super) fn forward(op: &'static str, x: &CpuTensor, log: bool) -> Result<Results<CpuTensor>> {
    let cols = columns(x);
    if let Some(planes) = Planes::of(x) {
        let x = planes.in_memory(op, x)?;
        let (inputs, outputs) = ([(&x, cols)], [(x.shape(), cols)]);
        let mut results = for_float!(op, x, T => {
            let work = (&planes, cost_of::<T>(cols, FORWARD_COST));
            strips::compute::<T, _, _, _>(op, work, inputs, outputs, [], |_, [x], [y], []| match log {
                true => kernels::log_softmax_columns(x, y),
                false => kernels::softmax_columns(x, y),
            })
        })?;
        results[0] = planes.logical(op, &results[0])?;
        return Ok(results);
    }
    let outputs = [(x.shape(), cols)];
    for_float!(op, x, T => {
        let work = work::<T>(x, FORWARD_COST);
        compute::<T, _, _, _>(op, work, [(x, cols)], outputs, [], |_, [x], [y], []| match log {
            true => kernels::log_softmax_rows(x, cols, y),
            false => kernels::softmax_rows(x, cols, y),
        })
    })
}

pub(super) fn backward(
    op: &'static str,
    g: &CpuTensor,
    y: &CpuTensor,
    log: bool,
) -> Result<Results<CpuTensor>> {
    let cols = columns(y);
    let cost = if log { FORWARD_COST } else { BACKWARD_COST };
    if let Some(planes) = Planes::of(y) {
        let [g, y] = [planes.in_memory(op, g)?, planes.in_memory(op, y)?];
        let (inputs, outputs) = ([(&g, cols), (&y, cols)], [(y.shape(), cols)]);
        let mut results = for_float!(op, y, T => {
            let work = (&planes, cost_of::<T>(cols, cost));
            strips::compute::<T, _, _, _>(op, work, inputs, outputs, [], |_, [g, y], [dx], []| match log {
                true => kernels::log_softmax_grad_columns(g, y, dx),
                false => kernels::softmax_grad_columns(g, y, dx),
            })
        })?;
        results[0] = planes.logical(op, &results[0])?;
        return Ok(results);
    }
    let (inputs, outputs) = ([(g, cols), (y, cols)], [(y.shape(), cols)]);
    for_float!(op, y, T => {
        let work = work::<T>(y, cost);
        compute::<T, _, _, _>(op, work, inputs, outputs, [], |_, [g, y], [dx], []| match log {
            true => kernels::log_softmax_grad_rows(g, y, cols, dx),
            false => kernels::softmax_grad_rows(g, y, cols, dx),
        })
    })
}

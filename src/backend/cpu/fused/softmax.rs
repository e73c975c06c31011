//! Softmax and log-softmax of rows, and their gradients.

use swath_kernels::{log_softmax_grad_rows, log_softmax_rows, softmax_grad_rows, softmax_rows};

use super::super::rows::compute;
use super::super::working::for_float;
use super::super::{CpuTensor, Results};
use super::{columns, work};
use crate::backend::TensorData;
use crate::error::Result;

/// Picoseconds per `f32`.
const FORWARD_COST: usize = 400;
const BACKWARD_COST: usize = 230;

pub(super) fn forward(op: &'static str, x: &CpuTensor, log: bool) -> Result<Results<CpuTensor>> {
    let cols = columns(x);
    let outputs = [(x.shape(), cols)];
    for_float!(op, x, T => {
        let work = work::<T>(x, FORWARD_COST);
        compute::<T, _, _, _>(op, work, [(x, cols)], outputs, [], |_, [x], [y], []| match log {
            true => log_softmax_rows(x, cols, y),
            false => softmax_rows(x, cols, y),
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
    let (inputs, outputs) = ([(g, cols), (y, cols)], [(y.shape(), cols)]);
    for_float!(op, y, T => {
        let work = work::<T>(y, if log { FORWARD_COST } else { BACKWARD_COST });
        compute::<T, _, _, _>(op, work, inputs, outputs, [], |_, [g, y], [dx], []| match log {
            true => log_softmax_grad_rows(g, y, cols, dx),
            false => softmax_grad_rows(g, y, cols, dx),
        })
    })
}

//! Gather and scatter: checks, faults and repeated dispatches.

use std::sync::Arc;

use super::device::Fault;
use super::driver::Driver;
use super::plan::elementwise::Function;
use super::plan::index::scatter_add;
use super::tensor::{Gpu, GpuTensor, contiguous, elementwise, run};
use crate::backend::{Arg, Backend, TensorData};
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Fails if an axis of extent 0 is indexed. No kernel runs then that could report it.
pub(super) fn check_entries<D: Driver>(
    op: &'static str,
    x: &GpuTensor<D>,
    axis: usize,
    index: &GpuTensor<D>,
) -> Result<()> {
    if x.shape().dim(axis) > 0 || index.numel() == 0 {
        return Ok(());
    }
    let first = Gpu::<D>::to_host(index)?.get(0).map_or(0, Scalar::to_i64);
    Err(Error::IndexOutOfRange { op, index: first, axis, shape: *x.shape() })
}

/// The fault of an index outside the axis.
pub(super) fn fault_of<D: Driver>(shape: &Shape, axis: usize, index: &GpuTensor<D>) -> Fault<D> {
    Fault::Index { index: (Arc::clone(&index.0.storage), index.0.layout), axis, shape: *shape }
}

/// Returns a copy of `x` with `source` added at the indices.
pub(super) fn add_at<D: Driver>(
    x: &GpuTensor<D>,
    axis: usize,
    index: &GpuTensor<D>,
    source: &GpuTensor<D>,
) -> Result<GpuTensor<D>> {
    let op = "scatter_add";
    let store = x.store(op)?;
    let out = elementwise(op, Function::Copy(store), x.0.dtype, &[&Arg::Ref(x)])?;
    if source.numel() == 0 {
        return Ok(out);
    }
    let (mut index, mut source) = (index.clone(), source.clone());
    let plans = loop {
        let are_contiguous = index.0.layout.is_contiguous() && source.0.layout.is_contiguous();
        match scatter_add(store, x.shape(), axis, &index.0.layout, &source.0.layout) {
            Err(Error::TooManyAxes { .. }) if !are_contiguous => {
                (index, source) = (contiguous(op, &index)?, contiguous(op, &source)?);
            }
            plans => break plans?,
        }
    };
    for plan in plans {
        let fault = fault_of(x.shape(), axis, &index);
        run(op, plan, &[&source, &index], &[&out], Some(fault))?;
    }
    Ok(out)
}

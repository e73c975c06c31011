//! Convolutions and poolings. Operands that are not contiguous are copied.

use smallvec::SmallVec;

use super::driver::Driver;
use super::parts::in_parts;
use super::plan::conv::{Channels, Conv, Kind};
use super::plan::pool::Pool;
use super::tensor::{GpuTensor, from_start, run};
use crate::backend::windows::images_like;
use crate::backend::{Results, TensorData};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::Geometry;
use crate::shape::Shape;

/// Runs a convolution with a result of this shape.
fn convolve<D: Driver>(
    op: &'static str,
    kind: Kind,
    operands: [&GpuTensor<D>; 2],
    bias: Option<&GpuTensor<D>>,
    channels: Channels,
    geometry: &Geometry,
    shape: &Shape,
) -> Result<Results<GpuTensor<D>>> {
    let [a, b] = [from_start(op, operands[0])?, from_start(op, operands[1])?];
    let bias = bias.map(|bias| from_start(op, bias)).transpose()?;
    let kind_of = (kind, a.store(op)?);
    let mut bound: SmallVec<[&GpuTensor<D>; 3]> = SmallVec::from_slice(&[&a, &b]);
    if let Kind::Forward(_) = kind {
        bound.push(bias.as_ref().unwrap_or(&a));
    }
    let products = Conv::plans(op, shape, kind_of, channels, geometry, bias.is_some())?
        .ok_or(Error::Unsupported { op, backend: D::NAME })?;
    Ok(smallvec::smallvec![in_parts(op, products, &bound, shape, a.0.dtype)?])
}

/// [`FusedOp::Conv`](crate::ops::FusedOp::Conv).
pub(super) fn conv<D: Driver>(
    op: &'static str,
    kind: Kind,
    [x, weight]: [&GpuTensor<D>; 2],
    bias: Option<&GpuTensor<D>>,
    (geometry, groups): (&Geometry, usize),
) -> Result<Results<GpuTensor<D>>> {
    let (images, filters) = (x.shape().dim(0), weight.shape().dim(0));
    let (inputs, outputs) = (weight.shape().dim(1), filters / groups);
    let channels = Channels { images, groups, inputs, outputs };
    let shape = images_like(x.shape(), images, filters, geometry.windows());
    convolve(op, kind, [weight, x], bias, channels, geometry, &shape)
}

/// [`FusedOp::ConvTranspose`](crate::ops::FusedOp::ConvTranspose).
pub(super) fn transpose<D: Driver>(
    op: &'static str,
    [g, weight]: [&GpuTensor<D>; 2],
    (geometry, groups): (&Geometry, usize),
) -> Result<Results<GpuTensor<D>>> {
    let (images, inputs) = (g.shape().dim(0), weight.shape().dim(1));
    let outputs = weight.shape().dim(0) / groups;
    let channels = Channels { images, groups, inputs, outputs };
    let shape = images_like(g.shape(), images, inputs * groups, geometry.image());
    convolve(op, Kind::Transpose, [weight, g], None, channels, geometry, &shape)
}

/// [`FusedOp::ConvWeightGrad`](crate::ops::FusedOp::ConvWeightGrad).
pub(super) fn weight_grad<D: Driver>(
    op: &'static str,
    [g, x]: [&GpuTensor<D>; 2],
    (geometry, groups): (&Geometry, usize),
) -> Result<Results<GpuTensor<D>>> {
    let (images, filters) = (x.shape().dim(0), g.shape().dim(1));
    let (inputs, outputs) = (x.shape().dim(1) / groups, filters / groups);
    let channels = Channels { images, groups, inputs, outputs };
    let shape = images_like(x.shape(), filters, inputs, geometry.kernel());
    convolve(op, Kind::Weight, [g, x], None, channels, geometry, &shape)
}

/// [`FusedOp::MaxPool`](crate::ops::FusedOp::MaxPool).
pub(super) fn max_pool<D: Driver>(
    op: &'static str,
    x: &GpuTensor<D>,
    geometry: &Geometry,
    with_positions: bool,
) -> Result<Results<GpuTensor<D>>> {
    D::device()?.check_rounds(op, geometry.taps())?;
    let x = from_start(op, x)?;
    let [images, channels] = [x.shape().dim(0), x.shape().dim(1)];
    let shape = images_like(x.shape(), images, channels, geometry.windows());
    let mut results = Results::new();
    results.push(GpuTensor::new(op, &shape, x.0.dtype)?);
    if with_positions {
        results.push(GpuTensor::new(op, &shape, DType::I64)?);
    }
    let kernel = Pool::Max { store: x.store(op)?, with_positions };
    let plan = kernel.plan(op, x.shape(), shape.numel(), geometry, false)?;
    let written = results.iter().collect::<SmallVec<[&GpuTensor<D>; 2]>>();
    run(op, plan, &[&x], &written, None)?;
    drop(written);
    Ok(results)
}

/// [`FusedOp::AvgPool`](crate::ops::FusedOp::AvgPool), or its gradient.
pub(super) fn avg_pool<D: Driver>(
    op: &'static str,
    x: &GpuTensor<D>,
    geometry: &Geometry,
    count_include_pad: bool,
    is_gradient: bool,
) -> Result<Results<GpuTensor<D>>> {
    // The shader counts padding that is the same at both ends.
    let is_uneven = (0..3).map(|i| geometry.axis(i).padding).any(|[before, after]| before != after);
    if count_include_pad && is_uneven {
        return Err(Error::Unsupported { op, backend: D::NAME });
    }
    D::device()?.check_rounds(op, geometry.taps())?;
    let (x, store) = (from_start(op, x)?, x.store(op)?);
    let (kernel, extents) = match is_gradient {
        true => (Pool::AvgGrad(store), geometry.image()),
        false => (Pool::Avg(store), geometry.windows()),
    };
    let shape = images_like(x.shape(), x.shape().dim(0), x.shape().dim(1), extents);
    let y = GpuTensor::new(op, &shape, x.0.dtype)?;
    let plan = kernel.plan(op, x.shape(), shape.numel(), geometry, count_include_pad)?;
    run(op, plan, &[&x], &[&y], None)?;
    Ok(smallvec::smallvec![y])
}

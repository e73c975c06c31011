//! Convolutions and poolings. Operands that are not contiguous are copied.

use smallvec::SmallVec;

use super::driver::Driver;
use super::parts::in_parts;
use super::plan::conv::{Channels, Conv, Kind};
use super::plan::pool::Pool;
use super::plan::windows::Windows;
use super::{GpuTensor, from_start, run};
use crate::backend::windows::{image_extents, images_like};
use crate::backend::{Results, TensorData};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{Convolution, Pooling};
use crate::shape::Shape;

/// The windows of a convolution.
fn windows_of(
    image: [usize; 3],
    kernel: [usize; 3],
    windows: [usize; 3],
    convolution: &Convolution,
) -> Windows {
    let Convolution { stride, dilation, padding, .. } = *convolution;
    let padding = padding.map(|[before, _]| before);
    Windows { image, kernel, windows, stride, dilation, padding }
}

/// Runs a convolution with a result of this shape.
fn convolve<D: Driver>(
    op: &'static str,
    kind: Kind,
    operands: [&GpuTensor<D>; 2],
    bias: Option<&GpuTensor<D>>,
    channels: Channels,
    windows: &Windows,
    shape: &Shape,
) -> Result<Results<GpuTensor<D>>> {
    let [a, b] = [from_start(op, operands[0])?, from_start(op, operands[1])?];
    let bias = bias.map(|bias| from_start(op, bias)).transpose()?;
    let kind_of = (kind, a.store(op)?);
    let mut bound: SmallVec<[&GpuTensor<D>; 3]> = SmallVec::from_slice(&[&a, &b]);
    if let Kind::Forward(_) = kind {
        bound.push(bias.as_ref().unwrap_or(&a));
    }
    let products = Conv::plans(op, shape, kind_of, channels, windows, bias.is_some())?
        .ok_or(Error::Unsupported { op, backend: D::NAME })?;
    Ok(smallvec::smallvec![in_parts(op, products, &bound, shape, a.0.dtype)?])
}

/// [`FusedOp::Conv`](crate::ops::FusedOp::Conv).
pub(super) fn conv<D: Driver>(
    op: &'static str,
    kind: Kind,
    [x, weight]: [&GpuTensor<D>; 2],
    bias: Option<&GpuTensor<D>>,
    convolution: &Convolution,
) -> Result<Results<GpuTensor<D>>> {
    let (image, kernel) = (image_extents(x.shape()), image_extents(weight.shape()));
    let none = || {
        let reason = format!(
            "window {kernel:?} does not fit into images of {image:?}, with {convolution:?}"
        );
        Error::InvalidArgument { op, reason }
    };
    let windows = convolution.output(image, kernel).ok_or_else(none)?;
    let windows = windows_of(image, kernel, windows, convolution);
    let (images, filters, groups) = (x.shape().dim(0), weight.shape().dim(0), convolution.groups);
    let (inputs, outputs) = (weight.shape().dim(1), filters / groups);
    let channels = Channels { images, groups, inputs, outputs };
    let shape = images_like(x.shape(), images, filters, windows.windows);
    convolve(op, kind, [weight, x], bias, channels, &windows, &shape)
}

/// [`FusedOp::ConvTranspose`](crate::ops::FusedOp::ConvTranspose).
pub(super) fn transpose<D: Driver>(
    op: &'static str,
    [g, weight]: [&GpuTensor<D>; 2],
    image: [usize; 3],
    convolution: &Convolution,
) -> Result<Results<GpuTensor<D>>> {
    let windows =
        windows_of(image, image_extents(weight.shape()), image_extents(g.shape()), convolution);
    let (images, groups, inputs) = (g.shape().dim(0), convolution.groups, weight.shape().dim(1));
    let outputs = weight.shape().dim(0) / groups;
    let channels = Channels { images, groups, inputs, outputs };
    let shape = images_like(g.shape(), images, inputs * groups, image);
    convolve(op, Kind::Transpose, [weight, g], None, channels, &windows, &shape)
}

/// [`FusedOp::ConvWeightGrad`](crate::ops::FusedOp::ConvWeightGrad).
pub(super) fn weight_grad<D: Driver>(
    op: &'static str,
    [g, x]: [&GpuTensor<D>; 2],
    kernel: [usize; 3],
    convolution: &Convolution,
) -> Result<Results<GpuTensor<D>>> {
    let windows =
        windows_of(image_extents(x.shape()), kernel, image_extents(g.shape()), convolution);
    let (images, groups, filters) = (x.shape().dim(0), convolution.groups, g.shape().dim(1));
    let (inputs, outputs) = (x.shape().dim(1) / groups, filters / groups);
    let channels = Channels { images, groups, inputs, outputs };
    let shape = images_like(x.shape(), filters, inputs, kernel);
    convolve(op, Kind::Weight, [g, x], None, channels, &windows, &shape)
}

fn windows_of_pooling(image: [usize; 3], pooling: &Pooling) -> Windows {
    let Pooling { kernel, stride, dilation, padding, windows, .. } = *pooling;
    Windows { image, kernel, windows, stride, dilation, padding }
}

/// [`FusedOp::MaxPool`](crate::ops::FusedOp::MaxPool).
pub(super) fn max_pool<D: Driver>(
    op: &'static str,
    x: &GpuTensor<D>,
    pooling: &Pooling,
    with_positions: bool,
) -> Result<Results<GpuTensor<D>>> {
    D::device()?.check_rounds(op, pooling.kernel.iter().product())?;
    let x = from_start(op, x)?;
    let [images, channels] = [x.shape().dim(0), x.shape().dim(1)];
    let shape = images_like(x.shape(), images, channels, pooling.windows);
    let mut results = Results::new();
    results.push(GpuTensor::new(op, &shape, x.0.dtype)?);
    if with_positions {
        results.push(GpuTensor::new(op, &shape, DType::I64)?);
    }
    let kernel = Pool::Max { store: x.store(op)?, with_positions };
    let windows = windows_of_pooling(image_extents(x.shape()), pooling);
    let plan = kernel.plan(op, x.shape(), shape.numel(), &windows, false)?;
    let written = results.iter().collect::<SmallVec<[&GpuTensor<D>; 2]>>();
    run(op, plan, &[&x], &written, None)?;
    drop(written);
    Ok(results)
}

/// [`FusedOp::AvgPool`](crate::ops::FusedOp::AvgPool), or its gradient. `image` has the extents of the images.
pub(super) fn avg_pool<D: Driver>(
    op: &'static str,
    x: &GpuTensor<D>,
    image: [usize; 3],
    pooling: &Pooling,
    is_gradient: bool,
) -> Result<Results<GpuTensor<D>>> {
    D::device()?.check_rounds(op, pooling.kernel.iter().product())?;
    let (x, store) = (from_start(op, x)?, x.store(op)?);
    let (kernel, extents) = match is_gradient {
        true => (Pool::AvgGrad(store), image),
        false => (Pool::Avg(store), pooling.windows),
    };
    let shape = images_like(x.shape(), x.shape().dim(0), x.shape().dim(1), extents);
    let y = GpuTensor::new(op, &shape, x.0.dtype)?;
    let windows = windows_of_pooling(image, pooling);
    let plan = kernel.plan(op, x.shape(), shape.numel(), &windows, pooling.count_include_pad)?;
    run(op, plan, &[&x], &[&y], None)?;
    Ok(smallvec::smallvec![y])
}

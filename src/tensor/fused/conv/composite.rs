//! The composites of convolutions: a product with the windows, and its adjoints by the images and by the filters.

use super::along_channels;
use crate::backend::Backend;
use crate::backend::windows::images_like;
use crate::error::Result;
use crate::ops::Geometry;
use crate::shape::{AxisSet, Shape};
use crate::tensor::base::Tensor;
use crate::tensor::fused::windows::adjoint;

/// Defines [`FusedOp::Conv`](crate::ops::FusedOp::Conv), without an activation.
pub(super) fn composite<B: Backend>(
    x: &Tensor<B>,
    weight: &Tensor<B>,
    bias: Option<&Tensor<B>>,
    geometry: &Geometry,
    groups: usize,
) -> Result<Tensor<B>> {
    let (axes, dtype) = (x.rank() - 2, x.dtype());
    let (x, weight) = (x.widened()?, weight.widened()?);
    let (own, each) = (weight.dims()[0] / groups, weight.dims()[1]);
    // The windows of all images as rows: [n, windows…], [c, taps…].
    let order: AxisSet = std::iter::once(0)
        .chain(2..2 + axes)
        .chain(std::iter::once(1))
        .chain(2 + axes..2 + 2 * axes)
        .collect();
    let terms = each * geometry.taps();
    let of_group = |group: usize| {
        let windows = x.narrow(1, group * each, each)?.windows_of(geometry, 0.0)?;
        let rows = windows.permute(&order)?;
        let count: usize = rows.dims()[..1 + axes].iter().product();
        let filters = weight.narrow(0, group * own, own)?.reshape((own, terms))?;
        rows.reshape((count, terms))?.matmul(&filters.t()?)
    };
    let all = (0..groups).map(of_group).collect::<Result<Vec<_>>>()?;
    let windows = &geometry.windows()[3 - axes..];
    let shape = [&[x.dims()[0]], windows, &[own * groups]].concat();
    let y = Tensor::cat(&all, 1)?.reshape(shape)?.movedim(-1, 1)?;
    let y = match bias {
        Some(bias) => y.add(&along_channels(&bias.widened()?, axes)?)?,
        None => y,
    };
    y.to_dtype(dtype)
}

/// Defines [`FusedOp::ConvTranspose`](crate::ops::FusedOp::ConvTranspose).
pub(super) fn transpose_composite<B: Backend>(
    g: &Tensor<B>,
    weight: &Tensor<B>,
    geometry: &Geometry,
    groups: usize,
) -> Result<Tensor<B>> {
    let channels = weight.dims()[1] * groups;
    let images = images_like(g.shape(), g.dims()[0], channels, geometry.image());
    adjoint(images, g, &[g, weight], |x| composite(x, weight, None, geometry, groups))
}

/// Defines [`FusedOp::ConvWeightGrad`](crate::ops::FusedOp::ConvWeightGrad).
pub(super) fn weight_composite<B: Backend>(
    x: &Tensor<B>,
    g: &Tensor<B>,
    geometry: &Geometry,
    groups: usize,
) -> Result<Tensor<B>> {
    let (filters, channels) = (g.dims()[1], x.dims()[1] / groups);
    let filters = images_like(x.shape(), filters, channels, geometry.kernel());
    adjoint(filters, g, &[x, g], |weight| composite(x, weight, None, geometry, groups))
}

/// The result of this shape, which has no elements: a function of all `inputs`, whose gradients are 0.
pub(super) fn without_elements<B: Backend>(
    shape: Shape,
    inputs: &[&Tensor<B>],
) -> Result<Tensor<B>> {
    let sums = inputs.iter().map(|x| x.sum_all()).collect::<Result<Vec<_>>>()?;
    Tensor::stack(&sums, 0)?.sum_all()?.broadcast_to(shape)
}

//! The composites of convolutions, place by place of the windows.

use smallvec::SmallVec;

use super::{along_channels, image, output};
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::layout::SliceItem;
use crate::ops::Convolution;
use crate::shape::Shape;
use crate::tensor::{PadMode, Tensor};

const ZEROS: PadMode = PadMode::Constant(0.0);

/// The places of a window.
pub(in super::super) fn places(kernel: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    let [depth, height, width] = kernel;
    (0..depth).flat_map(move |z| (0..height).flat_map(move |y| (0..width).map(move |x| [z, y, x])))
}

/// Selects the pixels at one place of every window, from images after `lead` other axes that contain all windows.
pub(in super::super) fn window_pixels<B: Backend>(
    x: &Tensor<B>,
    lead: usize,
    place: [usize; 3],
    windows: [usize; 3],
    [stride, dilation]: [[usize; 3]; 2],
) -> Result<Tensor<B>> {
    let whole = SliceItem::Range { start: None, end: None, step: 1 };
    let mut items: SmallVec<[SliceItem; 6]> = SmallVec::from_elem(whole, x.rank());
    for axis in lead..x.rank() {
        let at = axis + 3 - x.rank();
        let start = place[at] * dilation[at];
        let end = start + (windows[at] - 1) * stride[at] + 1;
        let (start, end) = (Some(start as isize), Some(end as isize));
        let step = isize::try_from(stride[at]).unwrap_or(isize::MAX);
        items[axis] = SliceItem::Range { start, end, step };
    }
    x.slice(&items)
}

/// Splits axis `axis` into groups: `[n, c, …]` becomes `[n, groups, c / groups, …]` for axis 1.
fn grouped<B: Backend>(x: &Tensor<B>, groups: usize, axis: usize) -> Result<Tensor<B>> {
    let dims = x.dims();
    let split = dims[..axis].iter().copied().chain([groups, dims[axis] / groups]);
    x.reshape(split.chain(dims[axis + 1..].iter().copied()).collect::<Shape>())
}

/// Returns a function from a place in the windows to the pixels there, `[n, groups, c / groups, windows]`.
fn pixels<B: Backend>(
    x: &Tensor<B>,
    kernel: [usize; 3],
    windows: [usize; 3],
    convolution: &Convolution,
) -> Result<impl Fn([usize; 3]) -> Result<Tensor<B>>> {
    let Convolution { stride, dilation, padding, groups } = *convolution;
    let axes = x.rank() - 2;
    let mut x = grouped(x, groups, 1)?;
    for at in 3 - axes..3 {
        let reach = (windows[at] - 1) * stride[at] + (kernel[at] - 1) * dilation[at] + 1;
        let axis = x.rank() + at - 3;
        x = x.extended(axis, padding[at], ZEROS)?;
        x = x.narrow(axis, 0, reach)?;
    }
    Ok(move |place: [usize; 3]| {
        let seen = window_pixels(&x, 3, place, windows, [stride, dilation])?;
        let count: usize = windows.iter().product();
        let shape = Shape::new([seen.dims()[0], seen.dims()[1], seen.dims()[2], count]);
        seen.reshape(shape)
    })
}

/// Returns a function from a place in the windows to the elements of the filters there, `[groups, o / groups,
/// c / groups]`.
fn elements<B: Backend>(
    weight: &Tensor<B>,
    groups: usize,
) -> Result<impl Fn([usize; 3]) -> Result<Tensor<B>>> {
    let kernel = image(weight);
    let grouped = grouped(weight, groups, 0)?;
    let (dims, count) = (grouped.dims(), kernel.iter().product::<usize>());
    let flat = grouped.reshape((dims[0], dims[1], dims[2], count))?;
    Ok(move |place: [usize; 3]| {
        let index = (place[0] * kernel[1] + place[1]) * kernel[2] + place[2];
        flat.narrow(3, index, 1)?.squeeze(3)
    })
}

/// Merges groups and restores the axes of images: `[n, groups, c / groups, pixels]` becomes `[n, c, …]`.
fn ungrouped<B: Backend>(x: &Tensor<B>, extents: &[usize]) -> Result<Tensor<B>> {
    let [n, channels] = [x.dims()[0], x.dims()[1] * x.dims()[2]];
    x.reshape([n, channels].iter().chain(extents).copied().collect::<Shape>())
}

/// Adds tensors up, at least one.
fn total<B: Backend>(terms: impl Iterator<Item = Result<Tensor<B>>>) -> Result<Tensor<B>> {
    let sum = terms.reduce(|sum, term| sum?.add(&term?));
    sum.unwrap_or(Err(Error::InvalidArgument {
        op: "conv",
        reason: "a window without a place".into(),
    }))
}

/// Defines [`FusedOp::Conv`], without an activation.
pub(super) fn composite<B: Backend>(
    x: &Tensor<B>,
    weight: &Tensor<B>,
    bias: Option<&Tensor<B>>,
    convolution: &Convolution,
) -> Result<Tensor<B>> {
    let (kernel, axes, dtype) = (image(weight), x.rank() - 2, x.dtype());
    let windows = output("conv", x, kernel, convolution)?;
    let (x, weight) = (x.widened()?, weight.widened()?);
    let pixels = pixels(&x, kernel, windows, convolution)?;
    let elements = elements(&weight, convolution.groups)?;
    let y = total(places(kernel).map(|place| elements(place)?.matmul(&pixels(place)?)))?;
    let y = ungrouped(&y, &windows[3 - axes..])?;
    let y = match bias {
        Some(bias) => y.add(&along_channels(&bias.widened()?, axes)?)?,
        None => y,
    };
    y.to_dtype(dtype)
}

/// Defines [`FusedOp::ConvTranspose`].
pub(super) fn transpose_composite<B: Backend>(
    g: &Tensor<B>,
    weight: &Tensor<B>,
    extents: [usize; 3],
    convolution: &Convolution,
) -> Result<Tensor<B>> {
    let Convolution { stride, dilation, padding, groups } = *convolution;
    let (kernel, windows, axes, dtype) = (image(weight), image(g), g.rank() - 2, g.dtype());
    let (g, weight) = (grouped(&g.widened()?, groups, 1)?, weight.widened()?);
    let elements = elements(&weight, groups)?;
    let flat =
        g.reshape((g.dims()[0], g.dims()[1], g.dims()[2], windows.iter().product::<usize>()))?;
    let terms = places(kernel).map(|place| {
        let term = elements(place)?.t()?.matmul(&flat)?;
        let lead: SmallVec<[usize; 8]> =
            term.dims()[..3].iter().chain(&windows[3 - axes..]).copied().collect();
        let mut term = term.reshape(&lead[..])?;
        for at in 3 - axes..3 {
            let axis = term.rank() + at - 3;
            // Zeros between the pixels, then before and after them, as in padded images.
            if stride[at] > 1 {
                let apart = term.unsqueeze(axis + 1)?;
                let apart = apart.extended(axis + 1, [0, stride[at] - 1], ZEROS)?;
                term = apart.flatten(axis, axis + 1)?.narrow(
                    axis,
                    0,
                    (windows[at] - 1) * stride[at] + 1,
                )?;
            }
            let before = place[at] * dilation[at];
            let whole = extents[at] + padding[at][0] + padding[at][1];
            let after = whole - before - term.dims()[axis];
            term = term.extended(axis, [before, after], ZEROS)?;
            term = term.narrow(axis, padding[at][0], extents[at])?;
        }
        Ok(term)
    });
    ungrouped(&total(terms)?, &extents[3 - axes..])?.to_dtype(dtype)
}

/// Defines [`FusedOp::ConvWeightGrad`].
pub(super) fn weight_composite<B: Backend>(
    x: &Tensor<B>,
    g: &Tensor<B>,
    kernel: [usize; 3],
    convolution: &Convolution,
) -> Result<Tensor<B>> {
    let (windows, axes, dtype, groups) = (image(g), x.rank() - 2, x.dtype(), convolution.groups);
    let (x, g) = (x.widened()?, grouped(&g.widened()?, groups, 1)?);
    let pixels = pixels(&x, kernel, windows, convolution)?;
    let flat =
        g.reshape((g.dims()[0], g.dims()[1], g.dims()[2], windows.iter().product::<usize>()))?;
    let each = places(kernel)
        .map(|place| flat.matmul(&pixels(place)?.t()?)?.sum(Some(&[0]), false)?.unsqueeze(3));
    let each = each.collect::<Result<Vec<_>>>()?;
    let all = Tensor::cat(&each, 3)?;
    let [groups, out, channels] = [0, 1, 2].map(|axis| all.dims()[axis]);
    let shape =
        [groups * out, channels].iter().chain(&kernel[3 - axes..]).copied().collect::<Shape>();
    all.reshape(shape)?.to_dtype(dtype)
}

/// The result of this shape, which has no elements: a function of all `inputs`, whose gradients are 0.
pub(super) fn without_elements<B: Backend>(
    shape: Shape,
    inputs: &[&Tensor<B>],
) -> Result<Tensor<B>> {
    let sums = inputs.iter().map(|x| x.sum_all()).collect::<Result<Vec<_>>>()?;
    Tensor::stack(&sums, 0)?.sum_all()?.broadcast_to(shape)
}

//! Checks of the arguments of convolutions, and their errors.

use super::super::windows::{three_axes, window_count, window_extent};
use super::{ConvOptions, ConvTransposeOptions, Padding};
use crate::backend::Backend;
use crate::backend::windows::geometry;
use crate::error::{Error, Result};
use crate::ops::{Geometry, Sliding};
use crate::shape::Shape;
use crate::tensor::base::Tensor;

pub(super) fn check_images<B: Backend>(op: &'static str, x: &Tensor<B>, axes: usize) -> Result<()> {
    if x.rank() == axes + 2 {
        return Ok(());
    }
    let reason = match axes {
        1 => "expected 3 axes: [n, channels, length], or of filters [out, in, length]",
        2 => {
            "expected 4 axes: [n, channels, height, width], or of filters [out, in, height, width]"
        }
        _ => {
            "expected 5 axes: [n, channels, depth, height, width], or of filters [out, in, depth, height, width]"
        }
    };
    Err(Error::InvalidShape { op, shape: *x.shape(), reason })
}

/// Checks that the images have the channels that the filters read.
pub(super) fn check_channels<B: Backend>(
    op: &'static str,
    x: &Tensor<B>,
    weight: &Tensor<B>,
    expected: usize,
) -> Result<()> {
    let (found, lhs, rhs) = (x.dims()[1], x.shape(), weight.shape());
    if found == expected {
        return Ok(());
    }
    let is_last = x.dims().last() == Some(&expected);
    let hint = if is_last { ": are the channels last?" } else { "" };
    let reason = format!(
        "{expected} channels expected, axis 1 has {found}{hint}, for shapes {lhs} and {rhs}"
    );
    Err(Error::InvalidArgument { op, reason })
}

pub(super) fn check_bias<B: Backend>(
    op: &'static str,
    weight: &Tensor<B>,
    bias: Option<&Tensor<B>>,
    channels: usize,
) -> Result<()> {
    let Some(bias) = bias else { return Ok(()) };
    bias.check_dtype(op, weight.dtype())?;
    if bias.dims() != [channels] {
        return Err(Error::ShapeMismatch { op, lhs: *weight.shape(), rhs: *bias.shape() });
    }
    Ok(())
}

impl<const N: usize> ConvOptions<N> {
    /// Checks that no stride, no dilation and no extent of the filters is 0.
    pub(crate) fn check(&self, op: &'static str, extents: &[usize]) -> Result<()> {
        check_steps(op, extents, self.stride, self.dilation)
    }

    /// All windows of these extents that fit images `[n, c, …]`.
    pub(in crate::tensor::fused) fn geometry(
        &self,
        op: &'static str,
        images: &Shape,
        kernel: &[usize],
    ) -> Result<Geometry> {
        self.check(op, kernel)?;
        let mut all = [Sliding::default(); N];
        for (axis, along) in all.iter_mut().enumerate() {
            let (image, kernel) = (images.dim(2 + axis), kernel[axis]);
            let (stride, dilation) = (self.stride[axis], self.dilation[axis]);
            let window = window_extent(kernel, dilation);
            let window = window.ok_or_else(|| too_long(op, axis, images))?;
            let zeros = match self.padding {
                Padding::Valid => [0; 2],
                Padding::Zeros(zeros) => [zeros[axis]; 2],
                Padding::Uneven(zeros) => zeros[axis],
                Padding::Same => {
                    let windows = image.div_ceil(stride).max(1);
                    let reach = ((windows - 1) * stride).saturating_add(window);
                    let zeros = reach.saturating_sub(image);
                    [zeros / 2, zeros - zeros / 2]
                }
            };
            padded_extent(op, axis, images, zeros)?;
            let padding = zeros.map(|zeros| zeros as isize);
            let windows = window_count(image, zeros, window, stride).unwrap_or(0);
            *along = Sliding { image, kernel, stride, dilation, padding, windows };
        }
        if all.iter().any(|along| along.windows == 0) {
            return Err(self.no_window(op, images, kernel, all.map(|along| along.padding)));
        }
        geometry(op, three_axes(&all))
    }

    fn no_window(
        &self,
        op: &'static str,
        images: &Shape,
        kernel: &[usize],
        padding: [[isize; 2]; N],
    ) -> Error {
        let &ConvOptions { stride, dilation, .. } = self;
        let is_even = padding.iter().all(|[before, after]| before == after);
        let padding = match is_even {
            true => format!("{:?}", padding.map(|[before, _]| before)),
            false => format!("{padding:?}"),
        };
        let reason = format!(
            "no window of extents {kernel:?} fits images of shape {images}: stride {stride:?}, dilation {dilation:?}, \
             padding {padding}"
        );
        Error::InvalidArgument { op, reason }
    }
}

impl ConvOptions<2> {
    /// The windows of `im2col` and `col2im`, which have no groups.
    pub(in crate::tensor::fused) fn columns_geometry(
        &self,
        op: &'static str,
        images: &Shape,
        kernel: [usize; 2],
    ) -> Result<Geometry> {
        if images.rank() != 4 {
            let reason = "expected images with the axes [n, c, h, w]";
            return Err(Error::InvalidShape { op, shape: *images, reason });
        }
        if self.groups != 1 {
            let reason = format!("columns have no groups, got {}", self.groups);
            return Err(Error::InvalidArgument { op, reason });
        }
        self.geometry(op, images, &kernel)
    }
}

impl<const N: usize> ConvTransposeOptions<N> {
    /// Checks also that the pixels more at the end are less than the stride or the dilation.
    pub(crate) fn check(&self, op: &'static str, extents: &[usize]) -> Result<()> {
        check_steps(op, extents, self.stride, self.dilation)?;
        for (axis, &more) in self.output_padding.iter().enumerate() {
            let (stride, dilation) = (self.stride[axis], self.dilation[axis]);
            if more > 0 && more >= stride.max(dilation) {
                let reason = format!(
                    "output_padding {more} of axis {axis} must be less than the stride {stride} or the dilation \
                     {dilation}"
                );
                return Err(Error::InvalidArgument { op, reason });
            }
        }
        Ok(())
    }

    /// The windows of the result, which are the pixels of these images.
    pub(super) fn geometry(
        &self,
        op: &'static str,
        images: &Shape,
        kernel: &[usize],
    ) -> Result<Geometry> {
        self.check(op, kernel)?;
        let mut all = [Sliding::default(); N];
        for (axis, along) in all.iter_mut().enumerate() {
            *along = self.sliding(op, images, axis, kernel[axis])?;
        }
        geometry(op, three_axes(&all))
    }

    fn sliding(
        &self,
        op: &'static str,
        images: &Shape,
        axis: usize,
        kernel: usize,
    ) -> Result<Sliding> {
        let (stride, dilation) = (self.stride[axis], self.dilation[axis]);
        let (padding, more) = (self.padding[axis], self.output_padding[axis]);
        let windows = images.dim(2 + axis);
        if windows == 0 {
            let reason = format!("axis {axis} of images of shape {images} has no pixel");
            return Err(Error::InvalidArgument { op, reason });
        }
        let unpadded = || {
            let between = (windows - 1).checked_mul(stride)?;
            between.checked_add(window_extent(kernel, dilation)?)?.checked_add(more)
        };
        let unpadded = unpadded().ok_or_else(|| too_long(op, axis, images))?;
        Shape::from(unpadded).validate(op)?;
        let image = padding.checked_mul(2).and_then(|both| unpadded.checked_sub(both));
        let image = image.filter(|&image| image > 0).ok_or_else(|| {
            let reason = format!(
                "padding {padding} at both ends of axis {axis} leaves no pixel of the {unpadded} without padding"
            );
            Error::InvalidArgument { op, reason }
        })?;
        Ok(Sliding { image, kernel, stride, dilation, padding: [padding as isize; 2], windows })
    }
}

/// The extent of an axis of images of this shape with its padding, if it can be addressed.
pub(in crate::tensor::fused) fn padded_extent(
    op: &'static str,
    axis: usize,
    images: &Shape,
    [before, after]: [usize; 2],
) -> Result<usize> {
    let padded = images.dim(2 + axis).saturating_add(before).saturating_add(after);
    Shape::from(padded).validate(op).map_err(|_| too_long(op, axis, images))?;
    Ok(padded)
}

/// The error for an axis whose windows or padding are too long to be addressed.
pub(in crate::tensor::fused) fn too_long(op: &'static str, axis: usize, images: &Shape) -> Error {
    let reason = format!(
        "the windows or the padding along axis {axis} of images of shape {images} are too long"
    );
    Error::InvalidArgument { op, reason }
}

/// Checks that no stride, no dilation and no extent of the filters is 0.
fn check_steps<const N: usize>(
    op: &'static str,
    extents: &[usize],
    stride: [usize; N],
    dilation: [usize; N],
) -> Result<()> {
    let values =
        [("stride", &stride[..]), ("dilation", &dilation[..]), ("filter extents", extents)];
    for (name, values) in values {
        if values.contains(&0) {
            let reason = format!("{name} must be at least 1, got {values:?}");
            return Err(Error::InvalidArgument { op, reason });
        }
    }
    Ok(())
}

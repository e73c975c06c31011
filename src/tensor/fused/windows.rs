//! The windows of images as strided views, from which the composites of convolutions and poolings are made, and
//! `im2col` and `col2im`.
//!
//! ```text
//! windows_of(x)     [n, c, …] → [n, c, windows…, taps…]      padded, then a view
//! pooling           a reduction of the taps
//! convolution       a product over the channels and taps
//! im2col            a copy of the view
//! ```

use crate::autodiff::Backward;
use crate::autodiff::backward::partial;
use crate::autodiff::graph::should_record;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::layout::SliceItem;
use crate::ops::{Geometry, Sliding};
use crate::options::PerAxis;
use crate::runtime::recording::with_recording;
use crate::shape::Shape;

use super::conv::ConvOptions;
use crate::tensor::base::Tensor;
use crate::tensor::pad::PadMode;

/// Number of pixels that a window spans; `None` if the kernel or the dilation is 0, or on overflow.
pub(super) fn window_extent(kernel: usize, dilation: usize) -> Option<usize> {
    let dilation = Some(dilation).filter(|&dilation| dilation > 0)?;
    kernel.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)
}

/// Number of windows of this extent along an axis; `None` if none fits, if the stride is 0, or on overflow.
pub(super) fn window_count(
    extent: usize,
    [before, after]: [usize; 2],
    window: usize,
    stride: usize,
) -> Option<usize> {
    let padded = extent.checked_add(before)?.checked_add(after)?;
    Some(padded.checked_sub(window)?.checked_div(stride)? + 1)
}

/// Completes the windows along the axes of images by those of the axes that images lack.
pub(super) fn three_axes(own: &[Sliding]) -> [Sliding; 3] {
    let mut axes = [Sliding::default(); 3];
    axes[3 - own.len()..].copy_from_slice(own);
    axes
}

/// The gradient by a tensor of zeros of what `linear` computes from it, from an upstream gradient. It is recorded if one
/// of `others`, which it depends on, is tracked.
pub(super) fn adjoint<B: Backend>(
    shape: Shape,
    upstream: &Tensor<B>,
    others: &[&Tensor<B>],
    linear: impl FnOnce(&Tensor<B>) -> Result<Tensor<B>>,
) -> Result<Tensor<B>> {
    let zeros = Tensor::zeros(shape, upstream.dtype())?.requires_grad();
    let y = with_recording(true, || linear(&zeros))?;
    let create_graph = should_record(upstream.dtype(), others);
    let options = Backward { create_graph, ..Backward::default() };
    let gradient = partial(&y, upstream, &[&zeros], options)?.remove(&zeros);
    gradient.map_or_else(|| zeros.detach().zeros_like(), Ok)
}

/// # Windows as columns
impl<B: Backend> Tensor<B> {
    /// The windows of images `[n, c, …]`, with `value` outside the images: `[n, c, windows…, taps…]`.
    pub(super) fn windows_of(&self, geometry: &Geometry, value: f64) -> Result<Self> {
        let mut x = self.clone();
        for axis in 2..self.rank() {
            let along = geometry.axis(axis + 3 - self.rank());
            let window = (along.kernel - 1) * along.dilation + 1;
            let reach = (along.windows - 1) * along.stride + window;
            let before = along.padding[0].max(0) as usize;
            let after = reach.saturating_sub(before + along.image);
            let padded = x.extended(axis, [before, after], PadMode::Constant(value))?;
            x = padded.narrow(axis, 0, reach)?.unfold(axis, window, along.stride)?;
            if along.dilation > 1 {
                let whole = SliceItem::Range { start: None, end: None, step: 1 };
                let mut items = vec![whole; x.rank()];
                let step = along.dilation as isize;
                items[x.rank() - 1] = SliceItem::Range { start: None, end: None, step };
                x = x.slice(&items)?;
            }
        }
        Ok(x)
    }

    /// Arranges the windows of images `[n, c, h, w]` as the columns of matrices
    /// `[n, c · kh · kw, h' · w']`, for any dtype; PyTorch's `unfold`. A convolution with weights
    /// `[m, c · kh · kw]` is a matrix product with them. The kernel is a number or `[kh, kw]`.
    ///
    /// ```
    /// use swath::{ConvOptions, prelude::*};
    /// let x = tensor![1.0, 2.0, 3.0, 4.0].reshape((1, 1, 1, 4))?;
    /// let columns = x.im2col([1, 3], ConvOptions::new().padding([0, 1]))?;
    /// let rows = [0.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 2.0, 3.0, 4.0, 0.0];
    /// assert_eq!(columns.shape(), &Shape::new([1, 3, 4]));
    /// assert_eq!(columns.to_vec::<f32>()?, rows);
    /// let differences = tensor![[-1.0, 0.0, 1.0]].matmul(&columns)?;
    /// assert_eq!(differences.to_vec::<f32>()?, [2.0, 2.0, 2.0, -3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] unless there are four axes; [`Error::InvalidArgument`] if no window fits, if there are too
    /// many, if a kernel, stride or dilation is 0, or for groups.
    pub fn im2col(&self, kernel: impl PerAxis<2>, options: ConvOptions<2>) -> Result<Self> {
        let geometry = options.columns_geometry("im2col", self.shape(), kernel.per_axis())?;
        self.columns("im2col", &geometry)
    }

    fn columns(&self, op: &'static str, geometry: &Geometry) -> Result<Self> {
        let [n, c] = [self.dims()[0], self.dims()[1]];
        let ([_, down, across], [_, kh, kw]) = (geometry.windows(), geometry.kernel());
        let rows = c.checked_mul(kh * kw);
        let too_many = || Error::Overflow { op, shape: *self.shape() };
        let shape = Shape::from([n, rows.ok_or_else(too_many)?, down * across]);
        shape.validate(op)?;
        if shape.numel() == 0 {
            return self.reshape(shape);
        }
        // In 32 bits, so that the gradient is rounded once.
        let wide = if self.dtype().is_float() { self.widened()? } else { self.clone() };
        let columns = wide.windows_of(geometry, 0.0)?.permute(&[0, 1, 4, 5, 2, 3])?;
        columns.reshape(shape)?.to_dtype(self.dtype())
    }

    /// Sums the columns of matrices `[n, c · kh · kw, h' · w']` into images `[n, c, h, w]`, where
    /// `image` is `[h, w]`; PyTorch's `fold`. Each element of an image is the sum of the elements
    /// that [`im2col`](Tensor::im2col) copies from it. 16-bit floats are accumulated in `f32` and
    /// rounded once.
    ///
    /// ```
    /// use swath::{ConvOptions, prelude::*};
    /// let columns = tensor![[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]].unsqueeze(0)?;
    /// let x = columns.col2im([1, 4], [1, 2], ConvOptions::default())?;
    /// assert_eq!(x.shape(), &Shape::new([1, 1, 1, 4]));
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 12.0, 23.0, 30.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if images of this size have another number of windows; [`Error::InvalidShape`] unless
    /// there are three axes; [`Error::InvalidArgument`] if the number of rows is not a multiple of kh · kw, and as for
    /// [`im2col`](Tensor::im2col); [`Error::UnsupportedDType`] for integers.
    pub fn col2im(
        &self,
        image: [usize; 2],
        kernel: impl PerAxis<2>,
        options: ConvOptions<2>,
    ) -> Result<Self> {
        let (op, kernel) = ("col2im", kernel.per_axis());
        self.check_float(op)?;
        let &[n, rows, windows] = self.dims() else {
            let reason = "expected columns with the axes [n, c · kh · kw, h' · w']";
            return Err(Error::InvalidShape { op, shape: *self.shape(), reason });
        };
        let taps = kernel[0].checked_mul(kernel[1]);
        let channels = taps.filter(|&taps| taps > 0 && rows % taps == 0).map(|taps| rows / taps);
        let channels = channels.ok_or_else(|| {
            let shape = self.shape();
            let reason =
                format!("{rows} rows are no whole channels of kernel {kernel:?}, in {shape}");
            Error::InvalidArgument { op, reason }
        })?;
        let images = Shape::from([n, channels, image[0], image[1]]);
        images.validate(op)?;
        let geometry = options.columns_geometry(op, &images, kernel)?;
        let wanted = geometry.windows().iter().product();
        if windows != wanted {
            let rhs = Shape::from([n, rows, wanted]);
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs });
        }
        if self.numel() == 0 {
            return self.sum_all()?.broadcast_to(images);
        }
        let wide = self.widened()?;
        adjoint(images, &wide, &[self], |x| x.columns(op, &geometry))?.to_dtype(self.dtype())
    }
}

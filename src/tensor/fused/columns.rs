//! `im2col` and `col2im`.

use crate::autodiff::graph::record;
use crate::autodiff::ops::one_input;
use crate::backend::Backend;
use crate::backend::windows::{columns_shape, images_shape};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops::{FusedOp, Window};
use crate::shape::Shape;

use super::kernel;
use crate::tensor::Tensor;

/// # Windows as columns
impl<B: Backend> Tensor<B> {
    /// Arranges the windows of images `[n, c, h, w]` as the columns of matrices
    /// `[n, c · kh · kw, oh · ow]`, for any dtype; PyTorch's `unfold`. A convolution with weights
    /// `[m, c · kh · kw]` is a matrix product with them.
    ///
    /// ```
    /// use swath::{ops::Window, prelude::*};
    /// let x = tensor![1.0, 2.0, 3.0, 4.0].reshape((1, 1, 1, 4))?;
    /// let columns = x.im2col(Window { padding: [0, 1], ..Window::new([1, 3]) })?;
    /// let rows = [0.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 2.0, 3.0, 4.0, 0.0];
    /// assert_eq!(columns.shape(), &Shape::new([1, 3, 4]));
    /// assert_eq!(columns.to_vec::<f32>()?, rows);
    /// let differences = tensor![[-1.0, 0.0, 1.0]].matmul(&columns)?;
    /// assert_eq!(differences.to_vec::<f32>()?, [2.0, 2.0, 2.0, -3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`](crate::Error::InvalidShape) unless there are four axes;
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if no window fits, if there are
    /// too many, or if a kernel, stride or dilation is 0.
    pub fn im2col(&self, window: Window) -> Result<Self> {
        B::engine_im2col(self, window)
    }

    pub(crate) fn im2col_body(x: &Tensor<B>, window: Window) -> Result<Self> {
        let op = "im2col";
        let shape = columns_shape(op, x.shape(), &window)?;
        if shape.numel() == 0 {
            return x.reshape(shape);
        }
        let image = [x.dims()[2], x.dims()[3]];
        match kernel::<B, 1>(&FusedOp::Im2col { x: x.data(), window })? {
            Some([y]) => {
                Ok(record(op, y, &[x], |_| one_input(move |g: &Tensor<B>| g.col2im(image, window))))
            }
            None => x.im2col_composite(window),
        }
    }

    /// Defines [`Tensor::im2col`]: each channel of an image becomes a row followed by a zero, and
    /// columns are picked from that.
    fn im2col_composite(&self, window: Window) -> Result<Self> {
        let shape = columns_shape("im2col", self.shape(), &window)?;
        let [n, c, h, w] = [0, 1, 2, 3].map(|axis| self.dims()[axis]);
        let padded = Tensor::cat(
            &[
                &self.reshape((n, c, h * w))?,
                &Tensor::full_scalar("im2col", (n, c, 1).into(), Scalar::Int(0), self.dtype())?,
            ],
            2,
        )?;
        padded.index_select(2, &positions(&window, [h, w])?)?.reshape(shape)
    }

    /// Sums the columns of matrices `[n, c · kh · kw, oh · ow]` into images `[n, c, h, w]`, where
    /// `image` is `[h, w]`; PyTorch's `fold`. Each element of an image is the sum of the elements
    /// that [`im2col`](Tensor::im2col) copies from it. 16-bit floats are accumulated in `f32` and
    /// rounded once.
    ///
    /// ```
    /// use swath::{ops::Window, prelude::*};
    /// let columns = tensor![[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]].unsqueeze(0)?;
    /// let x = columns.col2im([1, 4], Window::new([1, 2]))?;
    /// assert_eq!(x.shape(), &Shape::new([1, 1, 1, 4]));
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 12.0, 23.0, 30.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`](crate::Error::ShapeMismatch) if images of this size have another
    /// number of windows; [`Error::InvalidShape`](crate::Error::InvalidShape) unless there are
    /// three axes; [`Error::InvalidArgument`](crate::Error::InvalidArgument) if the number of rows
    /// is not a multiple of kh · kw, or if no window fits;
    /// [`Error::UnsupportedDType`](crate::Error::UnsupportedDType) for integers.
    pub fn col2im(&self, image: [usize; 2], window: Window) -> Result<Self> {
        B::engine_col2im(self, image, window)
    }

    pub(crate) fn col2im_body(x: &Tensor<B>, image: [usize; 2], window: Window) -> Result<Self> {
        let op = "col2im";
        x.check_float(op)?;
        let images = images_shape(op, x.shape(), image, &window)?;
        if x.numel() == 0 {
            return x.reshape(images);
        }
        match kernel::<B, 1>(&FusedOp::Col2im { x: x.data(), image, window })? {
            Some([y]) => {
                Ok(record(op, y, &[x], |_| one_input(move |g: &Tensor<B>| g.im2col(window))))
            }
            None => x.col2im_composite(image, window),
        }
    }

    /// Defines [`Tensor::col2im`]: elements are added to the places that
    /// [`Tensor::im2col_composite`] picks them from.
    fn col2im_composite(&self, [h, w]: [usize; 2], window: Window) -> Result<Self> {
        let images = images_shape("col2im", self.shape(), [h, w], &window)?;
        let (n, c) = (images.dim(0), images.dim(1));
        let index = positions(&window, [h, w])?;
        let columns = self.reshape((n, c, index.numel()))?;
        let index = index.broadcast_to(columns.shape())?;
        let zeros = Tensor::zeros((n, c, h * w + 1), self.dtype())?;
        zeros.scatter_add(2, &index, &columns)?.narrow(2, 0, h * w)?.reshape(images)
    }
}

/// For each element of a channel's columns `[kh · kw, oh · ow]`, its row-major index in the image
/// `[h, w]`, or `h · w` for a zero of the padding.
fn positions<B: Backend>(window: &Window, [h, w]: [usize; 2]) -> Result<Tensor<B>> {
    let [down, across] = window.output([h, w]).unwrap_or_default();
    let [kh, kw] = window.kernel;
    let along = |axis: usize, output: usize, tap: usize, extent: usize| {
        let padded = output * window.stride[axis] + tap * window.dilation[axis];
        padded.checked_sub(window.padding[axis]).filter(|&i| i < extent)
    };
    let position = |i: usize| {
        let (tap, output) = (i / (down * across), i % (down * across));
        let row = along(0, output / across, tap / kw, h);
        let column = along(1, output % across, tap % kw, w);
        let position = row.zip(column).map_or(h * w, |(row, column)| row * w + column);
        Scalar::Int(i64::try_from(position).unwrap_or(i64::MAX))
    };
    Tensor::from_scalars("im2col", Shape::from(kh * kw * down * across), DType::I64, position)
}

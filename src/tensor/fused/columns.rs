//! `im2col` and `col2im`.

use crate::autodiff::graph::record;
use crate::autodiff::ops::fused::columns::{col2im_rule, im2col_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::ops::{FusedOp, Window};

use super::{check_float, exactly};
use crate::tensor::Tensor;

impl<B: Backend> Tensor<B> {
    /// The windows of images `[n, c, h, w]` as the columns of matrices `[n, c · kh · kw, oh · ow]`, of
    /// any dtype; PyTorch's `unfold`. A convolution with weights `[m, c · kh · kw]` is a product with
    /// them.
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
    /// [`Error::InvalidShape`](crate::Error::InvalidShape) for other than four axes;
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if no window fits, too many
    /// do, or a kernel, stride or dilation is 0.
    pub fn im2col(&self, window: Window) -> Result<Self> {
        let op = FusedOp::Im2col(window);
        let [y] = exactly(op.name(), B::fused(&op, &[Some(self.data())])?)?;
        Ok(record(op.name(), y, &[self], |_| im2col_rule(self.dims(), window)))
    }

    /// Matrices `[n, c · kh · kw, oh · ow]` added up to images `[n, c, h, w]`, `image` being `[h, w]`:
    /// each element is the sum of those that [`im2col`](Tensor::im2col) takes from it; PyTorch's
    /// `fold`. 16-bit floats are added up in `f32` and rounded once.
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
    /// [`Error::ShapeMismatch`](crate::Error::ShapeMismatch) if the windows of such images are not as
    /// many; [`Error::InvalidShape`](crate::Error::InvalidShape) for other than three axes;
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if the rows are not of whole channels,
    /// or no window fits; [`Error::UnsupportedDType`](crate::Error::UnsupportedDType) for integers.
    pub fn col2im(&self, image: [usize; 2], window: Window) -> Result<Self> {
        let op = FusedOp::Col2im { image, window };
        check_float(op.name(), self)?;
        let [y] = exactly(op.name(), B::fused(&op, &[Some(self.data())])?)?;
        Ok(record(op.name(), y, &[self], |_| col2im_rule(window)))
    }
}

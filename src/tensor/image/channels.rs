//! Pixels that move between channels and axes, `max_unpool`, and `local_response_norm`.

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::options::PerAxis;
use crate::shape::Shape;

use crate::tensor::base::Tensor;
use crate::tensor::fused::pool::check_image_axes;
use crate::tensor::pad::PadMode;

/// # Channels
impl<B: Backend> Tensor<B> {
    /// Makes pixels of channels: `[…, c · r², h, w]` becomes `[…, c, h · r, w · r]`, for any dtype. Channel `(i · r +
    /// j)` of the r² of a result's channel has its pixels in rows i, i + r, … and columns j, j + r, …. PyTorch's
    /// `pixel_shuffle`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[[1.0]], [[2.0]], [[3.0]], [[4.0]]];
    /// let y = x.pixel_shuffle(2)?;
    /// assert_eq!((y.dims(), y.to_vec::<f32>()?), (&[1, 2, 2][..], vec![1.0, 2.0, 3.0, 4.0]));
    /// assert_eq!(y.pixel_unshuffle(2)?.dims(), x.dims());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for fewer than three axes or channels that r² does not divide; [`Error::Overflow`].
    pub fn pixel_shuffle(&self, r: usize) -> Result<Self> {
        let op = "pixel_shuffle";
        let [others, c, h, w] = self.others_and_last(op)?;
        let c = self.part(op, self.part(op, c, r)?, r)?;
        let last = [c, h.saturating_mul(r), w.saturating_mul(r)];
        self.moved(op, [others, c, r, r, h, w], [0, 1, 4, 2, 5, 3], last)
    }

    /// Makes channels of pixels, the inverse of [`pixel_shuffle`](Tensor::pixel_shuffle): `[…, c, h · r, w · r]`
    /// becomes `[…, c · r², h, w]`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let y = tensor![[[1.0, 2.0], [3.0, 4.0]]].pixel_unshuffle(2)?;
    /// assert_eq!((y.dims(), y.to_vec::<f32>()?), (&[4, 1, 1][..], vec![1.0, 2.0, 3.0, 4.0]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for fewer than three axes or extents that r does not divide; [`Error::Overflow`].
    pub fn pixel_unshuffle(&self, r: usize) -> Result<Self> {
        let op = "pixel_unshuffle";
        let [others, c, h, w] = self.others_and_last(op)?;
        let (h, w) = (self.part(op, h, r)?, self.part(op, w, r)?);
        let last = [c.saturating_mul(r).saturating_mul(r), h, w];
        self.moved(op, [others, c, h, r, w, r], [0, 1, 3, 5, 2, 4], last)
    }

    /// Reorders channels, the second axis: those of `groups` groups, one after the other, are read as the columns of a
    /// table with a row for each group. Any dtype. PyTorch's `channel_shuffle`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0, 3.0, 4.0]];
    /// assert_eq!(x.channel_shuffle(2)?.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for fewer than two axes or channels that `groups` does not divide.
    pub fn channel_shuffle(&self, groups: usize) -> Result<Self> {
        let op = "channel_shuffle";
        let &[n, channels, ref rest @ ..] = self.dims() else {
            return Err(self.indivisible(op, groups));
        };
        let table = [n, groups, self.part(op, channels, groups)?, rest.iter().product()];
        self.reshape(table)?.swap_axes(1, 2)?.reshape(self.shape())
    }

    /// The number of elements of the axes before the last three, and those.
    fn others_and_last(&self, op: &'static str) -> Result<[usize; 4]> {
        let last = self.dims().split_last_chunk();
        let (others, &[c, h, w]) = last.ok_or_else(|| self.indivisible(op, 1))?;
        Ok([others.iter().product(), c, h, w])
    }

    /// An extent divided by a number that must divide it.
    fn part(&self, op: &'static str, extent: usize, by: usize) -> Result<usize> {
        let part = extent.checked_div(by).filter(|part| part * by == extent);
        part.ok_or_else(|| self.indivisible(op, by))
    }

    fn indivisible(&self, op: &'static str, by: usize) -> Error {
        let reason = format!("cannot divide the axes of shape {} by {by}", self.shape());
        Error::InvalidArgument { op, reason }
    }

    /// Reorders parts of axes, which then have the last three extents.
    fn moved(
        &self,
        op: &'static str,
        parts: [usize; 6],
        order: [usize; 6],
        last: [usize; 3],
    ) -> Result<Self> {
        let shape: Shape = self.dims()[..self.rank() - 3].iter().copied().chain(last).collect();
        let moved = || self.reshape(parts)?.permute(&order)?.reshape(shape);
        moved().map_err(|error| error.named(op))
    }

    /// Divides each element by `(k + alpha · m)^beta`, where m is the mean of the squares of `size` channels around it:
    /// the `size / 2` before it, itself and those after it; 0 beyond the first and the last channel. Channels are the
    /// second axis. PyTorch's `local_response_norm`, whose defaults are 1e-4, 0.75 and 1 (Krizhevsky et al., 2012).
    /// 16-bit floats are computed in `F32` and rounded once.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[[1.0], [2.0], [3.0]]];
    /// let y = x.local_response_norm(3, 3.0, 0.5, 2.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0 / 7f32.sqrt(), 0.5, 3.0 / 15f32.sqrt()]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for fewer than two axes or a `size` of 0; [`Error::UnsupportedDType`] for integers.
    pub fn local_response_norm(&self, size: usize, alpha: f64, beta: f64, k: f64) -> Result<Self> {
        let op = "local_response_norm";
        self.check_float(op)?;
        if size == 0 || self.rank() < 2 {
            return Err(self.indivisible(op, size));
        }
        if self.numel() == 0 {
            return Ok(self.clone());
        }
        // Beyond as many channels as there are, all are 0.
        let [before, after] = [size / 2, (size - 1) / 2].map(|reach| reach.min(self.dims()[1]));
        let x = self.widened()?;
        let squares = x.square()?.extended(1, [before, after], PadMode::Constant(0.0))?;
        let sums = squares.unfold(1, before + 1 + after, 1)?.sum_axis(-1, false)?;
        x.div(&sums.affine(alpha / size as f64, k)?.powf(beta)?)?.to_dtype(self.dtype())
    }
}

macro_rules! unpoolings {
    ($($n:literal $unpool:ident $pool:ident $shape:literal;)*) => {
        /// # Pooling reversed
        impl<B: Backend> Tensor<B> {
            $(
                #[doc = concat!("Images `", $shape, "` of a given size with these elements at `positions`, and 0 elsewhere. \
                    Positions are counted in a channel of an image, as [`", stringify!($pool), "`](Tensor::",
                    stringify!($pool), ") returns them. Of several elements at one position, the last remains, and it \
                    alone has a gradient.")]
                ///
                #[doc = concat!("```\nuse swath::{PoolOptions, cpu::prelude::*};\n\
                    let x = Tensor::ones([4; 2 + ", $n, "], DType::F32)?;\nlet (y, at) = x.", stringify!($pool),
                    "(PoolOptions::new([2; ", $n, "]))?;\nassert_eq!(y.", stringify!($unpool), "(&at, [4; ", $n,
                    "])?.dims(), x.dims());\n# Ok::<(), Error>(())\n```")]
                ///
                /// # Errors
                /// [`Error::InvalidShape`] for other axes; [`Error::ShapeMismatch`] for positions of another shape;
                /// [`Error::IndexOutOfRange`].
                pub fn $unpool(&self, positions: &Tensor<B>, size: impl PerAxis<$n>) -> Result<Self> {
                    self.max_unpool(stringify!($unpool), positions, &size.per_axis())
                }
            )*
        }
    };
}

unpoolings! {
    1 max_unpool1d max_pool1d_with_positions "[n, c, l]";
    2 max_unpool2d max_pool2d_with_positions "[n, c, h, w]";
    3 max_unpool3d max_pool3d_with_positions "[n, c, d, h, w]";
}

impl<B: Backend> Tensor<B> {
    fn max_unpool(&self, op: &'static str, positions: &Tensor<B>, size: &[usize]) -> Result<Self> {
        check_image_axes(op, self, size.len())?;
        if self.shape() != positions.shape() {
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *positions.shape() });
        }
        let shape: Shape = self.dims()[..2].iter().chain(size).copied().collect();
        shape.validate(op)?;
        let filled = || {
            let zeros = Tensor::zeros(shape, self.dtype())?.flatten(2, -1)?;
            zeros.scatter(2, &positions.flatten(2, -1)?, &self.flatten(2, -1)?)?.reshape(shape)
        };
        filled().map_err(|error| error.named(op))
    }
}

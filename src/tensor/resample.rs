//! `interpolate`, and selections and weighted sums along an axis.

use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::shape::Shape;

use super::base::Tensor;
use super::fused::pool::check_image_axes;

/// How [`Tensor::interpolate`] computes pixels. Names and definitions are PyTorch's.
///
/// Pixel i of n along an axis lies at `(i + ½) · extent / n - ½` between the pixels of the image, or with
/// `align_corners` at `i · (extent - 1) / (n - 1)`, which puts the outermost pixels on those of the image.
/// Beyond the image, its outermost pixels are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interpolation {
    /// Pixel `⌊i · extent / n⌋`, for every dtype.
    Nearest,
    /// The two pixels around the position along each axis, weighted by their nearness.
    Bilinear {
        /// True if the outermost pixels lie on those of the image.
        align_corners: bool,
    },
    /// The four pixels around the position along each axis, weighted by cubic convolution (Keys, 1981) with
    /// a = -¾.
    Bicubic {
        /// True if the outermost pixels lie on those of the image.
        align_corners: bool,
    },
}

/// The pixel before output `i` of an axis, and how far from it towards the next the output lies: exact before
/// the quotient is rounded.
fn position(i: usize, [extent, count]: [usize; 2], align_corners: bool) -> (i128, f64) {
    let [i, extent, count] = [i, extent, count].map(|number| number as i128);
    let (numerator, denominator) = match align_corners {
        true => (i * (extent - 1), (count - 1).max(1)),
        false => ((2 * i + 1) * extent - count, 2 * count),
    };
    let part = numerator.rem_euclid(denominator) as f64 / denominator as f64;
    (numerator.div_euclid(denominator), part)
}

/// The weight of a pixel at distance `d < 2` in cubic convolution (Keys, 1981).
fn cubic(d: f64) -> f64 {
    const A: f64 = -0.75;
    match d <= 1.0 {
        true => ((A + 2.0) * d - (A + 3.0)) * d * d + 1.0,
        false => ((A * d - 5.0 * A) * d + 8.0 * A) * d - 4.0 * A,
    }
}

/// # Interpolation
impl<B: Backend> Tensor<B> {
    /// Resizes images `[n, c, h, w]` to `size`, the new height and width, along one axis after the other.
    ///
    /// Weights are computed in `f64` and rounded to the dtype; a pixel of weight 0 has no part in a result, even if it
    /// is infinite or NaN. 16-bit floats are computed in `F32` and rounded
    /// once.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[0.0, 1.0]].reshape((1, 1, 1, 2))?;
    /// let linear = |align_corners| x.interpolate([1, 4], Interpolation::Bilinear { align_corners });
    /// assert_eq!(linear(false)?.to_vec::<f32>()?, [0.0, 0.25, 0.75, 1.0]);
    /// assert_eq!(linear(true)?.to_vec::<f32>()?, [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0]);
    /// let nearest = x.interpolate([2, 3], Interpolation::Nearest)?;
    /// assert_eq!(nearest.to_vec::<f32>()?, [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] unless there are four axes; [`Error::InvalidArgument`] for images or a size
    /// without a pixel; [`Error::UnsupportedDType`] for integers, except [`Interpolation::Nearest`].
    pub fn interpolate(&self, size: [usize; 2], mode: Interpolation) -> Result<Self> {
        B::engine_interpolate(self, size, mode)
    }

    pub(crate) fn interpolate_body(
        x: &Tensor<B>,
        size: [usize; 2],
        mode: Interpolation,
    ) -> Result<Self> {
        let op = "interpolate";
        check_image_axes(op, x, 2)?;
        let [n, c, h, w] = [0, 1, 2, 3].map(|axis| x.dims()[axis]);
        if [h, w].contains(&0) || size.contains(&0) {
            let reason = format!("no pixel in images of shape {} or in size {size:?}", x.shape());
            return Err(Error::InvalidArgument { op, reason });
        }
        let shape = Shape::new([n, c, size[0], size[1]]);
        shape.validate(op)?;
        let (is_cubic, align_corners) = match mode {
            Interpolation::Nearest if size[0].is_multiple_of(h) && size[1].is_multiple_of(w) => {
                let repeated = [n, c, h, size[0] / h, w, size[1] / w];
                return x.unsqueeze(3)?.unsqueeze(5)?.broadcast_to(repeated)?.reshape(shape);
            }
            Interpolation::Nearest => (false, false),
            Interpolation::Bilinear { align_corners } => (false, align_corners),
            Interpolation::Bicubic { align_corners } => (true, align_corners),
        };
        let is_nearest = mode == Interpolation::Nearest;
        if !is_nearest {
            x.check_float(op)?;
        }
        if x.numel() == 0 {
            return x.narrow(2, 0, 1)?.narrow(3, 0, 1)?.broadcast_to(shape);
        }
        let along = |y: &Tensor<B>, axis: usize| {
            let extents @ [extent, count] = [y.dims()[axis], size[axis - 2]];
            if is_nearest {
                // Exact, and within 128 bits.
                let nearest = |i| (i as u128 * extent as u128 / count as u128) as usize;
                return y.picked(op, axis, count, nearest);
            }
            let first = -i128::from(is_cubic);
            y.resampled(op, axis, count, if is_cubic { 4 } else { 2 }, |tap, i| {
                let (before, part) = position(i, extents, align_corners);
                let pixel = before + first + tap as i128;
                let distance = (first as f64 + tap as f64 - part).abs();
                let weight = if is_cubic { cubic(distance) } else { 1.0 - distance };
                (pixel.clamp(0, extent as i128 - 1) as usize, weight)
            })
        };
        // Rows are copied faster than pixels: they go first, unless that makes more pixels.
        let axes = if size[0] <= h { [2, 3] } else { [3, 2] };
        let mut y = if is_nearest { x.clone() } else { x.widened()? };
        for axis in axes.into_iter().filter(|&axis| x.dims()[axis] != size[axis - 2]) {
            y = along(&y, axis)?;
        }
        y.to_dtype(x.dtype())
    }

    /// Creates a value for each of `count` elements of an axis, which broadcasts to the other axes.
    pub(super) fn along(
        &self,
        op: &'static str,
        axis: usize,
        count: usize,
        dtype: DType,
        value: impl Fn(usize) -> Scalar,
    ) -> Result<Self> {
        let ones = std::iter::repeat_n(1, self.rank() - 1 - axis);
        let column: Shape = std::iter::once(count).chain(ones).collect();
        Tensor::from_scalars(op, column, dtype, value)
    }

    /// Selects element `from(i)` of an axis for every i below `count`.
    pub(super) fn picked(
        &self,
        op: &'static str,
        axis: usize,
        count: usize,
        from: impl Fn(usize) -> usize,
    ) -> Result<Self> {
        let index = |i| Scalar::Int(from(i) as i64);
        let index = Tensor::from_scalars(op, count.into(), DType::I64, index)?;
        self.index_select(axis, &index).map_err(|error| error.named(op))
    }

    /// Computes weighted sums along an axis: element i of `count` is the sum over `taps` terms of which `tap(k, i)`
    /// says the element and its weight. An element of weight 0 has no part in it, even if it is infinite or NaN.
    pub(super) fn resampled(
        &self,
        op: &'static str,
        axis: usize,
        count: usize,
        taps: usize,
        tap: impl Fn(usize, usize) -> (usize, f64),
    ) -> Result<Self> {
        let term = |k: usize| {
            let mut elements = self.picked(op, axis, count, |i| tap(k, i).0)?;
            let weight = |i| Scalar::Float(tap(k, i).1);
            let weights = self.along(op, axis, count, self.dtype(), weight)?;
            if (0..count).any(|i| tap(k, i).1 == 0.0) {
                // 0 times an infinite element is NaN; the product of -0 adds nothing to any sum.
                elements = elements.masked_fill(&weights.eq(0.0)?, -0.0)?;
            }
            Ok((elements, weights))
        };
        let (first, weights) = term(0)?;
        (1..taps).try_fold(first.mul(&weights)?, |sum, k| {
            let (elements, weights) = term(k)?;
            elements.mul_add(&weights, sum)
        })
    }
}

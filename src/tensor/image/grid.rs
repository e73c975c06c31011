//! `grid_sample` and `affine_grid`.

use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::shape::Shape;

use crate::tensor::base::Tensor;
use crate::tensor::pad::PadMode;

/// How [`Tensor::grid_sample`] computes a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GridMode {
    /// The nearest pixel, of two the one with an even index.
    Nearest,
    /// The two pixels around the position along each axis, weighted by their nearness.
    Bilinear,
    /// The four pixels around the position along each axis, weighted by cubic convolution (Keys, 1981) with a = -¾.
    Bicubic,
}

/// The pixels that [`Tensor::grid_sample`] reads beyond an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GridPadding {
    /// Zeros.
    Zeros,
    /// The outermost pixels, repeated.
    Border,
    /// The pixels mirrored at the centers of the outermost ones with `align_corners`, else at their outer edges.
    Reflection,
}

/// # Sampling at positions
impl<B: Backend> Tensor<B> {
    /// Reads images `[n, c, h, w]` at the positions `[n, h', w', 2]` of a grid, or images `[n, c, d, h, w]` at
    /// positions `[n, d', h', w', 3]`: `[n, c, h', w']` or `[n, c, d', h', w']`. The last axis of a grid has x, along
    /// the last axis of the image, then y, then z. −1 and 1 are the centers of the outermost pixels with
    /// `align_corners`, else their outer edges. PyTorch's `grid_sample`.
    ///
    /// Gradients reach the image and the grid; that of the grid of [`GridMode::Nearest`] is 0. 16-bit floats are
    /// computed in `F32` and rounded once. NaN or infinite pixels beside a position make the result NaN even if their
    /// weight is 0.
    ///
    /// ```
    /// use swath::{GridMode, GridPadding, prelude::*};
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]].reshape((1, 1, 2, 2))?;
    /// let grid = tensor![[0.0, -1.0], [1.0, 1.0], [2.0, 0.0]].reshape((1, 1, 3, 2))?;
    /// let y = x.grid_sample(&grid, GridMode::Bilinear, GridPadding::Border, true)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.5, 4.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the grid does not have these axes; [`Error::InvalidArgument`] for images without a
    /// pixel; [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for integers.
    pub fn grid_sample(
        &self,
        grid: &Tensor<B>,
        mode: GridMode,
        padding: GridPadding,
        align_corners: bool,
    ) -> Result<Self> {
        let op = "grid_sample";
        self.check_float(op)?;
        self.check_beside(op, grid)?;
        self.check_dtype(op, grid.dtype())?;
        let rank = self.rank();
        let (n, axes) = (self.shape().dim(0), rank.saturating_sub(2));
        if axes == 0 || grid.rank() != rank || grid.dims()[0] != n || grid.dims()[rank - 1] != axes
        {
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *grid.shape() });
        }
        let image = &self.dims()[2..];
        if image.contains(&0) {
            let reason = format!("no pixel in images of shape {}", self.shape());
            return Err(Error::InvalidArgument { op, reason });
        }
        // A pixel of 0 around the image is read for pixels beyond it.
        let pixels =
            self.widened()?.pad(&vec![(1, 1); axes], PadMode::Constant(0.0))?.flatten(2, -1)?;
        let positions = grid.widened()?.flatten(1, -2)?;
        let mut taps: Vec<[Tensor<B>; 2]> = Vec::new();
        for (axis, &extent) in image.iter().enumerate() {
            let position = positions.narrow(2, axes - 1 - axis, 1)?.squeeze(2)?;
            let own =
                GridAxis { extent: extent as f64, padding, align_corners }.taps(&position, mode)?;
            if axis == 0 {
                taps = own;
                continue;
            }
            let pairs = taps.iter().flat_map(|tap| own.iter().map(move |own| (tap, own)));
            let pairs = pairs.map(|([index, weight], [own, by])| {
                Ok([index.mul(extent as i64 + 2)?.add(own)?, weight.mul(by)?])
            });
            taps = pairs.collect::<Result<_>>()?;
        }
        let flat = [n, self.dims()[1], positions.dims()[1]];
        let zeros = Tensor::zeros(flat, pixels.dtype())?;
        let sum = taps.iter().try_fold(zeros, |sum, [index, weight]| {
            let read = pixels.gather(2, &index.unsqueeze(1)?.broadcast_to(flat)?)?;
            read.mul_add(&weight.unsqueeze(1)?, sum)
        })?;
        let shape: Shape =
            self.dims()[..2].iter().chain(&grid.dims()[1..rank - 1]).copied().collect();
        sum.reshape(shape)?.to_dtype(self.dtype())
    }

    /// Creates a grid of positions for [`grid_sample`](Tensor::grid_sample) that these affine maps `[n, 2, 3]` or
    /// `[n, 3, 4]` send the pixels of images of `size`, `[n, c, h, w]` or `[n, c, d, h, w]`, to: `[n, h, w, 2]` or
    /// `[n, d, h, w, 3]`. Row i of a map has the factors of x, y (and z) and the constant of coordinate i. PyTorch's
    /// `affine_grid`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let mirrored = tensor![[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]];
    /// let grid = mirrored.affine_grid((1, 3, 1, 2), true)?;
    /// assert_eq!(grid.to_vec::<f32>()?, [1.0, 0.0, -1.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if maps and size do not have these axes; [`Error::UnsupportedDType`] for integers.
    pub fn affine_grid(&self, size: impl Into<Shape>, align_corners: bool) -> Result<Self> {
        let (op, size) = ("affine_grid", size.into());
        self.check_float(op)?;
        size.validate(op)?;
        let axes = size.ndim().saturating_sub(2);
        if axes == 0 || *self.shape() != [size.dim(0), axes, axes + 1] {
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: size });
        }
        let image: Shape = size.dims()[2..].iter().copied().collect();
        let steps = image.contiguous_strides();
        let points = Shape::from([image.numel(), axes + 1]);
        points.validate(op)?;
        let points = Tensor::from_scalars(op, points, self.dtype().at_least_f32(), |i| {
            let (pixel, column) = (i / (axes + 1), i % (axes + 1));
            let Some(axis) = (axes - 1).checked_sub(column) else { return Scalar::Float(1.0) };
            let extent = image.dim(axis);
            let index = (pixel / steps.as_slice()[axis] as usize % extent) as f64;
            Scalar::Float(match align_corners {
                true if extent == 1 => 0.0,
                true => 2.0 * index / (extent as f64 - 1.0) - 1.0,
                false => (2.0 * index + 1.0) / extent as f64 - 1.0,
            })
        })?;
        let shape: Shape =
            [size.dim(0)].iter().chain(image.dims()).chain(&[axes]).copied().collect();
        points.matmul(&self.widened()?.t()?)?.reshape(shape)?.to_dtype(self.dtype())
    }
}

/// An axis of the images of [`Tensor::grid_sample`].
struct GridAxis {
    extent: f64,
    padding: GridPadding,
    align_corners: bool,
}

impl GridAxis {
    /// Positions in the axis for those beyond it.
    fn padded<B: Backend>(&self, position: Tensor<B>) -> Result<Tensor<B>> {
        let last = self.extent - 1.0;
        let position = match self.padding {
            GridPadding::Zeros => return Ok(position),
            GridPadding::Reflection if last > 0.0 => {
                let (first, span) =
                    if self.align_corners { (0.0, last) } else { (-0.5, self.extent) };
                let folded = position.sub(first)?.abs()?.rem(2.0 * span)?.sub(span)?.abs()?;
                folded.affine(-1.0, span + first)?
            }
            _ => position,
        };
        position.clamp(0.0, last)
    }

    /// The pixels along the axis that are read for each position, counted from the one before the image, and their
    /// weights.
    fn taps<B: Backend>(
        &self,
        position: &Tensor<B>,
        mode: GridMode,
    ) -> Result<Vec<[Tensor<B>; 2]>> {
        let (scale, shift) =
            if self.align_corners { (self.extent - 1.0, 0.0) } else { (self.extent, -0.5) };
        let position = position.add_scalar(1.0)?.affine(scale / 2.0, shift)?;
        let is_cubic = mode == GridMode::Bicubic;
        let position = if is_cubic { position } else { self.padded(position)? };
        let plain = position.detach();
        let before = if mode == GridMode::Nearest { plain.round()? } else { plain.floor()? };
        let part = position.sub(&before)?;
        let rest = part.affine(-1.0, 1.0)?;
        let (first, weights) = match mode {
            // 1, with a gradient of 0 for the positions.
            GridMode::Nearest => (0, vec![position.clamp(1.0, 1.0)?]),
            GridMode::Bilinear => (0, vec![rest, part]),
            GridMode::Bicubic => {
                const A: f64 = -0.75;
                let near =
                    |d: &Tensor<B>| d.affine(A + 2.0, -(A + 3.0))?.mul(d)?.mul(d)?.add_scalar(1.0);
                let far = |d: &Tensor<B>| {
                    let d = d.add_scalar(1.0)?;
                    d.affine(A, -5.0 * A)?
                        .mul(&d)?
                        .add_scalar(8.0 * A)?
                        .mul(&d)?
                        .add_scalar(-4.0 * A)
                };
                (-1, vec![far(&part)?, near(&part)?, near(&rest)?, far(&rest)?])
            }
        };
        let taps = (first..).zip(weights).map(|(offset, weight)| {
            let pixel = before.add_scalar(offset)?;
            let pixel = if is_cubic { self.padded(pixel)? } else { pixel };
            Ok([pixel.clamp(-1.0, self.extent)?.add_scalar(1.0)?.to_dtype(DType::I64)?, weight])
        });
        taps.collect()
    }
}

//! `resize` and `interpolate`.

use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::options::setters;
use crate::shape::{Axes, MAX_RANK, Shape};

use super::positions::{Along, Coordinates, NearestMode, ResizeMode};
use crate::tensor::base::Tensor;
use crate::tensor::fused::pool::check_image_axes;

/// How [`Tensor::interpolate`] computes pixels. Names and definitions are PyTorch's.
///
/// Pixel i of n along an axis lies at `(i + ½) · extent / n - ½` between the pixels of the image, or with
/// `align_corners` at `i · (extent - 1) / (n - 1)`, which puts the outermost pixels on those of the image.
/// Beyond the image, its outermost pixels are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interpolation {
    /// Pixel `⌊i · extent / n⌋`, for every dtype.
    Nearest,
    /// The pixel nearest to the position, of two the second, for every dtype.
    NearestExact,
    /// The two pixels around the position along each axis, weighted by their nearness: PyTorch's `linear`, `bilinear`
    /// and `trilinear`.
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
    /// The mean of the pixels in the area of each new pixel: [`adaptive_avg_pool2d`](Tensor::adaptive_avg_pool2d).
    Area,
    /// `Bilinear` with weights that reach over more pixels where an axis shrinks: PyTorch's `antialias`.
    BilinearAntialias,
    /// `Bicubic` with a = -½ and weights that reach over more pixels where an axis shrinks: PyTorch's `antialias`.
    BicubicAntialias,
}

/// The new size of images along their axes: extents such as `[480, 640]`, or factors such as `[2.0, 1.5]`.
#[derive(Clone, Debug, PartialEq)]
pub enum ImageSize {
    /// The new extents.
    Extents(Vec<usize>),
    /// The new extents are `⌊extent · factor⌋`, and positions are computed from the factors: PyTorch's `scale_factor`
    /// without `recompute_scale_factor`. They are unused with `align_corners`, with [`Interpolation::Area`], and, as in
    /// PyTorch, along axes that keep their extents, except with [`Interpolation::Bicubic`] and the nearest modes (where
    /// images of two axes are copied if both stay).
    Factors(Vec<f64>),
}

macro_rules! image_size_from {
    ($($Variant:ident [$($generics:tt)*] $t:ty;)*) => {$(
        impl<$($generics)*> From<$t> for ImageSize {
            fn from(size: $t) -> Self {
                ImageSize::$Variant(size.to_vec())
            }
        }
    )*};
}
image_size_from! {
    Extents [const N: usize] [usize; N]; Extents [] &[usize]; Extents [] Vec<usize>;
    Factors [const N: usize] [f64; N]; Factors [] &[f64]; Factors [] Vec<f64>;
}

/// How [`Resize::size`] is read. Names and definitions are those of ONNX's `keep_aspect_ratio_policy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AspectRatio {
    /// The new extents.
    #[default]
    Stretch,
    /// Upper bounds of the new extents: all axes have the smallest scale.
    NotLarger,
    /// Lower bounds of the new extents: all axes have the largest scale.
    NotSmaller,
}

/// Options of [`Tensor::resize`]. Definitions are those of ONNX's operator `Resize`.
///
/// ```
/// use swath::{Coordinates, NearestMode, Resize, ResizeMode, prelude::*};
/// let x = tensor![[1.0, 2.0, 3.0, 4.0]];
/// let last = Resize::new(ResizeMode::Nearest(NearestMode::Ceil)).axes(&[-1]);
/// let y = x.resize(&last.size(&[3]).coordinates(Coordinates::Asymmetric))?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 3.0, 4.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resize {
    /// Weights of the elements around a position.
    pub mode: ResizeMode,
    /// The axes to resize; negative ones count from the end. If empty, the last ones: as many as `size` or `scale` has
    /// numbers.
    pub axes: Vec<isize>,
    /// The new extents. If empty, `⌊extent · scale⌋`.
    pub size: Vec<usize>,
    /// The scales, from which positions are computed. If empty, the quotients of the new and the old extents.
    pub scale: Vec<f64>,
    /// The positions of the outputs.
    pub coordinates: Coordinates,
    /// Stretches the weights of an axis that shrinks.
    pub antialias: bool,
    /// Gives weight 0 to positions outside the axis, where the outermost elements are repeated otherwise.
    pub exclude_outside: bool,
    /// How `size` is read.
    pub aspect_ratio: AspectRatio,
}

impl Resize {
    /// Creates options for [`Coordinates::HalfPixel`], without a size.
    pub fn new(mode: ResizeMode) -> Self {
        Resize { mode, ..Resize::default() }
    }

    /// The resized axes of a tensor.
    fn plan(&self, op: &'static str, shape: &Shape) -> Result<Vec<Along<'_>>> {
        let count = self.size.len().max(self.scale.len());
        let last = || (0..count as isize).map(|axis| axis - count as isize).collect();
        let axes = if self.axes.is_empty() { last() } else { self.axes.clone() };
        let axes = Axes::from(axes).resolve(op, shape)?;
        let (size, scale) = (|i| self.size.get(i).copied(), |i| self.scale.get(i).copied());
        let whole = vec![[0.0, 1.0]; count];
        let roi = match &self.coordinates {
            Coordinates::TfCropAndResize { roi, .. } => roi,
            _ => &whole,
        };
        let given = [self.size.len(), self.scale.len()].into_iter().filter(|&len| len > 0);
        let ratios = axes
            .iter()
            .enumerate()
            .filter_map(|(i, &axis)| Some(size(i)? as f64 / shape.dim(axis) as f64));
        let common = match self.aspect_ratio {
            AspectRatio::NotLarger => ratios.reduce(f64::min),
            AspectRatio::NotSmaller => ratios.reduce(f64::max),
            AspectRatio::Stretch => None,
        };
        let along = |(i, &axis): (usize, &usize)| {
            let (extent, scale) = (shape.dim(axis), common.or(scale(i)));
            let length = scale.unwrap_or(1.0) * extent as f64;
            let count = match common {
                Some(_) => (length + 0.5) as usize,
                None => size(i).unwrap_or(length as usize),
            };
            // Of less than half an element, antialiasing would add up elements beyond all bounds.
            let least = if self.antialias { 0.5 } else { f64::MIN_POSITIVE };
            let is_small = count == 0 || scale.is_some() && !(least..).contains(&length);
            let fits = extent > 0 && !is_small && roi.get(i)?.iter().all(|end| end.is_finite());
            fits.then(|| Along {
                axis,
                extent,
                count,
                scale,
                coordinates: &self.coordinates,
                roi: roi[i],
            })
        };
        let plan: Option<Vec<Along<'_>>> = axes.iter().enumerate().map(along).collect();
        let is_complete =
            axes.len() == roi.len() && given.chain([count]).all(|len| len == axes.len() && len > 0);
        plan.filter(|_| is_complete).ok_or_else(|| {
            let reason = format!(
                "no pixel in images of shape {shape} or in size {:?} and scale {:?} of axes {axes:?}, or not as many \
                 numbers, and regions to crop, as axes",
                self.size, self.scale
            );
            Error::InvalidArgument { op, reason }
        })
    }
}

setters! {
    [] Resize {
        axes: &[isize], to_vec;
        size: &[usize], to_vec;
        scale: &[f64], to_vec;
        coordinates: Coordinates;
        antialias: bool;
        exclude_outside: bool;
        aspect_ratio: AspectRatio;
    }
}

/// # Interpolation
impl<B: Backend> Tensor<B> {
    /// Resizes images of one to three axes, `[n, c, l]`, `[n, c, h, w]` or `[n, c, d, h, w]`, to new extents or by
    /// factors, along one axis after the other. See [`resize`](Tensor::resize) for other axes and for ONNX's options.
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
    /// let nearest = x.interpolate([2.0, 1.5], Interpolation::Nearest)?;
    /// assert_eq!(nearest.to_vec::<f32>()?, [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] for other axes; [`Error::InvalidArgument`] for images or a size without a pixel;
    /// [`Error::UnsupportedDType`] for integers, except [`Interpolation::Nearest`] and
    /// [`Interpolation::NearestExact`].
    pub fn interpolate(&self, size: impl Into<ImageSize>, mode: Interpolation) -> Result<Self> {
        B::engine_interpolate(self, size.into(), mode)
    }

    pub(crate) fn interpolate_body(
        x: &Tensor<B>,
        size: ImageSize,
        mode: Interpolation,
    ) -> Result<Self> {
        use Interpolation::*;
        let op = "interpolate";
        let axes = match &size {
            ImageSize::Extents(size) => size.len(),
            ImageSize::Factors(scale) => scale.len(),
        };
        check_image_axes(op, x, axes)?;
        let image = &x.dims()[2..];
        let (size, scale) = match size {
            ImageSize::Extents(size) => (size, Vec::new()),
            ImageSize::Factors(scale) => {
                let size =
                    image.iter().zip(&scale).map(|(&extent, by)| (extent as f64 * by) as usize);
                (size.collect(), scale)
            }
        };
        // PyTorch copies along axes that keep their extents, whatever their factors.
        let is_kept = |axis: usize| match mode {
            Nearest | NearestExact => axes == 2 && *image == *size,
            Bicubic { .. } => false,
            _ => image[axis] == size[axis],
        };
        let scale = scale.into_iter().enumerate();
        let scale: Vec<f64> =
            scale.map(|(axis, by)| if is_kept(axis) { 1.0 } else { by }).collect();
        let antialias = matches!(mode, BilinearAntialias | BicubicAntialias);
        let kind = match mode {
            Area => return Ok(B::engine_adaptive_pool(op, x, &size, false, false)?.0),
            Nearest => ResizeMode::Nearest(NearestMode::Floor),
            NearestExact => ResizeMode::Nearest(NearestMode::PreferCeil),
            Bilinear { .. } | BilinearAntialias => ResizeMode::Linear,
            Bicubic { .. } => ResizeMode::Cubic { a: -0.75 },
            BicubicAntialias => ResizeMode::Cubic { a: -0.5 },
        };
        let (scale, coordinates) = match mode {
            Bilinear { align_corners: true } | Bicubic { align_corners: true } => {
                (Vec::new(), Coordinates::AlignCorners)
            }
            Nearest => (scale, Coordinates::Asymmetric),
            _ => (scale, Coordinates::HalfPixel),
        };
        let options = Resize { size, scale, coordinates, ..Resize::new(kind) };
        Tensor::resize_body(x, op, &options.antialias(antialias).exclude_outside(antialias))
    }

    /// Resizes any axes, one after the other, with ONNX's options. Weights are treated as by
    /// [`interpolate`](Tensor::interpolate), which has PyTorch's.
    ///
    /// ```
    /// use swath::{AspectRatio, Resize, ResizeMode, prelude::*};
    /// let image = Tensor::<CpuBackend>::ones((480, 640, 3), DType::F32)?;
    /// let fit = Resize::new(ResizeMode::Linear).antialias(true).axes(&[0, 1]);
    /// let small = image.resize(&fit.size(&[100, 100]).aspect_ratio(AspectRatio::NotLarger))?;
    /// assert_eq!(small.dims(), [75, 100, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] without a size or scale for each axis, for an axis or a size without an element, or a
    /// scale that is not positive; those of naming axes; [`Error::UnsupportedDType`] for integers, except
    /// [`ResizeMode::Nearest`].
    pub fn resize(&self, options: &Resize) -> Result<Self> {
        B::engine_resize(self, "resize", options)
    }

    pub(crate) fn resize_body(x: &Tensor<B>, op: &'static str, options: &Resize) -> Result<Self> {
        let mut plan = options.plan(op, x.shape())?;
        let resized =
            |shape: Shape, along: &Along<'_>| shape.with_axis(along.axis, Some(along.count));
        let shape = plan.iter().fold(*x.shape(), resized);
        shape.validate(op)?;
        if !matches!(options.mode, ResizeMode::Nearest(_)) {
            x.check_float(op)?;
        }
        if x.numel() == 0 {
            return plan
                .iter()
                .try_fold(x.clone(), |x, along| x.narrow(along.axis, 0, 1))?
                .broadcast_to(shape);
        }
        plan.retain(|along| !along.is_identity());
        // Rows are copied faster than pixels: they go first, unless that makes more pixels.
        plan.sort_by_key(|along| match along.count <= along.extent {
            true => (false, along.axis),
            false => (true, MAX_RANK - along.axis),
        });
        let crop = |y: Tensor<B>, along: &Along<'_>| match options.coordinates {
            Coordinates::TfCropAndResize { outside, .. } => {
                let mask = |i| Scalar::Int(along.is_outside(i).into());
                y.masked_fill(&y.along(op, along.axis, along.count, DType::Bool, mask)?, outside)
            }
            _ => Ok(y),
        };
        let ResizeMode::Nearest(rounding) = options.mode else {
            let mut y = x.widened()?;
            for along in &plan {
                let (taps, table) =
                    along.taps(op, options.mode, options.antialias, options.exclude_outside)?;
                y =
                    y.resampled(op, along.axis, along.count, taps, |tap, i| table[i * taps + tap])?;
                y = crop(y, along)?;
            }
            return y.to_dtype(x.dtype());
        };
        let nearest = |along: &Along<'_>, i| along.nearest(i, rounding);
        let is_even = match rounding {
            NearestMode::Floor => options.coordinates == Coordinates::Asymmetric,
            NearestMode::Ceil => false,
            _ => options.coordinates == Coordinates::HalfPixel,
        };
        let repeats = |along: &Along<'_>| {
            is_even && along.scale.is_none() && along.count.is_multiple_of(along.extent)
        };
        if x.rank() + plan.len() > MAX_RANK || !plan.iter().all(repeats) {
            return plan.iter().try_fold(x.clone(), |y, along| {
                crop(y.picked(op, along.axis, along.count, |i| nearest(along, i))?, along)
            });
        }
        plan.sort_by_key(|along| along.axis);
        let (mut y, mut repeated) = (x.clone(), *x.shape());
        for along in plan.iter().rev() {
            y = y.unsqueeze(along.axis + 1)?;
            repeated = repeated.insert(op, along.axis + 1, along.count / along.extent)?;
        }
        y.broadcast_to(repeated)?.reshape(shape)
    }
}

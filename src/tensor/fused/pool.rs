//! Pooling: `max_pool1d` to `max_pool3d`, `avg_pool1d` to `avg_pool3d`.
//!
//! The largest pixels come with their positions, which the derivative adds the upstream gradient to. The
//! composites reduce the taps of a view of the windows.

use smallvec::smallvec;

use crate::autodiff::graph::{Upstream, bytes_of, record, rule, rule_keeping, should_record};
use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::{FusedOp, Geometry, Sliding};
use crate::options::{PerAxis, setters};
use crate::runtime::recording::with_recording;
use crate::shape::{AxisSet, Shape};

use super::conv::{padded_extent, too_long};
use super::windows::{adjoint, three_axes, window_count, window_extent};
use super::{gradient_kernel, kernel};
use crate::backend::windows::geometry;
use crate::tensor::base::Tensor;

/// Options of poolings over images of N axes.
///
/// ```
/// use swath::PoolOptions;
/// let overlapping = PoolOptions::<2>::new(3).stride(2).padding(1);
/// assert_eq!((overlapping.kernel, overlapping.stride), ([3, 3], Some([2, 2])));
/// let same = PoolOptions { stride: Some([2, 2]), padding: [1, 1], ..PoolOptions::new([3, 3]) };
/// assert_eq!(overlapping, same);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PoolOptions<const N: usize> {
    /// Extents of a window.
    pub kernel: [usize; N],
    /// Distance between neighbouring windows in pixels; `None`: the kernel, so that windows do not overlap.
    pub stride: Option<[usize; N]>,
    /// Number of padding pixels before and after the image, at most half a kernel.
    pub padding: [usize; N],
    /// Number of padding pixels after the image; `None`: as many as before it.
    pub padding_after: Option<[usize; N]>,
    /// Distance between the pixels of a window; 1 if they are adjacent.
    pub dilation: [usize; N],
    /// Rounds the number of windows up, so that the last one may reach beyond the padding.
    pub ceil_mode: bool,
    /// Divides the sum of a window by its number of pixels of the image and of the padding, not of the image alone. False
    /// by default, unlike in PyTorch.
    pub count_include_pad: bool,
}

impl<const N: usize> PoolOptions<N> {
    /// Creates windows that do not overlap, without padding.
    pub fn new(kernel: impl PerAxis<N>) -> Self {
        PoolOptions {
            kernel: kernel.per_axis(),
            stride: None,
            padding: [0; N],
            padding_after: None,
            dilation: [1; N],
            ceil_mode: false,
            count_include_pad: false,
        }
    }

    /// Sets `stride`.
    #[must_use]
    pub fn stride(mut self, stride: impl PerAxis<N>) -> Self {
        self.stride = Some(stride.per_axis());
        self
    }

    /// Sets `padding_after`.
    #[must_use]
    pub fn padding_after(mut self, padding: impl PerAxis<N>) -> Self {
        self.padding_after = Some(padding.per_axis());
        self
    }
}

setters! {
    [const N: usize] PoolOptions<N> {
        kernel: impl PerAxis<N>, per_axis;
        padding: impl PerAxis<N>, per_axis;
        dilation: impl PerAxis<N>, per_axis;
        ceil_mode: bool;
        count_include_pad: bool;
    }
}

impl<const N: usize> PoolOptions<N> {
    /// The windows along an axis of images of this shape, each with a pixel of the image.
    fn sliding(&self, op: &'static str, images: &Shape, axis: usize) -> Result<Sliding> {
        let &PoolOptions { ceil_mode, count_include_pad, .. } = self;
        let extent = images.dim(2 + axis);
        let (kernel, dilation) = (self.kernel[axis], self.dilation[axis]);
        let stride = self.stride.unwrap_or(self.kernel)[axis];
        let [before, after] =
            [self.padding, self.padding_after.unwrap_or(self.padding)].map(|p| p[axis]);
        let longest = before.max(after);
        if longest <= kernel / 2 {
            padded_extent(op, axis, images, [before, after])?;
        }
        let count = || {
            let reach = match ceil_mode {
                true => after.checked_add(stride.checked_sub(1)?)?,
                false => after,
            };
            let window = window_extent(kernel, dilation).filter(|_| longest <= kernel / 2)?;
            let count = window_count(extent, [before, reach], window, stride)?;
            // The last window begins in the image or before it.
            let count = count - usize::from(ceil_mode && (count - 1) * stride >= extent + before);
            let padding = [before, after].map(|pixels| pixels as isize);
            let all = Sliding { image: extent, kernel, stride, dilation, padding, windows: count };
            Some(count).filter(|&count| count > 0 && all.empty_window().is_none())
        };
        let windows = count().ok_or_else(|| {
            let padded = before.checked_add(after).and_then(|both| both.checked_add(extent));
            let cause = match window_extent(kernel, dilation) {
                _ if kernel == 0 => "the kernel must be at least 1",
                _ if stride == 0 => "the stride must be at least 1",
                _ if dilation == 0 => "the dilation must be at least 1",
                _ if longest > kernel / 2 => "the padding must be at most half the kernel",
                Some(window) if padded.is_none_or(|padded| window <= padded) => {
                    "expected a pixel in every window"
                }
                _ => "the window is larger than the padded image",
            };
            let reason = format!(
                "axis {axis} of images of shape {images}: {cause}; got kernel {kernel}, stride {stride}, dilation \
                 {dilation}, padding {before} before and {after} after the image"
            );
            Error::InvalidArgument { op, reason }
        })?;
        // Taps that are beyond the image for all windows, or beyond its padding where that counts, are left out. As a
        // window is twice the padding or longer, none begins more than the image's extent after the first, but for the
        // last in `ceil_mode`.
        let cut = match count_include_pad || ceil_mode {
            false => before.saturating_sub(extent) / dilation,
            true if longest > extent.max(MOST_COUNTED) => return Err(too_long(op, axis, images)),
            true => 0,
        };
        let before = before - cut * dilation;
        let seen = extent + before + if count_include_pad { after } else { 0 };
        let kernel = (kernel - cut).min(seen.div_ceil(dilation).max(1));
        let padding = [before, after].map(|pixels| pixels as isize);
        Ok(Sliding { image: extent, kernel, stride, dilation, padding, windows })
    }
}

impl<const N: usize> Default for PoolOptions<N> {
    /// Windows of 2 pixels along each axis.
    fn default() -> Self {
        PoolOptions::new([2; N])
    }
}

/// Maximum padding beyond the image's extent. Every window visits the taps in it.
const MOST_COUNTED: usize = 1 << 16;

macro_rules! poolings {
    ($($n:literal $max:ident $max_positions:ident $avg:ident $shape:literal;)*) => {
        /// # Pooling
        impl<B: Backend> Tensor<B> {
            $(
                #[doc = concat!("The largest pixel of each window of images `", $shape, "`: NaN where a window has \
                    one.")]
                /// The number of windows along an axis is
                /// `(extent + both paddings - dilation · (kernel - 1) - 1) / stride + 1`, rounded down, or up in
                /// `ceil_mode`, as long as the last window begins in the image or the padding before it. The
                /// gradient goes to the first of equal pixels.
                ///
                #[doc = concat!("```\nuse swath::cpu::prelude::*;\n\
                    let x = Tensor::ones([4; 2 + ", $n, "], DType::F32)?;\nlet y = x.", stringify!($max), "(PoolOptions::new([2; ", $n, "]))?;\nassert_eq!(y.dims()[2..], [2; ", $n, "]);\n\
                    # Ok::<(), Error>(())\n```")]
                ///
                /// # Errors
                /// [`Error::InvalidShape`] for other axes; [`Error::InvalidArgument`] if no window fits, a window
                /// has no pixel of the image (where PyTorch returns −∞), the padding exceeds half a kernel, or a
                /// kernel, stride or dilation is 0; [`Error::UnsupportedDType`] for integers.
                pub fn $max(&self, options: PoolOptions<$n>) -> Result<Self> {
                    let op = stringify!($max);
                    Ok(B::engine_max_pool(self, self.pooling(op, &options)?, false)?.0)
                }

                #[doc = concat!("[`", stringify!($max), "`](Tensor::", stringify!($max), ") and the positions of \
                    the largest pixels in their channel of an image, of dtype `I64`.")]
                ///
                #[doc = concat!("```\nuse swath::cpu::prelude::*;\n\
                    let x = Tensor::ones([4; 2 + ", $n, "], DType::F32)?;\nlet (_, at) = x.", stringify!($max_positions), "(PoolOptions::new([2; ", $n, "]))?;\nassert_eq!(at.dtype(), DType::I64);\n\
                    # Ok::<(), Error>(())\n```")]
                ///
                /// # Errors
                #[doc = concat!("Those of [`", stringify!($max), "`](Tensor::", stringify!($max), ").")]
                pub fn $max_positions(&self, options: PoolOptions<$n>) -> Result<(Self, Self)> {
                    let op = stringify!($max_positions);
                    let (y, positions) = B::engine_max_pool(self, self.pooling(op, &options)?, true)?;
                    let missing = || Error::Unsupported { op, backend: B::NAME };
                    Ok((y, positions.ok_or_else(missing)?))
                }

                #[doc = concat!("The mean of each window of images `", $shape, "`, over its pixels inside the \
                    image, or over the padding too with `count_include_pad`, which is 0.")]
                #[doc = concat!("Windows are those of [`", stringify!($max), "`](Tensor::", stringify!($max), ").")]
                ///
                #[doc = concat!("```\nuse swath::cpu::prelude::*;\n\
                    let x = Tensor::ones([4; 2 + ", $n, "], DType::F32)?;\nlet y = x.", stringify!($avg), "(PoolOptions::new([2; ", $n, "]))?;\nassert_eq!(y.dims()[2..], [2; ", $n, "]);\n\
                    # Ok::<(), Error>(())\n```")]
                ///
                /// # Errors
                #[doc = concat!("Those of [`", stringify!($max), "`](Tensor::", stringify!($max), ").")]
                pub fn $avg(&self, options: PoolOptions<$n>) -> Result<Self> {
                    let geometry = self.pooling(stringify!($avg), &options)?;
                    B::engine_avg_pool(self, geometry, options.count_include_pad)
                }
            )*
        }
    };
}

poolings! {
    1 max_pool1d max_pool1d_with_positions avg_pool1d "[n, c, l]";
    2 max_pool2d max_pool2d_with_positions avg_pool2d "[n, c, h, w]";
    3 max_pool3d max_pool3d_with_positions avg_pool3d "[n, c, d, h, w]";
}

impl<B: Backend> Tensor<B> {
    /// The windows of this tensor's images.
    fn pooling<const N: usize>(
        &self,
        op: &'static str,
        options: &PoolOptions<N>,
    ) -> Result<Geometry> {
        check_image_axes(op, self, N)?;
        self.check_float(op)?;
        let mut all = [Sliding::default(); N];
        for (axis, along) in all.iter_mut().enumerate() {
            *along = options.sliding(op, self.shape(), axis)?;
        }
        geometry(op, three_axes(&all))
    }

    /// The largest pixels and, if wanted, their positions.
    pub(crate) fn max_pool_body(
        x: &Tensor<B>,
        geometry: Geometry,
        with_positions: bool,
    ) -> Result<(Self, Option<Self>)> {
        if x.numel() == 0 {
            let y = of_no_pixels(x, &geometry)?;
            let positions = Tensor::zeros(y.shape(), DType::I64)?;
            return Ok((y, Some(positions)));
        }
        let with_positions = with_positions || should_record(x.dtype(), &[x]);
        let op = FusedOp::MaxPool { x: x.data(), geometry, with_positions };
        if !with_positions && let Some([y]) = kernel::<B, 1>(&op)? {
            return Ok((Tensor::from_data(y), None));
        }
        let (y, positions) = match kernel::<B, 2>(&op)? {
            Some([y, positions]) => (y, Tensor::from_data(positions)),
            None => with_recording(false, || max_composite(x, &geometry))?,
        };
        let (shape, kept) = (*x.shape(), positions.clone());
        let y = record("max_pool", y, &[x], |_| {
            rule_keeping(bytes_of([Some(kept.data())]), move |upstream: &Upstream<'_, B>, _| {
                let flat = |x: &Tensor<B>| x.flatten(2, -1);
                let [n, channels] = [shape.dim(0), shape.dim(1)];
                let pixels: usize = shape.dims()[2..].iter().product();
                let zeros = Tensor::zeros((n, channels, pixels), upstream.g.dtype())?;
                let sums = zeros.scatter_added(2, flat(&kept)?, &flat(upstream.g)?)?;
                Ok(smallvec![Some(sums.reshape(shape)?)])
            })
        });
        Ok((y, Some(positions)))
    }

    pub(crate) fn avg_pool_body(
        x: &Tensor<B>,
        geometry: Geometry,
        count_include_pad: bool,
    ) -> Result<Self> {
        if x.numel() == 0 {
            return of_no_pixels(x, &geometry);
        }
        let op = FusedOp::AvgPool { x: x.data(), geometry, count_include_pad };
        let Some([y]) = kernel::<B, 1>(&op)? else {
            return avg_composite(x, &geometry, count_include_pad);
        };
        Ok(record("avg_pool", y, &[x], |_| {
            let shape = *x.shape();
            rule(move |upstream: &Upstream<'_, B>, _| {
                let g = upstream.g;
                let op = FusedOp::AvgPoolGrad { g: g.data(), geometry, count_include_pad };
                let gradient = match gradient_kernel::<B, 1>(upstream, &op)? {
                    Some([gradient]) => gradient,
                    None => {
                        adjoint(shape, g, &[g], |x| avg_composite(x, &geometry, count_include_pad))?
                    }
                };
                Ok(smallvec![Some(gradient)])
            })
        }))
    }
}

/// Fails unless `x` is `[n, c, …]` with so many axes of an image.
pub(in crate::tensor) fn check_image_axes<B: Backend>(
    op: &'static str,
    x: &Tensor<B>,
    axes: usize,
) -> Result<()> {
    let reason = match axes {
        _ if x.rank() == axes + 2 => return Ok(()),
        1 => "expected 3 axes: [n, channels, length]",
        2 => "expected 4 axes: [n, channels, height, width]",
        _ => "expected 5 axes: [n, channels, depth, height, width]",
    };
    Err(Error::InvalidShape { op, shape: *x.shape(), reason })
}

/// The pooling of no images or no channels.
fn of_no_pixels<B: Backend>(x: &Tensor<B>, geometry: &Geometry) -> Result<Tensor<B>> {
    let windows = &geometry.windows()[5 - x.rank()..];
    let shape: Shape = x.dims()[..2].iter().chain(windows).copied().collect();
    (2..x.rank()).try_fold(x.clone(), |x, axis| x.narrow(axis, 0, 1))?.broadcast_to(shape)
}

/// The axes of the taps in a view of the windows of `x`.
fn tap_axes<B: Backend>(x: &Tensor<B>) -> AxisSet {
    (x.rank()..2 * x.rank() - 2).collect()
}

/// Defines [`FusedOp::MaxPool`].
fn max_composite<B: Backend>(x: &Tensor<B>, geometry: &Geometry) -> Result<(B::Tensor, Tensor<B>)> {
    let (x, taps) = (x.detach(), tap_axes(x));
    let seen = x.windows_of(geometry, f64::NEG_INFINITY)?;
    let largest = seen.max(Some(&taps), true)?;
    // Positions grow with the taps of a window; -1 outside the image.
    let image: Shape = [1, 1].iter().chain(&x.dims()[2..]).copied().collect();
    let positions = Tensor::from_scalars("max_pool", image, DType::I64, |i| Scalar::Int(i as i64))?;
    let positions = positions.windows_of(geometry, -1.0)?.broadcast_to(seen.shape())?;
    let is_it = seen.eq(&largest)?.logical_or(&seen.isnan()?)?.logical_and(&positions.ge(0)?)?;
    let none = Tensor::full_scalar("max_pool", Shape::scalar(), Scalar::Int(i64::MAX), DType::I64)?;
    let found = Tensor::where_cond(&is_it, &positions, &none)?.min(Some(&taps), false)?;
    // Read from the images: equal pixels may be zeros of two signs.
    let y = x.flatten(2, -1)?.gather(2, &found.flatten(2, -1)?)?.reshape(found.shape())?;
    Ok((y.into_data(), found))
}

/// Defines [`FusedOp::AvgPool`].
fn avg_composite<B: Backend>(
    x: &Tensor<B>,
    geometry: &Geometry,
    count_include_pad: bool,
) -> Result<Tensor<B>> {
    let sum = x.widened()?.windows_of(geometry, 0.0)?.sum(Some(&tap_axes(x)), false)?;
    let counted = if count_include_pad { geometry.with_padding() } else { *geometry };
    let own = 5 - x.rank()..3;
    let counts = |axis: usize| -> Vec<usize> {
        let along = counted.axis(axis);
        (0..along.windows).map(|window| along.taps_of(window).len()).collect()
    };
    let counts = own.clone().map(counts).collect::<Vec<_>>();
    let windows: Shape = geometry.windows()[own].iter().copied().collect();
    let counts = Tensor::from_scalars("avg_pool", windows, sum.dtype(), |i| {
        let each = counts.iter().rev().scan(i, |left, counts| {
            let count = counts[*left % counts.len()];
            *left /= counts.len();
            Some(count as f64)
        });
        Scalar::Float(each.product())
    })?;
    sum.div(&counts)?.to_dtype(x.dtype())
}

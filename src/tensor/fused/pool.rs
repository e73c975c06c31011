//! Pooling: `max_pool1d`, `max_pool2d`, `avg_pool1d`, `avg_pool2d`.
//!
//! The largest pixels come with their positions, which the derivative adds the upstream gradient to. The
//! composites go through the places of a window, as those of convolutions do.

use smallvec::smallvec;

use crate::autodiff::graph::{Upstream, bytes_of, record, rule, rule_keeping, should_record};
use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::{FusedOp, Pooling, window_count, window_extent};
use crate::options::{PerAxis, setters};
use crate::runtime::recording::with_recording;
use crate::shape::Shape;

use super::conv::{image, padded_extent, places, three, too_long, window_pixels};
use super::{composite_gradients, gradient_kernel, kernel};
use crate::tensor::{PadMode, Tensor};

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
    /// Distance between the pixels of a window; 1 if they are adjacent, as means require.
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

impl<const N: usize> Default for PoolOptions<N> {
    /// Windows of 2 pixels along each axis.
    fn default() -> Self {
        PoolOptions::new([2; N])
    }
}

/// Longest padding beyond the image's extent whose places are visited, for each of the windows.
const MOST_COUNTED: usize = 1 << 16;

macro_rules! poolings {
    ($($n:literal $max:ident $max_positions:ident $avg:ident $shape:literal;)*) => {
        /// # Pooling
        impl<B: Backend> Tensor<B> {
            $(
                #[doc = concat!("The largest pixel of each window of images `", $shape, "`: NaN where a window has \
                    one.")]
                /// The number of windows along an axis is
                /// `(extent + 2 · padding - dilation · (kernel - 1) - 1) / stride + 1`, rounded down, or up in
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
                #[doc = concat!("Those of [`", stringify!($max), "`](Tensor::", stringify!($max), "), and \
                    [`Error::InvalidArgument`] for a dilation other than 1.")]
                pub fn $avg(&self, options: PoolOptions<$n>) -> Result<Self> {
                    let op = stringify!($avg);
                    if options.dilation != [1; $n] {
                        let reason = format!("dilation {:?} must be 1", options.dilation);
                        return Err(Error::InvalidArgument { op, reason });
                    }
                    B::engine_avg_pool(self, self.pooling(op, &options)?)
                }
            )*
        }
    };
}

poolings! {
    1 max_pool1d max_pool1d_with_positions avg_pool1d "[n, c, l]";
    2 max_pool2d max_pool2d_with_positions avg_pool2d "[n, c, h, w]";
}

impl<B: Backend> Tensor<B> {
    /// The windows of this tensor's images.
    fn pooling<const N: usize>(
        &self,
        op: &'static str,
        options: &PoolOptions<N>,
    ) -> Result<Pooling> {
        let PoolOptions { ceil_mode, count_include_pad, .. } = *options;
        let (mut kernel, mut dilations) = (options.kernel, options.dilation);
        let mut paddings = options.padding;
        let mut stride = options.stride.unwrap_or(options.kernel);
        check_image_axes(op, self, N)?;
        self.check_float(op)?;
        let mut windows = [1; 3];
        for (axis, own) in kernel.iter_mut().enumerate() {
            let (kernel, dilation, zeros) = (*own, dilations[axis], paddings[axis]);
            let step = stride[axis];
            let extent = self.dims()[2 + axis];
            if zeros <= kernel / 2 {
                padded_extent(op, axis, self.shape(), [zeros; 2])?;
            }
            let count = || {
                let after =
                    if ceil_mode { zeros.checked_add(step.checked_sub(1)?)? } else { zeros };
                let window = window_extent(kernel, dilation).filter(|_| zeros <= kernel / 2)?;
                let count = window_count(extent, [zeros, after], window, step)?;
                // The last window begins in the image or before it.
                let count = count - usize::from(ceil_mode && (count - 1) * step >= extent + zeros);
                // Every window contains a pixel of the image: dilated ones that begin before it may step over it.
                let has_pixel = |at: usize| {
                    let place = zeros.saturating_sub(at * step).div_ceil(dilation);
                    let pixel = at * step + place * dilation;
                    place < kernel && (zeros..zeros + extent).contains(&pixel)
                };
                let before = (0..count).take_while(|&at| at * step < zeros && extent < dilation);
                let last = count.checked_sub(1)?;
                Some(count).filter(|_| before.chain([last]).all(has_pixel))
            };
            windows[3 - N + axis] = count().ok_or_else(|| {
                let window = window_extent(kernel, dilation);
                let padded = zeros.checked_mul(2).and_then(|both| both.checked_add(extent));
                let cause = match window {
                    _ if kernel == 0 => "the kernel must be at least 1",
                    _ if step == 0 => "the stride must be at least 1",
                    _ if dilation == 0 => "the dilation must be at least 1",
                    _ if zeros > kernel / 2 => "the padding must be at most half the kernel",
                    Some(window) if padded.is_none_or(|padded| window <= padded) => {
                        "expected a pixel in every window"
                    }
                    _ => "the window is larger than the padded image",
                };
                let reason = format!(
                    "axis {axis} of images of shape {}: {cause}; got kernel {kernel}, stride {step}, dilation \
                     {dilation}, padding {zeros}",
                    self.shape()
                );
                Error::InvalidArgument { op, reason }
            })?;
            // Places of a window that are beyond the image, or its padding where that counts, are never visited. As a
            // window is twice the padding or longer, none begins, but for the last in `ceil_mode`, more than the image's
            // extent after the first, so that all share the places that are cut.
            let cut = match count_include_pad || ceil_mode {
                false => zeros.saturating_sub(extent) / dilation,
                true if zeros > extent.max(MOST_COUNTED) => {
                    return Err(too_long(op, axis, self.shape()));
                }
                true => 0,
            };
            paddings[axis] -= cut * dilation;
            *own -= 2 * cut;
            let padded = extent + 2 * paddings[axis];
            *own = (*own).min(padded.div_ceil(dilation).max(1));
            // A longer stride has the same, single window, and a longer dilation windows of one pixel.
            for step in [&mut stride[axis], &mut dilations[axis]] {
                *step = (*step).min(padded.max(1));
            }
        }
        Ok(Pooling {
            kernel: three(1, &kernel),
            stride: three(1, &stride),
            dilation: three(1, &dilations),
            padding: three(0, &paddings),
            windows,
            count_include_pad,
        })
    }

    /// The largest pixels and, if wanted, their positions.
    pub(crate) fn max_pool_body(
        x: &Tensor<B>,
        pooling: Pooling,
        with_positions: bool,
    ) -> Result<(Self, Option<Self>)> {
        if x.numel() == 0 {
            let y = of_no_pixels(x, &pooling)?;
            let positions = Tensor::zeros(y.shape(), DType::I64)?;
            return Ok((y, Some(positions)));
        }
        let with_positions = with_positions || should_record(x.dtype(), &[x]);
        let op = FusedOp::MaxPool { x: x.data(), pooling, with_positions };
        if !with_positions && let Some([y]) = kernel::<B, 1>(&op)? {
            return Ok((Tensor::from_data(y), None));
        }
        let (y, positions) = match kernel::<B, 2>(&op)? {
            Some([y, positions]) => (y, Tensor::from_data(positions)),
            None => with_recording(false, || max_composite(x, &pooling))?,
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

    pub(crate) fn avg_pool_body(x: &Tensor<B>, pooling: Pooling) -> Result<Self> {
        if x.numel() == 0 {
            return of_no_pixels(x, &pooling);
        }
        match kernel::<B, 1>(&FusedOp::AvgPool { x: x.data(), pooling })? {
            Some([y]) => Ok(record("avg_pool", y, &[x], |_| {
                let (shape, image) = (*x.shape(), image(x));
                rule(move |upstream: &Upstream<'_, B>, _| {
                    let g = upstream.g;
                    let op = FusedOp::AvgPoolGrad { g: g.data(), image, pooling };
                    match gradient_kernel::<B, 1>(upstream, &op)? {
                        Some([gradient]) => Ok(smallvec![Some(gradient)]),
                        None => {
                            // The mean is linear, so that its gradient is the same at any images.
                            let x = Tensor::zeros(shape, g.dtype())?.requires_grad();
                            composite_gradients(upstream, &[Some(&x)], || {
                                avg_composite(&x, &pooling)
                            })
                        }
                    }
                })
            })),
            None => avg_composite(x, &pooling),
        }
    }
}

/// Fails unless `x` is `[n, c, …]` with so many axes of an image, one or two.
pub(in crate::tensor) fn check_image_axes<B: Backend>(
    op: &'static str,
    x: &Tensor<B>,
    axes: usize,
) -> Result<()> {
    let reason = match axes {
        _ if x.rank() == axes + 2 => return Ok(()),
        1 => "expected 3 axes: [n, channels, length]",
        _ => "expected 4 axes: [n, channels, height, width]",
    };
    Err(Error::InvalidShape { op, shape: *x.shape(), reason })
}

/// The pooling of no images or no channels.
fn of_no_pixels<B: Backend>(x: &Tensor<B>, pooling: &Pooling) -> Result<Tensor<B>> {
    let windows = &pooling.windows[5 - x.rank()..];
    let shape: Shape = x.dims()[..2].iter().chain(windows).copied().collect();
    (2..x.rank()).try_fold(x.clone(), |x, axis| x.narrow(axis, 0, 1))?.broadcast_to(shape)
}

/// Pads images with `value` until they contain every window.
fn around<B: Backend>(x: &Tensor<B>, value: f64, pooling: &Pooling) -> Result<Tensor<B>> {
    let mut x = x.clone();
    for axis in 2..x.rank() {
        let at = axis + 3 - x.rank();
        let reach = (pooling.windows[at] - 1) * pooling.stride[at]
            + (pooling.kernel[at] - 1) * pooling.dilation[at]
            + 1;
        let before = pooling.padding[at];
        let after = reach.saturating_sub(before + x.dims()[axis]);
        x = x.extended(axis, [before, after], PadMode::Constant(value))?;
    }
    Ok(x)
}

/// Positions in the image of one place of every window, in row-major order; -1 outside the image.
fn positions(image: [usize; 3], place: [usize; 3], pooling: &Pooling) -> Vec<i64> {
    let at = |axis: usize, window: usize| {
        let x = (window * pooling.stride[axis] + place[axis] * pooling.dilation[axis])
            .checked_sub(pooling.padding[axis])?;
        (x < image[axis]).then_some(x)
    };
    let position =
        |[z, y, x]: [usize; 3]| Some((at(0, z)? * image[1] + at(1, y)?) * image[2] + at(2, x)?);
    places(pooling.windows).map(|window| position(window).map_or(-1, |at| at as i64)).collect()
}

/// Defines [`FusedOp::MaxPool`].
fn max_composite<B: Backend>(x: &Tensor<B>, pooling: &Pooling) -> Result<(B::Tensor, Tensor<B>)> {
    let (extents, axes) = (image(x), x.rank() - 2);
    let padded = around(&x.detach(), f64::NEG_INFINITY, pooling)?;
    let windows = &pooling.windows[3 - axes..];
    let shape: Shape = x.dims()[..2].iter().chain(windows).copied().collect();
    let pixels = |place| {
        window_pixels(&padded, 2, place, pooling.windows, [pooling.stride, pooling.dilation])?
            .reshape(shape)
    };
    let mut y: Option<Tensor<B>> = None;
    for place in places(pooling.kernel) {
        let seen = pixels(place)?;
        y = Some(match y {
            None => seen,
            Some(y) => y.maximum(&seen)?,
        });
    }
    let y = y.expect("a window has a place");
    let mut found = Tensor::full_scalar("max_pool", shape, Scalar::Int(-1), DType::I64)?;
    let all: Vec<[usize; 3]> = places(pooling.kernel).collect();
    for &place in all.iter().rev() {
        let here = positions(extents, place, pooling);
        let here =
            Tensor::from_scalars("max_pool", windows.iter().copied().collect(), DType::I64, |i| {
                Scalar::Int(here[i])
            })?;
        let seen = pixels(place)?;
        let is_it = seen.eq(&y)?.logical_or(&seen.isnan()?)?.logical_and(&here.ge(0.0)?)?;
        found = Tensor::where_cond(&is_it, &here.broadcast_to(shape)?, &found)?;
    }
    // Read from the images: equal pixels may be zeros of two signs.
    let y = x.detach().flatten(2, -1)?.gather(2, &found.flatten(2, -1)?)?.reshape(shape)?;
    Ok((y.into_data(), found))
}

/// Defines [`FusedOp::AvgPool`].
fn avg_composite<B: Backend>(x: &Tensor<B>, pooling: &Pooling) -> Result<Tensor<B>> {
    let (extents, axes, dtype) = (image(x), x.rank() - 2, x.dtype());
    let padded = around(&x.widened()?, 0.0, pooling)?;
    let windows = &pooling.windows[3 - axes..];
    let shape: Shape = x.dims()[..2].iter().chain(windows).copied().collect();
    let mut sum: Option<Tensor<B>> = None;
    // Places that count in the divisor: pixels of the image, or also of the padding.
    let margin = if pooling.count_include_pad { pooling.padding } else { [0; 3] };
    let counted: [usize; 3] = std::array::from_fn(|axis| extents[axis] + 2 * margin[axis]);
    let within = Pooling {
        padding: std::array::from_fn(|axis| pooling.padding[axis] - margin[axis]),
        ..*pooling
    };
    let mut counts = vec![0.0; windows.iter().product()];
    for place in places(pooling.kernel) {
        let seen =
            window_pixels(&padded, 2, place, pooling.windows, [pooling.stride, pooling.dilation])?;
        let seen = seen.reshape(shape)?;
        sum = Some(match sum {
            None => seen,
            Some(sum) => sum.add(&seen)?,
        });
        for (count, position) in counts.iter_mut().zip(positions(counted, place, &within)) {
            *count += f64::from(u8::from(position >= 0));
        }
    }
    let sum = sum.expect("a window has a place");
    let counts =
        Tensor::from_scalars("avg_pool", windows.iter().copied().collect(), sum.dtype(), |i| {
            Scalar::Float(counts[i])
        })?;
    sum.div(&counts)?.to_dtype(dtype)
}

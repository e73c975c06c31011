//! Pooling to a given size: `adaptive_avg_pool1d`, `adaptive_avg_pool2d`, `adaptive_max_pool1d`, `adaptive_max_pool2d`.
//!
//! ```text
//! one window              a reduction
//! maximum, equal windows  max pooling with these windows
//! otherwise               one axis after the other: the means or the largest pixels of its windows
//! ```
//!
//! With k windows on an axis of extent e, the windows that contain pixel j are window j of e on an axis of extent k.
//! The gradient of the means is therefore a window sum too, of g divided by the windows' numbers of pixels.

use std::ops::Range;

use smallvec::smallvec;

use crate::autodiff::graph::{Upstream, record, rule};
use crate::backend::Backend;
use crate::backend::windows::{geometry, greatest_common_divisor};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::Sliding;
use crate::runtime::recording::with_recording;
use crate::shape::{AxisSet, Shape};

use super::pool::check_image_axes;
use super::windows::three_axes;
use crate::tensor::base::Tensor;

/// Maximum length of a window that is summed pixel by pixel. Longer windows use a sum over an axis, which takes 2.8
/// times as long for 9 rows of 60 elements but is more accurate for long windows.
const ADDED_PIXELS: usize = 16;

/// Minimum number of elements of the other axes for which short windows are summed one by one. For 5 × 5 windows of
/// `[8, 64, 57, 57]` that takes a fifth of the time of the sums at every pixel, for 9999 windows of `[1, 1, 30000]` four
/// times as long as they, because an addition takes at least 1 µs.
const ADDED_ELEMENTS: usize = 512;

macro_rules! adaptive_poolings {
    ($($avg:ident $max:ident $max_positions:ident $size:ident: $Size:ty => $extents:expr, $shape:literal $n:literal $value:literal;)*) => {
        /// # Pooling to a given size
        impl<B: Backend> Tensor<B> {
            $(
                #[doc = concat!("Average pooling of images `", $shape, "` to `", stringify!($size), "` windows. Along an axis \
                    of extent e, window i of k begins at pixel ⌊i · e / k⌋ and ends before pixel ⌈(i + 1) · e / k⌉, \
                    so adjacent windows may overlap by one or two pixels.")]
                ///
                /// A single window is the mean of the whole image, computed by a reduction. 16-bit floats are
                /// rounded once.
                ///
                #[doc = concat!("```\nuse swath::cpu::prelude::*;\n\
                    let x = Tensor::ones([5; 2 + ", $n, "], DType::F32)?;\nlet y = x.", stringify!($avg), "(", $value, ")?;\n\
                    assert_eq!(y.dims()[2..], [2; ", $n, "]);\n# Ok::<(), Error>(())\n```")]
                ///
                /// # Errors
                /// [`Error::InvalidShape`] for other axes; [`Error::InvalidArgument`] for images or a size
                /// without a pixel; [`Error::UnsupportedDType`] for integers.
                pub fn $avg(&self, $size: $Size) -> Result<Self> {
                    Ok(B::engine_adaptive_pool(stringify!($avg), self, &$extents, false, false)?.0)
                }

                #[doc = concat!("Max pooling of images `", $shape, "`: the largest pixel of each window, NaN if the \
                    window has one. The windows are those of [`", stringify!($avg), "`](Tensor::", stringify!($avg), ").")]
                /// The gradient flows to the first of equal pixels.
                ///
                #[doc = concat!("```\nuse swath::cpu::prelude::*;\n\
                    let x = Tensor::ones([5; 2 + ", $n, "], DType::F32)?;\nlet y = x.", stringify!($max), "(", $value, ")?;\n\
                    assert_eq!(y.dims()[2..], [2; ", $n, "]);\n# Ok::<(), Error>(())\n```")]
                ///
                /// # Errors
                #[doc = concat!("Those of [`", stringify!($avg), "`](Tensor::", stringify!($avg), ").")]
                pub fn $max(&self, $size: $Size) -> Result<Self> {
                    Ok(B::engine_adaptive_pool(stringify!($max), self, &$extents, true, false)?.0)
                }

                #[doc = concat!("[`", stringify!($max), "`](Tensor::", stringify!($max), ") and the positions of \
                    the largest pixels in their channel of an image, of dtype `I64`.")]
                ///
                #[doc = concat!("```\nuse swath::cpu::prelude::*;\n\
                    let x = Tensor::ones([5; 2 + ", $n, "], DType::F32)?;\nlet (_, at) = x.", stringify!($max_positions), "(", $value, ")?;\n\
                    assert_eq!(at.dtype(), DType::I64);\n# Ok::<(), Error>(())\n```")]
                ///
                /// # Errors
                #[doc = concat!("Those of [`", stringify!($avg), "`](Tensor::", stringify!($avg), ").")]
                pub fn $max_positions(&self, $size: $Size) -> Result<(Self, Self)> {
                    let op = stringify!($max_positions);
                    let (y, positions) = B::engine_adaptive_pool(op, self, &$extents, true, true)?;
                    let missing = || Error::Unsupported { op, backend: B::NAME };
                    Ok((y, positions.ok_or_else(missing)?))
                }
            )*
        }
    };
}

adaptive_poolings! {
    adaptive_avg_pool1d adaptive_max_pool1d adaptive_max_pool1d_with_positions length: usize => [length], "[n, c, l]" 1 "2";
    adaptive_avg_pool2d adaptive_max_pool2d adaptive_max_pool2d_with_positions size: [usize; 2] => size, "[n, c, h, w]" 2 "[2, 2]";
}

/// Returns the pixels of window `i` of `count` along an axis.
fn window(i: usize, [extent, count]: [usize; 2]) -> Range<usize> {
    let [i, extent, count] = [i, extent, count].map(|number| number as u128);
    (i * extent / count) as usize..((i + 1) * extent).div_ceil(count) as usize
}

/// Returns the length of the longest window.
fn longest([extent, count]: [usize; 2]) -> usize {
    match extent % count {
        0 => extent / count,
        // Window i begins `(i · rest mod count) / count` into a pixel and ends `rest / count` later, beyond whole
        // pixels. One of the windows thus reaches a further pixel, unless `rest` divides `count`.
        rest => extent / count + 1 + usize::from(count % rest != 0),
    }
}

impl<B: Backend> Tensor<B> {
    pub(crate) fn adaptive_pool_body(
        op: &'static str,
        x: &Tensor<B>,
        size: &[usize],
        is_max: bool,
        with_positions: bool,
    ) -> Result<(Self, Option<Self>)> {
        check_image_axes(op, x, size.len())?;
        x.check_float(op)?;
        let image = &x.dims()[2..];
        if image.contains(&0) || size.contains(&0) {
            let reason = format!("no pixel in images of shape {} or in size {size:?}", x.shape());
            return Err(Error::InvalidArgument { op, reason });
        }
        let shape: Shape = x.dims()[..2].iter().chain(size).copied().collect();
        shape.validate(op)?;
        let image_axes: AxisSet = (2..x.rank()).collect();
        if x.numel() == 0 {
            let y = x.sum(Some(&image_axes), true)?.broadcast_to(shape)?;
            return Ok((y, Some(Tensor::zeros(shape, DType::I64)?)));
        }
        if size.iter().all(|&count| count == 1) {
            if is_max {
                let pixels = x.flatten(2, -1)?;
                let positions = pixels.argmax(2, true)?;
                let y = pixels.gather(2, &positions)?.reshape(shape)?;
                return Ok((y, Some(positions.reshape(shape)?)));
            }
            return Ok((x.mean(Some(&image_axes), true)?, None));
        }
        let axes = (2..x.rank()).zip(size).filter(|&(axis, &count)| x.dims()[axis] != count);
        if !is_max {
            let mut y = x.widened()?;
            for (axis, &count) in axes {
                y = y.window_means(op, axis, [y.dims()[axis], count], false)?;
            }
            return Ok((y.to_dtype(x.dtype())?, None));
        }
        if image.iter().zip(size).all(|(extent, count)| extent % count == 0) {
            let axes: Vec<Sliding> = image
                .iter()
                .zip(size)
                .map(|(&image, &windows)| {
                    let kernel = image / windows;
                    Sliding { image, kernel, stride: kernel, windows, ..Sliding::default() }
                })
                .collect();
            let geometry = geometry(op, three_axes(&axes))?;
            return B::engine_max_pool(x, geometry, with_positions);
        }
        let (mut y, mut positions) = (x.clone(), None);
        if with_positions {
            let pixels = image.iter().product::<usize>();
            let numbers = Tensor::arange_as(0.0, pixels as f64, 1.0, DType::I64)?;
            positions = Some(numbers.reshape(Shape::new(image))?.broadcast_to(x.shape())?);
        }
        for (axis, &count) in axes.rev() {
            let windows = [y.dims()[axis], count];
            let largest = y.largest_along(op, axis, windows, longest(windows))?;
            y = y.gather(axis, &largest)?;
            positions = positions.map(|at: Self| at.gather(axis, &largest)).transpose()?;
        }
        Ok((y, positions))
    }

    /// Computes the means of windows along an axis, or with `is_gradient` the gradient of the pixels.
    fn window_means(
        &self,
        op: &'static str,
        axis: usize,
        windows: [usize; 2],
        is_gradient: bool,
    ) -> Result<Self> {
        let y = with_recording(false, || {
            let pixels = self.along(op, axis, windows[1], self.dtype(), |i| {
                Scalar::Float(window(i, windows).len() as f64)
            })?;
            match is_gradient {
                false => self.window_sums(op, axis, windows)?.div(&pixels),
                true => self.div(&pixels)?.window_sums(op, axis, [windows[1], windows[0]]),
            }
        })?;
        Ok(record("adaptive_avg_pool", y.into_data(), &[self], |_| {
            rule(move |upstream: &Upstream<'_, B>, _| {
                let gradient = upstream.g.window_means(op, axis, windows, !is_gradient)?;
                Ok(smallvec![Some(gradient)])
            })
        }))
    }

    /// Computes the sums of windows along an axis. A window reads its own pixels only.
    fn window_sums(&self, op: &'static str, axis: usize, windows: [usize; 2]) -> Result<Self> {
        let [extent, count] = windows;
        // The windows repeat with each period.
        let periods = greatest_common_divisor(extent, count);
        let [pixels, kinds] = windows.map(|number| number / periods);
        let longest = longest([pixels, kinds]);
        let is_long = longest > ADDED_PIXELS;
        if count < extent && (is_long || self.numel() / pixels >= ADDED_ELEMENTS) {
            let dims = self.dims();
            let split = dims[..axis].iter().copied().chain([periods, pixels]);
            let split: Shape = split.chain(dims[axis + 1..].iter().copied()).collect();
            let (x, axis_of_pixels) = (self.reshape(split)?, axis + 1);
            let sums = (0..kinds).map(|i| {
                let Range { start, end } = window(i, [pixels, kinds]);
                match is_long {
                    true => x
                        .narrow(axis_of_pixels, start, end - start)?
                        .sum(Some(&[axis_of_pixels]), true),
                    false => x.adjacent_sums(axis_of_pixels, start..end, 1),
                }
            });
            let sums = sums.collect::<Result<Vec<Self>>>()?;
            let sums = Tensor::cat(&sums, axis_of_pixels)?;
            return sums.reshape(self.shape().with_axis(axis, Some(count)));
        }
        // The sums that begin at every pixel, first those of the shortest windows, then those of one pixel more.
        let shortest = extent.div_ceil(count);
        let starts = extent - shortest + 1;
        let mut sums = self.adjacent_sums(axis, 0..shortest, starts)?;
        if longest > shortest {
            let last = self.narrow(axis, shortest, starts - 1)?;
            let longer = sums.narrow(axis, 0, starts - 1)?.add(&last)?;
            sums = Tensor::cat(&[sums, longer], axis)?;
        }
        sums.picked(op, axis, count, |i| {
            let window = window(i, windows);
            window.start + (window.len() - shortest) * starts
        })
    }

    /// Adds the pixels of a window and, at the same time, of those that begin up to `count - 1` pixels after it.
    fn adjacent_sums(&self, axis: usize, window: Range<usize>, count: usize) -> Result<Self> {
        let first = self.narrow(axis, window.start, count)?;
        (window.start + 1..window.end)
            .try_fold(first, |sum, pixel| sum.add(self.narrow(axis, pixel, count)?))
    }

    /// Returns the index of the first largest pixel of each window along an axis. Windows have at most `longest` pixels.
    fn largest_along(
        &self,
        op: &'static str,
        axis: usize,
        windows: [usize; 2],
        longest: usize,
    ) -> Result<Self> {
        let count = windows[1];
        // A shorter window repeats its last pixel. A repeated pixel is never the first of equal ones.
        let pixels = self.detach().picked(op, axis, count.saturating_mul(longest), |i| {
            let window = window(i / longest, windows);
            (window.start + i % longest).min(window.end - 1)
        })?;
        let dims = self.dims();
        let split = dims[..axis].iter().copied().chain([count, longest]);
        let pixels =
            pixels.reshape(split.chain(dims[axis + 1..].iter().copied()).collect::<Shape>())?;
        let starts = self
            .along(op, axis, count, DType::I64, |i| Scalar::Int(window(i, windows).start as i64))?;
        pixels.argmax(axis + 1, false)?.add(&starts)
    }
}

//! Poolings to a given size: `adaptive_avg_pool1d`, `adaptive_avg_pool2d`, `adaptive_max_pool1d`,
//! `adaptive_max_pool2d`.
//!
//! ```text
//! one window          a reduction
//! equal windows       the pooling of these windows
//! else                one axis after the other: the windows' pixels selected, then their mean or maximum
//! ```

use std::ops::Range;

use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::Pooling;
use crate::shape::{AxisSet, Shape};

use super::conv::three;
use super::pool::check_image_axes;
use crate::tensor::Tensor;

macro_rules! adaptive_poolings {
    ($($avg:ident $max:ident $size:ident: $Size:ty => $extents:expr, $shape:literal;)*) => {
        impl<B: Backend> Tensor<B> {
            $(
                #[doc = concat!("The mean of each of as many windows of images `", $shape, "` as `", stringify!($size),
                    "` says. Along an axis of extent e, window i of k begins at pixel ⌊i · e / k⌋ and ends before \
                    pixel ⌈(i + 1) · e / k⌉, so that neighbours may overlap by one or two.")]
                ///
                /// One window is the mean of the whole image, at the cost of a reduction. 16-bit floats are
                /// rounded once.
                ///
                /// # Errors
                /// [`Error::InvalidShape`] for other axes; [`Error::InvalidArgument`] for images or a size
                /// without a pixel; [`Error::UnsupportedDType`] for integers.
                pub fn $avg(&self, $size: $Size) -> Result<Self> {
                    B::engine_adaptive_pool(stringify!($avg), self, &$extents, false)
                }

                #[doc = concat!("The largest pixel of each window of images `", $shape, "`: NaN where a window has \
                    one. Windows are those of [`", stringify!($avg), "`](Tensor::", stringify!($avg), ").")]
                /// The gradient goes to the first of equal pixels.
                ///
                /// # Errors
                #[doc = concat!("Those of [`", stringify!($avg), "`](Tensor::", stringify!($avg), ").")]
                pub fn $max(&self, $size: $Size) -> Result<Self> {
                    B::engine_adaptive_pool(stringify!($max), self, &$extents, true)
                }
            )*
        }
    };
}

adaptive_poolings! {
    adaptive_avg_pool1d adaptive_max_pool1d length: usize => [length], "[n, c, l]";
    adaptive_avg_pool2d adaptive_max_pool2d size: [usize; 2] => size, "[n, c, h, w]";
}

/// Pixels of window `i` of `count` along an axis.
fn window(i: usize, [extent, count]: [usize; 2]) -> Range<usize> {
    let [i, extent, count] = [i, extent, count].map(|number| number as u128);
    (i * extent / count) as usize..((i + 1) * extent).div_ceil(count) as usize
}

/// The largest number of pixels of the windows.
fn longest([extent, count]: [usize; 2]) -> usize {
    match count > extent {
        true => 1 + usize::from(count % extent != 0),
        false => (0..count).map(|i| window(i, [extent, count]).len()).max().unwrap_or(0),
    }
}

impl<B: Backend> Tensor<B> {
    pub(crate) fn adaptive_pool_body(
        op: &'static str,
        x: &Tensor<B>,
        size: &[usize],
        is_max: bool,
    ) -> Result<Self> {
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
            return x.sum(Some(&image_axes), true)?.broadcast_to(shape);
        }
        if size.iter().all(|&count| count == 1) {
            if is_max {
                let pixels = x.flatten(2, -1)?;
                return pixels.gather(2, &pixels.argmax(2, true)?)?.reshape(shape);
            }
            return x.mean(Some(&image_axes), true);
        }
        if image.iter().zip(size).all(|(extent, count)| extent % count == 0) {
            let kernel: AxisSet =
                image.iter().zip(size).map(|(extent, count)| extent / count).collect();
            let kernel = three(1, &kernel);
            let (windows, count_include_pad) = (three(1, size), false);
            let (dilation, padding) = ([1; 3], [0; 3]);
            let pooling =
                Pooling { kernel, stride: kernel, dilation, padding, windows, count_include_pad };
            return match is_max {
                true => Ok(B::engine_max_pool(x, pooling, false)?.0),
                false => B::engine_avg_pool(x, pooling),
            };
        }
        let mut y = if is_max { x.clone() } else { x.widened()? };
        for (axis, &count) in (2..x.rank()).zip(size).rev() {
            let windows = [y.dims()[axis], count];
            let longest = longest(windows);
            y = match is_max {
                _ if windows[0] == count => y,
                true => y.largest_along(op, axis, windows, longest)?,
                // The last pixel of a window with fewer takes part several times.
                false => y.resampled(op, axis, count, longest, |place, i| {
                    let window = window(i, windows);
                    let pixel = (window.start + place).min(window.end - 1);
                    let times = if pixel + 1 < window.end { 1 } else { longest - window.len() + 1 };
                    (pixel, 1.0 / (window.len() * times) as f64)
                })?,
            };
        }
        y.to_dtype(x.dtype())
    }

    /// Takes the first largest pixel of windows along an axis, of at most `longest` pixels.
    fn largest_along(
        &self,
        op: &'static str,
        axis: usize,
        windows: [usize; 2],
        longest: usize,
    ) -> Result<Self> {
        let count = windows[1];
        // The last pixel of a window with fewer is repeated, and is not the first then.
        let pixels = self.detach().picked(op, axis, count.saturating_mul(longest), |i| {
            let window = window(i / longest, windows);
            (window.start + i % longest).min(window.end - 1)
        })?;
        let dims = self.dims();
        let split = dims[..axis].iter().copied().chain([count, longest]);
        let pixels =
            pixels.reshape(split.chain(dims[axis + 1..].iter().copied()).collect::<Shape>())?;
        let ones = std::iter::repeat_n(1, self.rank() - 1 - axis);
        let starts: Shape = std::iter::once(count).chain(ones).collect();
        let starts = Tensor::from_scalars(op, starts, DType::I64, |i| {
            Scalar::Int(window(i, windows).start as i64)
        })?;
        self.gather(axis, &pixels.argmax(axis + 1, false)?.add(&starts)?)
    }
}

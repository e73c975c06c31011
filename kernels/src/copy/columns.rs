//! im2col, which lays the windows of a convolution out as columns of a matrix, and its adjoint
//! col2im.
//!
//! ```text
//! for each image, channel, row and column of the kernel:     a row of the matrix
//!     for each row of the output:                            a run of that row
//!         zeros where the window exceeds the image, a strided copy between
//! ```
//!
//! A convolution is then a product of the weights `[out, channels * kh * kw]` with this matrix.
//! With groups there is one product per group, and the matrix's rows are split evenly among them.

use core::mem::zeroed;

use super::Plain;
use super::strided::copy_run;
use crate::output::Output;
use crate::simd::{ElementTask, Float, Lanes};

/// The shapes that [`im2col`](crate::im2col) and [`col2im`](crate::col2im) convert between: images
/// `[images, channels, height, width]` and columns
/// `[images, channels * kernel[0] * kernel[1], output height * output width]`.
///
/// For one dimension, use `height` 1 and `kernel` `[1, k]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Im2col {
    /// Number of images.
    pub images: usize,
    /// Channels of an image, over all groups.
    pub channels: usize,
    /// Rows of an image.
    pub height: usize,
    /// Columns of an image.
    pub width: usize,
    /// Rows and columns of the window; not 0.
    pub kernel: [usize; 2],
    /// Distance between windows, down and across; not 0.
    pub stride: [usize; 2],
    /// Zeros added at each edge: above and below, left and right.
    pub padding: [usize; 2],
    /// Distance between rows and between columns of the window; 1 if adjacent; not 0.
    pub dilation: [usize; 2],
}

impl Im2col {
    /// Number of windows down and across an image; `None` if there are none, or if it overflows.
    ///
    /// ```
    /// use swath_kernels::Im2col;
    ///
    /// let shape = Im2col {
    ///     images: 1, channels: 3, height: 8, width: 9,
    ///     kernel: [3, 3], stride: [2, 1], padding: [1, 0], dilation: [1, 2],
    /// };
    /// assert_eq!(shape.output(), Some([4, 5]));
    /// ```
    pub fn output(&self) -> Option<[usize; 2]> {
        let along = |axis: usize, extent: usize| {
            let reach = (self.kernel[axis].checked_sub(1)?).checked_mul(self.dilation[axis])?;
            let padded = extent.checked_add(self.padding[axis].checked_mul(2)?)?;
            let last = padded.checked_sub(reach)?.checked_sub(1)?;
            Some(last.checked_div(self.stride[axis])? + 1)
        };
        if self.dilation.contains(&0) {
            return None;
        }
        Some([along(0, self.height)?, along(1, self.width)?])
    }

    /// Elements of the images; `None` if that overflows.
    pub fn images_len(&self) -> Option<usize> {
        let plane = self.height.checked_mul(self.width)?;
        self.images.checked_mul(self.channels)?.checked_mul(plane)
    }

    /// Elements of the columns; `None` if that overflows or there is no window.
    pub fn columns_len(&self) -> Option<usize> {
        let [rows, cols] = self.output()?;
        let window = self.kernel[0].checked_mul(self.kernel[1])?;
        let planes = self.images.checked_mul(self.channels)?;
        planes.checked_mul(window)?.checked_mul(rows.checked_mul(cols)?)
    }

    /// Returns the number of windows down and across; panics unless the lengths match the shape.
    #[track_caller]
    pub(crate) fn check(&self, name: &str, images: usize, columns: usize) -> [usize; 2] {
        match self.output() {
            Some(output)
                if self.images_len() == Some(images) && self.columns_len() == Some(columns) =>
            {
                output
            }
            _ => panic!(
                "{name}: {self:?} does not fit {images} elements of images and {columns} of columns"
            ),
        }
    }

    /// The windows along an axis whose element `tap` is inside the image: the first one, one past
    /// the last, and the position of the first one's element.
    fn inside(&self, axis: usize, tap: usize, output: usize) -> (usize, usize, usize) {
        let extent = [self.height, self.width][axis];
        let (stride, padding) = (self.stride[axis], self.padding[axis]);
        let shift = tap * self.dilation[axis];
        let first = padding.saturating_sub(shift).div_ceil(stride).min(output);
        let end = (extent + padding).saturating_sub(shift).div_ceil(stride).clamp(first, output);
        // Only meaningful if there is a window inside.
        let place = first.wrapping_mul(stride).wrapping_add(shift).saturating_sub(padding);
        (first, end, place)
    }
}

/// Lays the windows of images out as columns; panics unless the lengths match the shape.
#[inline(always)]
#[track_caller]
pub(crate) fn im2col<T: Plain>(
    images: &[T],
    columns: &mut (impl Output<T> + ?Sized),
    shape: Im2col,
) {
    let (mut out, len) = columns.as_raw();
    let [rows, cols] = shape.check("im2col", images.len(), len);
    if len == 0 {
        return;
    }
    // SAFETY: every `Plain` type is an integer, a float or a boolean, for which zero bits are
    // valid.
    let zero = unsafe { zeroed::<T>() };
    let stride = shape.stride[1] as isize;
    let plane = shape.height * shape.width;
    for image in (0..shape.images * shape.channels).map(|i| i * plane) {
        for ky in 0..shape.kernel[0] {
            let (top, bottom, first_y) = shape.inside(0, ky, rows);
            for kx in 0..shape.kernel[1] {
                let (left, right, first_x) = shape.inside(1, kx, cols);
                for oy in 0..rows {
                    // SAFETY: the loops write `columns_len` elements, one after the other. Windows
                    // `left..right` of those in `top..bottom` have this element inside the plane,
                    // as `inside` computes.
                    unsafe {
                        let is_inside = (top..bottom).contains(&oy) && left < right;
                        let (left, right) = if is_inside { (left, right) } else { (cols, cols) };
                        copy_run(&zero, 0, out, left, false);
                        if is_inside {
                            let y = first_y + (oy - top) * shape.stride[0];
                            let from = images.as_ptr().add(image + y * shape.width + first_x);
                            copy_run(from, stride, out.add(left), right - left, false);
                        }
                        copy_run(&zero, 0, out.add(right), cols - right, false);
                        out = out.add(cols);
                    }
                }
            }
        }
    }
}

/// Adds columns back into images; `output` is the result of [`Im2col::check`].
pub(crate) struct Col2im<'a, E> {
    pub columns: &'a [E],
    pub images: &'a mut [E],
    pub shape: Im2col,
    pub output: [usize; 2],
}

impl<E: Float> ElementTask<E> for Col2im<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, _simd: S) {
        let Col2im { columns, images, shape, output: [rows, cols] } = self;
        let mut matrix_rows = columns.chunks_exact(rows * cols);
        for plane in images.chunks_exact_mut(shape.height * shape.width) {
            plane.fill(E::ZERO);
            for ky in 0..shape.kernel[0] {
                let (top, bottom, first_y) = shape.inside(0, ky, rows);
                for kx in 0..shape.kernel[1] {
                    let (left, right, first_x) = shape.inside(1, kx, cols);
                    let Some(terms) = matrix_rows.next() else { return };
                    if left == right {
                        continue;
                    }
                    for oy in top..bottom {
                        let terms = &terms[oy * cols + left..oy * cols + right];
                        let y = first_y + (oy - top) * shape.stride[0];
                        let sums = &mut plane[y * shape.width + first_x..][..];
                        if shape.stride[1] == 1 {
                            let sums = &mut sums[..terms.len()];
                            for i in 0..terms.len() {
                                sums[i] = sums[i] + terms[i];
                            }
                        } else {
                            for i in 0..terms.len() {
                                sums[i * shape.stride[1]] = sums[i * shape.stride[1]] + terms[i];
                            }
                        }
                    }
                }
            }
        }
    }
}

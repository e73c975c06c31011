//! Copies, fills, permutes and transposes of elements of any type, windows of images as columns, and
//! stores of large results past the caches.

use crate::copy::{self, Col2im, Fence, Im2col, Permute, Plain, is_streamed};
use crate::dispatch::Enter as _;
use crate::output::{Output, Place};
use crate::simd::Float;

pub use crate::copy::transpose;

/// Writes `dst[i] = src[offset + i * stride]`.
///
/// ```
/// let mut every_other = [0i64; 3];
/// swath_kernels::copy_strided(&[1, 2, 3, 4, 5, 6], 1, 2, &mut every_other);
/// assert_eq!(every_other, [2, 4, 6]);
/// ```
///
/// # Panics
/// If an element lies outside `src`.
#[track_caller]
pub fn copy_strided<T: Plain>(
    src: &[T],
    offset: usize,
    stride: isize,
    dst: &mut (impl Output<T> + ?Sized),
) {
    copy::copy_strided(src, offset, stride, dst);
}

/// Writes `x` to every element.
///
/// ```
/// let mut y = Box::new_uninit_slice(2);
/// swath_kernels::fill(&mut y[..], true);
/// // SAFETY: both elements have been written.
/// assert_eq!(*unsafe { y.assume_init() }, [true, true]);
/// ```
pub fn fill<T: Plain>(dst: &mut (impl Output<T> + ?Sized), x: T) {
    copy::copy_strided(&[x], 0, 0, dst);
}

/// Copies elements that lie in any layout into adjacent ones.
///
/// ```
/// use swath_kernels::{Permute, permute};
///
/// // [2, 1, 3] from [1, 3, 2]: the first axis becomes the second, the last the first.
/// let x = [0u16, 1, 2, 3, 4, 5];
/// let mut y = [0; 6];
/// permute(&x, &mut y, Permute { dims: &[2, 1, 3], strides: &[1, 6, 2], offset: 0 });
/// assert_eq!(y, [0, 2, 4, 1, 3, 5]);
/// ```
///
/// # Panics
/// If an element lies outside `src`, `dst` has not as many elements as the extents say, or extents and
/// strides are not as many, or more than 8.
#[track_caller]
pub fn permute<T: Plain>(src: &[T], dst: &mut (impl Output<T> + ?Sized), shape: Permute) {
    copy::permute(src, dst, shape);
}

/// Lays the windows of images out as columns: `columns[n, (c, ky, kx), (oy, ox)] = images[n, c, oy *
/// stride + ky * dilation - padding, ox * …]`, 0 outside the image.
///
/// ```
/// use swath_kernels::{Im2col, im2col};
///
/// let shape = Im2col {
///     images: 1, channels: 1, height: 1, width: 4,
///     kernel: [1, 3], stride: [1, 1], padding: [0, 1], dilation: [1, 1],
/// };
/// let mut columns = [0.0; 12];
/// im2col(&[1.0f32, 2.0, 3.0, 4.0], &mut columns, shape);
/// assert_eq!(columns, [0.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 2.0, 3.0, 4.0, 0.0]);
/// ```
///
/// # Panics
/// If the slices are not of the shape's lengths, or the shape has no window.
#[track_caller]
pub fn im2col<T: Plain>(images: &[T], columns: &mut (impl Output<T> + ?Sized), shape: Im2col) {
    copy::im2col(images, columns, shape);
}

/// Adds the columns back into the images: every element is the sum, from +0, of the elements of the
/// columns that [`im2col`] takes from it, rows of the window first to last, in each its columns first to
/// last. What was in `images` is overwritten.
///
/// ```
/// use swath_kernels::{Im2col, col2im};
///
/// let shape = Im2col {
///     images: 1, channels: 1, height: 1, width: 4,
///     kernel: [1, 2], stride: [1, 1], padding: [0, 0], dilation: [1, 1],
/// };
/// let mut images = [0.0; 4];
/// col2im(&[1.0f32, 2.0, 3.0, 10.0, 20.0, 30.0], &mut images, shape);
/// assert_eq!(images, [1.0, 12.0, 23.0, 30.0]);
/// ```
///
/// # Panics
/// If the slices are not of the shape's lengths, or the shape has no window.
#[track_caller]
pub fn col2im<E: Float>(columns: &[E], images: &mut [E], shape: Im2col) {
    let output = shape.check("col2im", images.len(), columns.len());
    if !images.is_empty() {
        E::enter(Col2im { columns, images, shape, output });
    }
}

/// Lends `out`, a part of a result of `whole` elements, to `f`, which writes it: past the caches if
/// the whole is so large that they could not hold it.
///
/// ```
/// use swath_kernels::{copy_strided, with_place};
///
/// let x = [1.0f32, 2.0, 3.0, 4.0];
/// let mut y = [0.0; 4];
/// let (low, high) = y.split_at_mut(2);
/// with_place(low, 4, |mut y| copy_strided(&x, 0, 1, &mut y));
/// with_place(high, 4, |mut y| copy_strided(&x, 2, 1, &mut y));
/// assert_eq!(x, y);
/// ```
pub fn with_place<E: Copy, R>(out: &mut [E], whole: usize, f: impl FnOnce(Place<'_, E>) -> R) -> R {
    if is_streamed::<E>(whole) {
        // Drops after `f`, also when it panics, and before the borrow of `out` ends.
        let _fence = Fence;
        f(Place::streamed(out))
    } else {
        f(Place::cached(out))
    }
}

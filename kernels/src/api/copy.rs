//! Copies, fills, permutations and transposes of elements of any type, and
//! non-temporal stores for large results.

use crate::copy::{self, Fence, Permute, Plain, is_streamed};
use crate::output::{Output, Place};

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

/// Copies an array of any strides to contiguous memory, in row-major order.
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
/// If an element lies outside `src`, if the length of `dst` is not the product of the extents, if
/// extents and strides differ in number, or if there are more than 8.
#[track_caller]
pub fn permute<T: Plain>(src: &[T], dst: &mut (impl Output<T> + ?Sized), shape: Permute) {
    copy::permute(src, dst, shape);
}

/// Calls `f` with a [`Place`] that writes to `out`, a part of a result of `whole` elements. It writes
/// with non-temporal stores if the whole result is too large for the caches.
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
        // Dropped after `f` returns or panics, before the borrow of `out` ends.
        let _fence = Fence;
        f(Place::streamed(out))
    } else {
        f(Place::cached(out))
    }
}

//! Runs: evenly spaced elements into contiguous ones.

use super::Plain;
use super::stream::{stream, stream_fill, streaming};
use crate::output::Output;

/// Writes `dst[i] = src[offset + i * stride]`; panics if an element lies outside `src`.
#[inline(always)]
#[track_caller]
pub(crate) fn copy_strided<T: Plain>(
    src: &[T],
    offset: usize,
    stride: isize,
    dst: &mut (impl Output<T> + ?Sized),
) {
    let (streams, _fence) = streaming(dst);
    let (dst, len) = dst.as_raw();
    let Some(steps) = len.checked_sub(1) else { return };
    let last = isize::try_from(steps)
        .ok()
        .and_then(|steps| steps.checked_mul(stride))
        .and_then(|distance| offset.checked_add_signed(distance));
    assert!(
        offset < src.len() && last.is_some_and(|last| last < src.len()),
        "copy_strided: {len} elements from {offset} with stride {stride} exceed {} elements",
        src.len()
    );
    // SAFETY: the first and the last element read are inside `src` by the assertion, and the others
    // between them; `len` elements of `dst` may be written, and the borrows keep both apart.
    unsafe { copy_run(src.as_ptr().add(offset), stride, dst, len, streams) }
}

/// # Safety
/// `dst` is valid for writes of `len` elements, and `src` for reads of `len` elements, `stride`
/// apart.
#[inline(always)]
pub(super) unsafe fn copy_run<T: Plain>(
    src: *const T,
    stride: isize,
    dst: *mut T,
    len: usize,
    streams: bool,
) {
    // SAFETY: every index is below `len`.
    unsafe {
        match stride {
            1 if streams => stream(src, dst, len),
            1 => core::ptr::copy_nonoverlapping(src, dst, len),
            0 if len > 0 => fill_run(dst, len, src.read(), streams),
            -1 if len > 0 => {
                let first = src.sub(len - 1);
                for i in 0..len {
                    dst.add(i).write(first.add(len - 1 - i).read());
                }
            }
            // Vectorised: whole vectors are read and every other lane taken.
            2 => {
                for i in 0..len {
                    dst.add(i).write(src.add(2 * i).read());
                }
            }
            _ => {
                for i in 0..len {
                    dst.add(i).write(src.offset(i as isize * stride).read());
                }
            }
        }
    }
}

/// # Safety
/// `dst` is valid for writes of `len` elements.
#[inline(always)]
unsafe fn fill_run<T: Plain>(dst: *mut T, len: usize, x: T, streams: bool) {
    // SAFETY: `i` is below `len`, and the caller promises `len` elements.
    unsafe {
        if streams {
            return stream_fill(dst, len, x);
        }
        for i in 0..len {
            dst.add(i).write(x);
        }
    }
}

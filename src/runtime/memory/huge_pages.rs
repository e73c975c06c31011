//! Large blocks of memory in huge pages, where the system has them on request.

use std::ptr::NonNull;

/// Blocks from this size on, that of two huge pages, are to be made of them: to read and write 4 KiB
/// pages far apart takes a search for each. NumPy does so from the same size on.
#[cfg(all(target_os = "linux", not(miri)))]
const HUGE_BYTES: usize = 4 << 20;

/// Asks for huge pages in a block of so many bytes that was just allocated, if it is large; a wish, which
/// the system may not follow.
#[cfg(all(target_os = "linux", not(miri)))]
pub(super) fn ask_for(base: NonNull<u8>, bytes: usize) {
    use super::pool::PAGE;

    if bytes < HUGE_BYTES {
        return;
    }
    let skip = base.as_ptr().align_offset(PAGE);
    // SAFETY: `skip` is less than a page and `bytes` more: the range lies within the block, and the advice
    // changes no byte.
    unsafe {
        libc::madvise(base.add(skip).as_ptr().cast(), bytes - skip, libc::MADV_HUGEPAGE);
    }
}

/// Elsewhere pages are the system's business.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(super) fn ask_for(_base: NonNull<u8>, _bytes: usize) {}

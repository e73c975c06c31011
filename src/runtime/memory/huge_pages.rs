//! Huge pages for large blocks of memory.

use std::ptr::NonNull;

/// Minimum size of blocks that use huge pages, the size of two: strided accesses to 4 KiB pages miss the TLB.
/// NumPy uses the same limit.
#[cfg(all(target_os = "linux", not(miri)))]
const HUGE_BYTES: usize = 4 << 20;

/// Advises the system to use huge pages for a newly allocated block, if it is large.
#[cfg(all(target_os = "linux", not(miri)))]
pub(super) fn ask_for(base: NonNull<u8>, bytes: usize) {
    use super::pool::PAGE;

    if bytes < HUGE_BYTES {
        return;
    }
    let skip = base.as_ptr().align_offset(PAGE);
    // SAFETY: `skip` is less than a page and `bytes` is more, so the range is within the block. The advice
    // changes no byte.
    unsafe {
        libc::madvise(base.add(skip).as_ptr().cast(), bytes - skip, libc::MADV_HUGEPAGE);
    }
}

/// Does nothing on other systems.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(super) fn ask_for(_base: NonNull<u8>, _bytes: usize) {}

//! Memory next to protected pages.

use std::ffi::{c_int, c_long, c_void};

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        len: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: c_long,
    ) -> *mut c_void;
    fn mprotect(at: *mut c_void, len: usize, protection: c_int) -> c_int;
    fn munmap(at: *mut c_void, len: usize) -> c_int;
}

const READ_WRITE: c_int = 3;
const PRIVATE_ANONYMOUS: c_int = 0x22;

/// A multiple of every page size in use.
const PAGE: usize = 65536;

/// The end of the elements that adjoins the protected page.
#[derive(Clone, Copy, Debug)]
pub enum Against {
    Start,
    End,
}

/// `len` elements with a protected page before and after their pages.
pub struct Guarded<E> {
    base: *mut c_void,
    bytes: usize,
    first: *mut E,
    len: usize,
}

impl Against {
    pub const BOTH: [Against; 2] = [Against::Start, Against::End];
}

impl<E: Copy> Guarded<E> {
    pub fn new(len: usize, against: Against) -> Self {
        let inside = (len * size_of::<E>()).next_multiple_of(PAGE);
        let bytes = inside + 2 * PAGE;
        // SAFETY: a fresh private mapping; both protected ranges are inside it, and the elements
        // start with the first or end with the last byte between them.
        unsafe {
            let base = mmap(std::ptr::null_mut(), bytes, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0);
            assert!(base as isize != -1);
            assert_eq!(mprotect(base, PAGE, 0), 0);
            assert_eq!(mprotect(base.byte_add(PAGE + inside), PAGE, 0), 0);
            let first = match against {
                Against::Start => base.byte_add(PAGE),
                Against::End => base.byte_add(PAGE + inside - len * size_of::<E>()),
            };
            Guarded { base, bytes, first: first.cast(), len }
        }
    }

    pub fn elements(&mut self) -> &mut [E] {
        // SAFETY: `len` zeroed elements that only this value can access.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.len) }
    }
}

impl<E> Drop for Guarded<E> {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new`.
        unsafe { munmap(self.base, self.bytes) };
    }
}

//! Where kernels write: memory that may be uninitialised.

use core::mem::MaybeUninit;

/// A place for results: `[E]`, `[MaybeUninit<E>]`, or an array or vector whose elements it
/// overwrites. Sealed.
///
/// A kernel that takes an output writes every element of it and reads none, so nothing needs to be
/// filled with zeros first:
///
/// ```
/// let mut y = Vec::with_capacity(3);
/// swath_kernels::copy_strided(&[1.0f32, 2.0, 3.0], 2, -1, &mut y.spare_capacity_mut()[..3]);
/// // SAFETY: the kernel has written the three elements.
/// unsafe { y.set_len(3) };
/// assert_eq!(y, [3.0, 2.0, 1.0]);
/// ```
pub trait Output<E>: sealed::Sealed {
    /// The first element's address and the number of elements; writable, maybe not initialised.
    #[doc(hidden)]
    fn as_raw(&mut self) -> (*mut E, usize);
}

impl<E: Copy> Output<E> for [E] {
    #[inline(always)]
    fn as_raw(&mut self) -> (*mut E, usize) {
        (self.as_mut_ptr(), self.len())
    }
}

impl<E: Copy> Output<E> for [MaybeUninit<E>] {
    #[inline(always)]
    fn as_raw(&mut self) -> (*mut E, usize) {
        (self.as_mut_ptr().cast(), self.len())
    }
}

impl<E: Copy, const N: usize> Output<E> for [E; N] {
    #[inline(always)]
    fn as_raw(&mut self) -> (*mut E, usize) {
        self.as_mut_slice().as_raw()
    }
}

impl<E: Copy> Output<E> for Vec<E> {
    #[inline(always)]
    fn as_raw(&mut self) -> (*mut E, usize) {
        self.as_mut_slice().as_raw()
    }
}

mod sealed {
    pub trait Sealed {}
    impl<E> Sealed for [E] {}
    impl<E, const N: usize> Sealed for [E; N] {}
    impl<E> Sealed for Vec<E> {}
}

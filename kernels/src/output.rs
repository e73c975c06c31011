//! Where kernels write: memory that may be uninitialised, by ordinary or non-temporal stores.

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut, Range};

/// Memory for results: `[E]`, `[MaybeUninit<E>]`, an array or vector whose elements are
/// overwritten, or a [`Place`]. Sealed.
///
/// A kernel writes every element of its output and reads none, so nothing needs to be zeroed first:
///
/// ```
/// let mut y = Vec::with_capacity(3);
/// swath_kernels::copy_strided(&[1.0f32, 2.0, 3.0], 2, -1, &mut y.spare_capacity_mut()[..3]);
/// // SAFETY: the kernel has written the three elements.
/// unsafe { y.set_len(3) };
/// assert_eq!(y, [3.0, 2.0, 1.0]);
/// ```
pub trait Output<E>: sealed::Sealed {
    /// The first element's address and the number of elements; writable, possibly uninitialised.
    #[doc(hidden)]
    fn as_raw(&mut self) -> (*mut E, usize);
    /// True for non-temporal stores; the creator of the output fences after them.
    #[doc(hidden)]
    #[inline(always)]
    fn streams(&self) -> bool {
        false
    }
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

/// A part of a result, passed on by [`with_place`](crate::with_place), that tells kernels whether
/// the whole result is too large for the caches. It stays on its thread, because the fence after
/// non-temporal stores is that thread's.
///
/// ```compile_fail,E0277
/// let mut y = [0.0f32; 4];
/// swath_kernels::with_place(&mut y, 4, |mut place| {
///     std::thread::scope(|scope| {
///         scope.spawn(|| swath_kernels::fill(&mut place, 1.0));
///     });
/// });
/// ```
#[derive(Debug)]
pub struct Place<'a, E> {
    elements: &'a mut [E],
    streams: bool,
    of_this_thread: PhantomData<*mut ()>,
}

impl<'a, E> Place<'a, E> {
    /// Memory that is written by ordinary stores.
    #[inline(always)]
    pub fn cached(elements: &'a mut [E]) -> Self {
        Place { elements, streams: false, of_this_thread: PhantomData }
    }

    /// Memory that is written by non-temporal stores; the creator fences after them.
    pub(crate) fn streamed(elements: &'a mut [E]) -> Self {
        Place { elements, streams: true, of_this_thread: PhantomData }
    }

    /// A range of the elements.
    ///
    /// # Panics
    /// If the range exceeds the elements.
    #[inline]
    #[track_caller]
    pub fn range(&mut self, range: Range<usize>) -> Place<'_, E> {
        Place { elements: &mut self.elements[range], ..*self }
    }
}

impl<E> Deref for Place<'_, E> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        self.elements
    }
}

impl<E> DerefMut for Place<'_, E> {
    fn deref_mut(&mut self) -> &mut [E] {
        self.elements
    }
}

impl<E: Copy> Output<E> for Place<'_, E> {
    #[inline(always)]
    fn as_raw(&mut self) -> (*mut E, usize) {
        self.elements.as_raw()
    }
    #[inline(always)]
    fn streams(&self) -> bool {
        self.streams
    }
}

mod sealed {
    pub trait Sealed {}
    impl<E> Sealed for [E] {}
    impl<E, const N: usize> Sealed for [E; N] {}
    impl<E> Sealed for Vec<E> {}
    impl<E> Sealed for super::Place<'_, E> {}
}

//! [`Shared`]: a reference-counted pointer to recycled memory.
//!
//! It holds every tensor, recorded op and rule. Their number is the same in every training step, so that steps
//! do not allocate from the system once the pool is filled.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::memory;

/// A value with its reference count.
#[repr(C)]
pub(crate) struct Counted<T: ?Sized> {
    count: AtomicUsize,
    value: T,
}

/// Like [`std::sync::Arc`], without weak references, in memory of the pool.
pub(crate) struct Shared<T: ?Sized>(NonNull<Counted<T>>);

// SAFETY: as for `Arc`: references give `&T` to any thread, and the last one drops `T`.
unsafe impl<T: ?Sized + Send + Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for Shared<T> {}

/// Maximum number of references; more are only possible by leaking them.
const MAX_HANDLES: usize = isize::MAX as usize;

impl<T> Shared<T> {
    pub fn new(value: T) -> Self {
        Shared::made(|| value)
    }

    /// Makes a value directly in its memory. Making it first and copying it then would stall on store
    /// forwarding, which takes as long as adding 1,000 numbers.
    #[inline(always)]
    pub fn made(make: impl FnOnce() -> T) -> Self {
        const { assert!(align_of::<Counted<T>>() <= memory::OBJECT_ALIGNMENT) };
        let block = memory::take_object(size_of::<Counted<T>>()).cast::<Counted<T>>();
        // SAFETY: the block has the size and the alignment (asserted above), and no one else uses it.
        unsafe { block.write(Counted { count: AtomicUsize::new(1), value: make() }) };
        Shared(block)
    }
}

impl<T: ?Sized> Shared<T> {
    fn counted(&self) -> &Counted<T> {
        // SAFETY: this reference keeps the value alive.
        unsafe { self.0.as_ref() }
    }

    /// True if this is the only reference. Others can then only be made from this one.
    pub fn is_unique(&self) -> bool {
        // Acquire: accesses through other references happened before they were dropped.
        self.counted().count.load(Ordering::Acquire) == 1
    }

    /// Number of references.
    pub fn handles(&self) -> usize {
        self.counted().count.load(Ordering::Acquire)
    }

    /// Mutable access to the value, if this is the only reference.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        if !self.is_unique() {
            return None;
        }
        // SAFETY: the only reference is borrowed exclusively.
        Some(unsafe { &mut self.0.as_mut().value })
    }

    /// Converts to a raw pointer without changing the count, for [`shared_as`].
    pub fn into_raw(self) -> *mut Counted<T> {
        ManuallyDrop::new(self).0.as_ptr()
    }

    /// Converts back from a raw pointer.
    ///
    /// # Safety
    /// The pointer came from `into_raw`, possibly unsized since, and is used once.
    pub unsafe fn from_raw(raw: *mut Counted<T>) -> Self {
        // SAFETY: not null, as the caller guarantees.
        Shared(unsafe { NonNull::new_unchecked(raw) })
    }
}

/// Makes a shared trait object: `shared_as!(value => dyn Trait)`.
macro_rules! shared_as {
    ($value:expr => $object:ty) => {{
        let raw =
            $crate::runtime::shared::Shared::into_raw($crate::runtime::shared::Shared::new($value));
        // An unsizing coercion, so that the compiler checks that the value implements the trait.
        let raw: *mut $crate::runtime::shared::Counted<$object> = raw;
        // SAFETY: the pointer comes from `into_raw` and is used once.
        unsafe { $crate::runtime::shared::Shared::<$object>::from_raw(raw) }
    }};
}
pub(crate) use shared_as;

impl<T: ?Sized> Clone for Shared<T> {
    fn clone(&self) -> Self {
        // Relaxed suffices, because an existing reference keeps the value alive.
        let old = self.counted().count.fetch_add(1, Ordering::Relaxed);
        if old > MAX_HANDLES {
            std::process::abort();
        }
        Shared(self.0)
    }
}

impl<T: ?Sized> Drop for Shared<T> {
    fn drop(&mut self) {
        if self.counted().count.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        // Acquires what was done through the other references. A fence would do; ThreadSanitizer sees loads only.
        _ = self.handles();
        let bytes = size_of_val(self.counted());
        // SAFETY: this was the last reference; the block was taken with the same number of bytes.
        unsafe {
            std::ptr::drop_in_place(&raw mut (*self.0.as_ptr()).value);
            memory::give_object(self.0.cast(), bytes);
        }
    }
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.counted().value
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts drops.
    struct Probe<'a>(&'a AtomicUsize, [u64; 5]);

    impl Drop for Probe<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    trait Name {
        fn name(&self) -> u64;
    }

    impl Name for Probe<'_> {
        fn name(&self) -> u64 {
            self.1[4]
        }
    }

    #[test]
    fn the_last_reference_drops_the_value_once() {
        let drops = AtomicUsize::new(0);
        let mut a = Shared::new(Probe(&drops, [1, 2, 3, 4, 5]));
        assert!(a.get_mut().is_some());
        let b = a.clone();
        assert!(!a.is_unique() && a.get_mut().is_none());
        drop(b);
        assert_eq!((a.is_unique(), drops.load(Ordering::Relaxed)), (true, 0));
        assert_eq!(a.1[4], 5);
        drop(a);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_trait_object_drops_its_value() {
        let drops = AtomicUsize::new(0);
        let object = shared_as!(Probe(&drops, [0, 0, 0, 0, 9]) => dyn Name + '_);
        let other = object.clone();
        assert_eq!((object.name(), other.name()), (9, 9));
        drop((object, other));
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn references_may_be_dropped_on_other_threads() {
        let drops = AtomicUsize::new(0);
        for _ in 0..200 {
            let first = Shared::new(Probe(&drops, [7; 5]));
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    let handle = first.clone();
                    scope.spawn(move || assert_eq!(handle.1[0], 7));
                }
                drop(first);
            });
        }
        assert_eq!(drops.load(Ordering::Relaxed), 200);
    }
}

//! [`Foreign`]: memory of a value that is not of the pool, such as a vector behind an `Arc`, a memory map or the array
//! of another library.

use std::fmt;
use std::ptr::NonNull;

use super::Buffer;
use super::pool::Block;
use crate::dtype::{DType, Element};

/// The class of a buffer whose memory a [`Foreign`] keeps alive.
pub(super) const FOREIGN: usize = usize::MAX / 2 - 1;

/// Any value.
trait Owner: Send + Sync {}
impl<T: Send + Sync> Owner for T {}

/// A value and the elements that it holds, which are read until it is dropped and never written.
pub struct Foreign {
    buffer: Buffer,
    /// Of a box. A raw pointer, because a box that is moved would be the only way to what it contains.
    owner: NonNull<dyn Owner>,
    dtype: DType,
}

// SAFETY: the owner may be sent, and the elements are only read.
unsafe impl Send for Foreign {}
// SAFETY: the owner may be shared, and the elements are only read.
unsafe impl Sync for Foreign {}

impl Foreign {
    /// Takes over an owner of elements. Calls its `as_ref` once.
    pub fn new<E: Element, O: AsRef<[E]> + Send + Sync + 'static>(owner: O) -> Self {
        let owner = Box::into_raw(Box::new(owner));
        // SAFETY: the box has just been made. Until `Foreign` drops it, it is neither moved nor borrowed mutably:
        // this borrow of it lasts as long, and with it the slice.
        let (slice, owner) = unsafe { ((*owner).as_ref(), NonNull::new_unchecked(owner)) };
        let (block, bytes) = (Block(NonNull::from(slice).cast()), size_of_val(slice));
        Foreign { buffer: Buffer { block, bytes, class: Some(FOREIGN) }, owner, dtype: E::DTYPE }
    }

    /// Takes over an owner of bytes that are elements of `dtype` in the machine's byte order. Calls its `as_ref` once.
    /// Returns the bytes if they are not whole elements, or not aligned for them.
    pub fn of_bytes<O: AsRef<[u8]> + Send + Sync + 'static>(
        owner: O,
        dtype: DType,
    ) -> std::result::Result<Self, Foreign> {
        let mut foreign = Foreign::new::<u8, O>(owner);
        let start = foreign.buffer.block.0.addr().get();
        if ![start, foreign.buffer.bytes].iter().all(|number| number.is_multiple_of(dtype.size())) {
            return Err(foreign);
        }
        foreign.dtype = dtype;
        Ok(foreign)
    }

    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.buffer.bytes / self.dtype.size()
    }

    pub(crate) fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: the pointer is that of a box, dropped once; nobody reads the elements any more, for which `self`
        // was borrowed.
        drop(unsafe { Box::from_raw(self.owner.as_ptr()) });
    }
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.buffer.fmt(f)
    }
}

//! Memory of vectors that tensors take over.

use std::alloc::{Layout, dealloc};
use std::mem::{ManuallyDrop, replace};
use std::ptr::NonNull;

use bytemuck::NoUninit;

use super::Buffer;
use super::pool::{Block, LOCAL_MAX_BYTES, SYSTEM_ALIGNMENT};
use crate::dtype::{DType, Element, HostData, for_dtype};

/// Largest vector that is copied instead: to a recycled block, which is aligned to cache lines, in less than a
/// microsecond.
const COPIED_BYTES: usize = LOCAL_MAX_BYTES;

/// The class of an adopted buffer is this number plus the alignment of the vector's elements.
pub(super) const ADOPTED: usize = usize::MAX / 2;

/// Takes over the memory of values, without their spare capacity. Values that are small, or not aligned as the
/// system's allocator aligns, are returned.
pub(super) fn adopt(values: HostData) -> Result<Buffer, HostData> {
    fn adopt_elements<T: NoUninit>(values: Vec<T>) -> Result<Buffer, Vec<T>> {
        let values = values.into_boxed_slice();
        if !values.as_ptr().addr().is_multiple_of(SYSTEM_ALIGNMENT) {
            return Err(values.into_vec());
        }
        let bytes = size_of_val(&*values);
        let block = Block(NonNull::from(Box::leak(values)).cast());
        Ok(Buffer { block, bytes, class: Some(ADOPTED + align_of::<T>()) })
    }
    if values.as_bytes().len() <= COPIED_BYTES {
        return Err(values);
    }
    for_dtype!(values.dtype(), T => {
        let values = T::from_host(values).expect("the values are of their own dtype");
        adopt_elements(values).map_err(T::into_host)
    })
}

/// Returns the memory of an adopted vector of this type as a vector, and leaves an empty buffer.
pub(super) fn take_vec<T: Element>(buffer: &mut Buffer) -> Option<Vec<T>> {
    let is_valid = T::DTYPE != DType::Bool;
    if !is_valid || buffer.class != Some(ADOPTED + align_of::<T>()) {
        return None;
    }
    let Buffer { block, bytes, .. } = *ManuallyDrop::new(replace(buffer, Buffer::scratch(0)));
    let count = bytes / size_of::<T>();
    // SAFETY: `adopt` leaked a boxed slice of `bytes` bytes with elements of this alignment, which the class notes, so of
    // this size: that of each type is its alignment. Any bytes are a valid `T`, which is not `bool`. The buffer that
    // owned the memory has been taken apart.
    Some(unsafe { Vec::from_raw_parts(block.0.cast().as_ptr(), count, count) })
}

/// Frees the memory of an adopted buffer.
pub(super) fn free(block: Block, bytes: usize, class: usize) {
    let layout = Layout::from_size_align(bytes, class - ADOPTED);
    let layout = layout.expect("the vector had this layout");
    // SAFETY: `adopt` leaked a boxed slice of `bytes` bytes, more than `COPIED_BYTES`, and noted the alignment
    // of its elements in the class: the global allocator made it with this layout. The buffer that owned it
    // is being dropped.
    unsafe { dealloc(block.0.as_ptr(), layout) };
}

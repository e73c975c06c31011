//! Memory of tensors: aligned to cache lines, recycled by size class.
//!
//! ```text
//! take(bytes)   class = smallest size class of at least `bytes`
//!               from this thread's list of the class, else from the shelf (locked), else from the system
//! give(block)   to this thread's list; if it is full, half of it to the shelf; if that is full, to the system
//! ```
//!
//! 1. Page faults on new memory cost 0.8 µs per page (5 GB/s); recycled memory has none.
//! 2. Memory from the system is zeroed (large blocks lazily, by the kernel), and recycled memory contains old
//!    bytes. A buffer is therefore always initialised, so that typed views of it are sound even if an op does
//!    not write every element. Debug builds, and others with `SWATH_POOL_POISON=1`, fill every buffer that is
//!    handed out with poison, to expose missing writes: floats and scratch memory with a NaN that no op
//!    produces, integers and booleans with bytes of 0xA5.
//! 3. Size classes are 64, 128, 192 and 256 bytes, then four per octave: at most a quarter is wasted.
//! 4. Blocks up to [`LOCAL_MAX_BYTES`] are kept in lists of the thread that frees them: no lock.
//! 5. The memory of a vector that a tensor adopted is returned to its allocator, not recycled.
//! 6. Memory that a value outside of the pool holds ([`Foreign`]) is only read, and dropped with that value.
//! 7. A shelf that would exceed its limit is emptied, which also releases sizes that are no longer used.

mod adopted;
mod foreign;
mod huge_pages;
mod pool;

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytemuck::Pod;
use swath_kernels::poison::{POISON, poisons, set_poisons};

use super::parallel;
use crate::dtype::{DType, Element, HostData};
use crate::error::{Error, Result};
use crate::shape::Shape;
pub use foreign::Foreign;
use pool::{
    Block, SYSTEM_ALIGNMENT, allocate, class_layout, class_of, exact_bytes, free, give,
    system_layout, take, take_scratch,
};
pub(crate) use pool::{OBJECT_ALIGNMENT, give_object, limit, stats, take_object, warm_up};

/// Alignment of every buffer that is allocated here: a cache line and the widest vector.
pub const ALIGNMENT: usize = 64;

/// Fills poisoned memory of integers and booleans, which it makes invalid.
const INTEGER_POISON: u8 = 0xA5;

/// Statistics of the memory pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Number of blocks allocated from the system.
    pub allocated: u64,
    /// Number of blocks taken from the pool.
    pub reused: u64,
    /// Bytes kept for reuse.
    pub held_bytes: usize,
    /// Bytes currently allocated from the system, in use or kept.
    pub system_bytes: usize,
    /// Maximum of `system_bytes` so far.
    pub high_water_bytes: usize,
    /// Maximum bytes kept for all threads together; each thread keeps a few small blocks in addition.
    pub limit_bytes: usize,
}

impl fmt::Display for PoolStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: f64 = (1 << 20) as f64;
        write!(
            f,
            "{} blocks allocated, {} reused, {:.1} MiB held of at most {:.0}, high water {:.1} MiB",
            self.allocated,
            self.reused,
            self.held_bytes as f64 / MIB,
            self.limit_bytes as f64 / MIB,
            self.high_water_bytes as f64 / MIB,
        )
    }
}

/// Number of changes in place that had to copy.
static COPIES: AtomicU64 = AtomicU64::new(0);

/// Counts a change in place that copies the storage because another tensor shares it.
pub(crate) fn count_copy() {
    COPIES.fetch_add(1, Relaxed);
}

pub(crate) fn copies() -> u64 {
    COPIES.load(Relaxed)
}

fn bytes_of(op: &'static str, shape: &Shape, dtype: DType) -> Result<usize> {
    match shape.checked_numel(op)?.checked_mul(dtype.size()) {
        Some(bytes) if bytes <= isize::MAX as usize / 2 => Ok(bytes),
        _ => Err(Error::Overflow { op, shape: *shape }),
    }
}

#[cold]
#[inline(never)]
fn poison(memory: &mut [u8], dtype: Option<DType>) {
    let is_float = dtype.is_none_or(DType::is_float);
    let [first, second] = if is_float { POISON.to_ne_bytes() } else { [INTEGER_POISON; 2] };
    let (pairs, rest) = memory.as_chunks_mut();
    pairs.fill([first, second]);
    rest.fill(first);
}

/// Memory that nothing has written, as it is handed out for elements of a dtype or, without one, for temporary use.
///
/// # Errors
/// Those of the allocation.
#[cfg(feature = "testing")]
pub fn unwritten(bytes: usize, dtype: Option<DType>) -> Result<Vec<u8>> {
    let buffer = match dtype {
        Some(dtype) => Buffer::new("unwritten", &Shape::from(bytes / dtype.size()), dtype)?,
        None => Buffer::scratch(bytes),
    };
    Ok(buffer.as_slice().to_vec())
}

/// Switches poison on or off as `SWATH_POOL_POISON` says, or returns the error if it is invalid.
pub(super) fn set_poison() -> Result<()> {
    match std::env::var("SWATH_POOL_POISON").unwrap_or_default().as_str() {
        "" => Ok(()),
        value @ ("0" | "1") => {
            set_poisons(value == "1");
            Ok(())
        }
        value => Err(Error::Runtime(format!("SWATH_POOL_POISON={value}: expected 0 or 1"))),
    }
}

/// Memory of a tensor: initialised, aligned to [`ALIGNMENT`], returned to the pool when dropped; or the memory of
/// a vector, aligned to [`SYSTEM_ALIGNMENT`].
pub(crate) struct Buffer {
    block: Block,
    bytes: usize,
    /// `None` for a block without a class, which is returned to the system; [`foreign::FOREIGN`] for memory that
    /// its owner frees; from [`adopted::ADOPTED`] on for the memory of a vector.
    class: Option<usize>,
}

// SAFETY: a buffer owns its memory, which is only read through a shared reference.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Allocates memory for the elements of a shape, with arbitrary content. Inlined like [`Buffer::take`], so
    /// that a buffer is returned in registers instead of through memory.
    #[inline(always)]
    pub fn new(op: &'static str, shape: &Shape, dtype: DType) -> Result<Self> {
        let bytes = bytes_of(op, shape, dtype)?;
        match Buffer::take(bytes)? {
            Some(buffer) => Ok(buffer.poisoned(Some(dtype))),
            None => Err(Error::OutOfMemory { op, bytes, shape: Some(*shape) }),
        }
    }

    /// Allocates temporary memory.
    pub fn scratch(bytes: usize) -> Self {
        let (block, class) = take_scratch(bytes, parallel::threads_of_region());
        Buffer { block, bytes, class: Some(class) }.poisoned(None)
    }

    /// Allocates exactly the required bytes, which are not recycled, for a tensor that is loaded once and kept.
    pub fn exact(op: &'static str, shape: &Shape, dtype: DType) -> Result<Self> {
        crate::runtime::check()?;
        let bytes = bytes_of(op, shape, dtype)?;
        let block = allocate(system_layout(exact_bytes(bytes)));
        let block = block.ok_or(Error::OutOfMemory { op, bytes, shape: Some(*shape) })?;
        Ok(Buffer { block, bytes, class: None }.poisoned(Some(dtype)))
    }

    /// Takes over the memory of values, or returns them if they are better copied.
    pub fn adopt(values: HostData) -> Result<std::result::Result<Self, HostData>> {
        crate::runtime::check()?;
        Ok(adopted::adopt(values))
    }

    #[inline(always)]
    fn take(bytes: usize) -> Result<Option<Self>> {
        let class = class_of(bytes);
        let block = match take(class) {
            Some(block) => Some(block),
            None => {
                crate::runtime::check()?;
                allocate(class_layout(class))
            }
        };
        Ok(block.map(|block| Buffer { block, bytes, class: Some(class) }))
    }

    /// Fills the buffer if memory is poisoned; scratch memory has no dtype.
    #[inline(always)]
    fn poisoned(mut self, dtype: Option<DType>) -> Self {
        if poisons() {
            poison(self.as_slice_mut(), dtype);
        }
        self
    }

    /// Splits the buffer into words that stay in registers until the returned function reassembles it. If that
    /// is not called, the memory leaks.
    #[inline(always)]
    pub fn in_words(self) -> impl FnOnce() -> Buffer {
        let Buffer { block, bytes, class } = *ManuallyDrop::new(self);
        move || Buffer { block, bytes, class }
    }

    /// The memory as a vector, if that of a vector of this type was adopted. The buffer is then empty.
    pub fn take_vec<T: Element>(&mut self) -> Option<Vec<T>> {
        adopted::take_vec(self)
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The content as elements. Trailing bytes that are less than an element are omitted.
    pub fn as_slice<T: Pod>(&self) -> &[T] {
        const { assert!(align_of::<T>() <= SYSTEM_ALIGNMENT && size_of::<T>() > 0) };
        assert!(
            self.block.0.cast::<T>().is_aligned(),
            "foreign elements are aligned for their type"
        );
        // SAFETY: the block has at least `bytes` bytes, all initialised (zeroed if new, old bytes if
        // recycled, elements if a vector's or foreign) and aligned for `T`, as has just been checked; any bytes are a valid `T: Pod`; `self` is borrowed, and
        // writing requires `&mut self`.
        unsafe {
            std::slice::from_raw_parts(self.block.0.cast().as_ptr(), self.bytes / size_of::<T>())
        }
    }

    /// The content as elements for writing, like [`Buffer::as_slice`].
    pub fn as_slice_mut<T: Pod>(&mut self) -> &mut [T] {
        const { assert!(align_of::<T>() <= SYSTEM_ALIGNMENT && size_of::<T>() > 0) };
        // SAFETY: as in `as_slice`, with the least alignment of all but foreign memory, to which nobody has a mutable
        // reference: `Foreign` lends its buffer shared. `self` is borrowed exclusively.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.block.0.cast().as_ptr(),
                self.bytes / size_of::<T>(),
            )
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        match self.class {
            Some(class) if class >= adopted::ADOPTED => {
                adopted::free(self.block, self.bytes, class)
            }
            Some(foreign::FOREIGN) => {}
            Some(class) => give(class, self.block),
            None => free(system_layout(exact_bytes(self.bytes)), self.block),
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

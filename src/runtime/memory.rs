//! Memory of tensors: aligned to a cache line, recycled by size class.
//!
//! ```text
//! take(bytes)   class = smallest size class that holds them
//!               this thread's list of the class ─ else the shelf's (locked) ─ else the system
//! give(block)   this thread's list; full: half of it to the shelf; shelf full: to the system
//! ```
//!
//! 1. Writing freshly mapped memory costs 0.8 µs a page (5 GB/s), recycled memory nothing.
//! 2. Memory from the system is zeroed (for large blocks lazily, by the kernel), recycled memory
//!    holds old bytes: a buffer is always initialised, so that typed views of it are sound and no
//!    op has to promise that it writes every element. Debug builds fill buffers with ones instead
//!    (NaN, −1, an invalid truth value), so that a forgotten write shows.
//! 3. Size classes are 64, 128, 192, 256 bytes and then four an octave: at most a quarter is waste.
//! 4. Blocks up to [`LOCAL_MAX_BYTES`] are kept in lists of the thread that frees them: no lock.
//! 5. A shelf that would grow beyond its bound is emptied, which also gets rid of sizes that are no
//!    longer asked for.

mod huge_pages;
mod pool;

use std::fmt;
use std::mem::ManuallyDrop;

use bytemuck::Pod;

use super::parallel;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;
use pool::{
    Block, allocate, class_layout, class_of, exact_bytes, free, give, system_layout, take,
    take_scratch,
};
pub(crate) use pool::{OBJECT_ALIGNMENT, give_object, limit, stats, take_object, warm_up};

/// Alignment of every buffer: a cache line and the widest vector.
pub const ALIGNMENT: usize = 64;

/// What the pool has done and holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Blocks asked from the system.
    pub allocated: u64,
    /// Blocks taken from the pool instead.
    pub reused: u64,
    /// Bytes kept for reuse.
    pub held_bytes: usize,
    /// Bytes had from the system now, in use or kept.
    pub system_bytes: usize,
    /// The most that `system_bytes` has been.
    pub high_water_bytes: usize,
    /// Bytes kept at most for all threads; each thread keeps a few small blocks beside them.
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

fn bytes_of(op: &'static str, shape: &Shape, dtype: DType) -> Result<usize> {
    match shape.checked_numel(op)?.checked_mul(dtype.size()) {
        Some(bytes) if bytes <= isize::MAX as usize / 2 => Ok(bytes),
        _ => Err(Error::Overflow { op, shape: *shape }),
    }
}

/// Bytes of a tensor: initialised, aligned to [`ALIGNMENT`], given back to the pool when dropped.
pub(crate) struct Buffer {
    block: Block,
    bytes: usize,
    /// `None` for a block of no class, which goes back to the system.
    class: Option<usize>,
}

// SAFETY: a buffer owns its memory; shared it is only read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Memory for the elements of a shape, with any content. Inlined, as [`Buffer::take`]: what is handed on
    /// through memory in several words is read late.
    #[inline(always)]
    pub fn new(op: &'static str, shape: &Shape, dtype: DType) -> Result<Self> {
        let bytes = bytes_of(op, shape, dtype)?;
        match Buffer::take(bytes)? {
            Some(buffer) => Ok(buffer),
            None => Err(Error::OutOfMemory { op, bytes }),
        }
    }

    /// Memory to work in for a moment.
    pub fn scratch(bytes: usize) -> Self {
        let (block, class) = take_scratch(bytes, parallel::threads_beside());
        Buffer { block, bytes, class: Some(class) }.marked()
    }

    /// As [`Buffer::new`], of just as many bytes as needed and not recycled: for what is loaded once
    /// and stays.
    pub fn exact(op: &'static str, shape: &Shape, dtype: DType) -> Result<Self> {
        crate::runtime::check()?;
        let bytes = bytes_of(op, shape, dtype)?;
        let block = allocate(system_layout(exact_bytes(bytes)));
        let block = block.ok_or(Error::OutOfMemory { op, bytes })?;
        Ok(Buffer { block, bytes, class: None }.marked())
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
        Ok(block.map(|block| Buffer { block, bytes, class: Some(class) }.marked()))
    }

    /// Filled with ones in debug builds.
    fn marked(mut self) -> Self {
        if cfg!(debug_assertions) {
            self.as_slice_mut::<u8>().fill(0xFF);
        }
        self
    }

    /// Itself, made again by the function: until then words in registers. Without that call its memory is
    /// lost.
    #[inline(always)]
    pub fn in_words(self) -> impl FnOnce() -> Buffer {
        let Buffer { block, bytes, class } = *ManuallyDrop::new(self);
        move || Buffer { block, bytes, class }
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The content as elements; a rest that fills no element is cut off.
    pub fn as_slice<T: Pod>(&self) -> &[T] {
        const { assert!(align_of::<T>() <= ALIGNMENT && size_of::<T>() > 0) };
        // SAFETY: the block is allocated with at least `bytes` bytes, all initialised (zeroed when
        // new, old bytes when recycled), aligned beyond `T`'s need; any bytes are a valid `T: Pod`;
        // `self` is borrowed, and writing takes `&mut self`.
        unsafe {
            std::slice::from_raw_parts(self.block.0.cast().as_ptr(), self.bytes / size_of::<T>())
        }
    }

    /// As [`Buffer::as_slice`], to write.
    pub fn as_slice_mut<T: Pod>(&mut self) -> &mut [T] {
        const { assert!(align_of::<T>() <= ALIGNMENT && size_of::<T>() > 0) };
        // SAFETY: as in `as_slice`; `self` is borrowed alone.
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

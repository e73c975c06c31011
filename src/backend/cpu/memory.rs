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

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytemuck::Pod;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Bytes that the shelf keeps for reuse unless `SWATH_POOL_BYTES` says otherwise; 0 turns recycling
/// off.
pub const DEFAULT_POOL_BYTES: usize = 1 << 30;

/// Alignment of every buffer: a cache line and the widest vector.
pub const ALIGNMENT: usize = 64;

/// Largest block kept in a thread's own lists.
const LOCAL_MAX_BYTES: usize = 16 << 10;

/// Bytes of one size class kept in a thread's own list.
const LOCAL_BYTES_PER_CLASS: usize = 64 << 10;

/// Blocks from this size on are asked for with the allocator's own alignment and aligned here: a
/// stricter alignment makes Rust's system allocator write the zeros itself, touching every page.
const LAZY_BYTES: usize = 64 << 10;

/// Alignment that allocators give without being asked.
const SYSTEM_ALIGNMENT: usize = 16;

const CLASSES: usize = 256;
const LOCAL_CLASSES: usize = class_of(LOCAL_MAX_BYTES) + 1;

/// The class whose blocks hold `bytes`, which is at most `isize::MAX`.
const fn class_of(bytes: usize) -> usize {
    let units = bytes.div_ceil(ALIGNMENT);
    if units <= 4 {
        return units.saturating_sub(1);
    }
    let octave = (units - 1).ilog2() as usize;
    let quarter = (units - (1 << octave)).div_ceil(1 << (octave - 2));
    4 * (octave - 1) + quarter - 1
}

/// Bytes of a block of this class.
const fn class_bytes(class: usize) -> usize {
    if class < 4 {
        return (class + 1) * ALIGNMENT;
    }
    let (octave, quarter) = (class / 4 + 1, class % 4 + 1);
    ((1 << octave) + quarter * (1 << (octave - 2))) * ALIGNMENT
}

/// A free block: the address of its first byte. Its size is its class's.
#[derive(Clone, Copy)]
struct Block(NonNull<u8>);

// SAFETY: a free block is memory that nobody else refers to.
unsafe impl Send for Block {}

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

/// Counters of one thread; written by it alone, read by [`stats`].
#[derive(Default)]
struct Counters {
    reused: AtomicU64,
    held_bytes: AtomicUsize,
}

impl Counters {
    fn reuse(&self) {
        self.reused.store(self.reused.load(Relaxed) + 1, Relaxed);
    }

    fn set_held(&self, change: impl FnOnce(usize) -> usize) {
        self.held_bytes.store(change(self.held_bytes.load(Relaxed)), Relaxed);
    }
}

/// Free blocks that any thread may take.
struct Shelf {
    lists: Vec<Vec<Block>>,
    held_bytes: usize,
    reused: u64,
    /// Counters of the threads that are alive.
    threads: Vec<Arc<Counters>>,
}

static SHELF: Mutex<Shelf> =
    Mutex::new(Shelf { lists: Vec::new(), held_bytes: 0, reused: 0, threads: Vec::new() });
static ALLOCATED: AtomicU64 = AtomicU64::new(0);
static SYSTEM_BYTES: AtomicUsize = AtomicUsize::new(0);
static HIGH_WATER_BYTES: AtomicUsize = AtomicUsize::new(0);

fn shelf() -> MutexGuard<'static, Shelf> {
    let mut shelf = SHELF.lock().unwrap_or_else(PoisonError::into_inner);
    if shelf.lists.is_empty() {
        shelf.lists.resize_with(CLASSES, Vec::new);
    }
    shelf
}

/// `SWATH_POOL_BYTES`, or why it cannot be followed.
pub(crate) fn limit() -> &'static Result<usize> {
    static LIMIT: OnceLock<Result<usize>> = OnceLock::new();
    LIMIT.get_or_init(|| match std::env::var("SWATH_POOL_BYTES") {
        Ok(text) if !text.is_empty() => text
            .parse()
            .map_err(|_| Error::Runtime(format!("SWATH_POOL_BYTES={text}: not a number of bytes"))),
        _ => Ok(DEFAULT_POOL_BYTES),
    })
}

fn limit_bytes() -> usize {
    *limit().as_ref().unwrap_or(&DEFAULT_POOL_BYTES)
}

impl Shelf {
    fn take(&mut self, class: usize) -> Option<Block> {
        let block = self.lists[class].pop()?;
        self.held_bytes -= class_bytes(class);
        self.reused += 1;
        Some(block)
    }

    /// Keeps the blocks; what no longer fits comes back with its class, to be freed unlocked.
    fn give(&mut self, class: usize, blocks: impl Iterator<Item = Block>) -> Vec<(usize, Block)> {
        let mut surplus = Vec::new();
        for block in blocks {
            let bytes = class_bytes(class);
            if bytes > limit_bytes() {
                surplus.push((class, block));
                continue;
            }
            if self.held_bytes + bytes > limit_bytes() {
                for (class, list) in self.lists.iter_mut().enumerate() {
                    surplus.extend(list.drain(..).map(|block| (class, block)));
                }
                self.held_bytes = 0;
            }
            self.held_bytes += bytes;
            self.lists[class].push(block);
        }
        surplus
    }
}

/// One thread's lists of small free blocks.
struct Local {
    lists: [Vec<Block>; LOCAL_CLASSES],
    counters: Arc<Counters>,
}

thread_local! {
    static LOCAL: RefCell<Local> = RefCell::new(Local::new());
}

impl Local {
    fn new() -> Self {
        let counters = Arc::<Counters>::default();
        shelf().threads.push(Arc::clone(&counters));
        Local { lists: std::array::from_fn(|_| Vec::new()), counters }
    }

    fn take(&mut self, class: usize) -> Option<Block> {
        let list = &mut self.lists[class];
        if list.is_empty() {
            // Half a list at once, so that a thread that only takes seldom locks.
            let mut shelf = shelf();
            let from = &mut shelf.lists[class];
            let wanted = (local_capacity(class) / 2).max(1).min(from.len());
            list.extend(from.drain(from.len() - wanted..));
            shelf.held_bytes -= wanted * class_bytes(class);
            self.counters.set_held(|held| held + wanted * class_bytes(class));
        }
        let block = list.pop()?;
        self.counters.set_held(|held| held - class_bytes(class));
        self.counters.reuse();
        Some(block)
    }

    fn give(&mut self, class: usize, block: Block) {
        let list = &mut self.lists[class];
        let capacity = local_capacity(class);
        if list.len() >= capacity {
            let moved = list.len() - capacity / 2;
            let surplus = shelf().give(class, list.drain(..moved));
            free_all(surplus);
            self.counters.set_held(|held| held - moved * class_bytes(class));
        }
        list.push(block);
        self.counters.set_held(|held| held + class_bytes(class));
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let mut surplus = Vec::new();
        {
            let mut shelf = shelf();
            for (class, list) in self.lists.iter_mut().enumerate() {
                surplus.extend(shelf.give(class, list.drain(..)));
            }
            shelf.reused += self.counters.reused.load(Relaxed);
            shelf.threads.retain(|thread| !Arc::ptr_eq(thread, &self.counters));
        }
        free_all(surplus);
    }
}

const fn local_capacity(class: usize) -> usize {
    LOCAL_BYTES_PER_CLASS / class_bytes(class)
}

/// A block of the class from this thread's lists or the shelf.
fn take(class: usize) -> Option<Block> {
    if class < LOCAL_CLASSES {
        // A thread whose lists are gone already goes to the shelf.
        match LOCAL.try_with(|local| local.borrow_mut().take(class)) {
            Ok(block) => block,
            Err(_) => shelf().take(class),
        }
    } else {
        shelf().take(class)
    }
}

fn give(class: usize, block: Block) {
    let kept_local = class < LOCAL_CLASSES
        && limit_bytes() > 0
        && LOCAL.try_with(|local| local.borrow_mut().give(class, block)).is_ok();
    if !kept_local {
        let surplus = shelf().give(class, std::iter::once(block));
        free_all(surplus);
    }
}

/// How a block of so many bytes is asked for.
fn system_layout(bytes: usize) -> Option<Layout> {
    let layout = if bytes < LAZY_BYTES {
        Layout::from_size_align(bytes, ALIGNMENT)
    } else {
        Layout::from_size_align(bytes.checked_add(ALIGNMENT)?, SYSTEM_ALIGNMENT)
    };
    layout.ok()
}

/// A zeroed block of `bytes` > 0 from the system.
fn allocate(bytes: usize) -> Option<Block> {
    let layout = system_layout(bytes)?;
    // SAFETY: the layout's size is not zero: every caller asks for at least `ALIGNMENT` bytes.
    let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    ALLOCATED.fetch_add(1, Relaxed);
    let total = SYSTEM_BYTES.fetch_add(layout.size(), Relaxed) + layout.size();
    HIGH_WATER_BYTES.fetch_max(total, Relaxed);
    if bytes < LAZY_BYTES {
        return Some(Block(base));
    }
    let shift = ALIGNMENT - base.addr().get() % ALIGNMENT;
    // SAFETY: `shift` is 16 to 64, as `base` is aligned to 16, and `ALIGNMENT` bytes more than the
    // block has were asked for: `shift` bytes lie before the block and all of the block follows.
    let data = unsafe {
        let data = base.add(shift);
        data.sub(1).write(shift as u8);
        data
    };
    Some(Block(data))
}

fn free(bytes: usize, block: Block) {
    let layout = system_layout(bytes).expect("the block was allocated with this layout");
    SYSTEM_BYTES.fetch_sub(layout.size(), Relaxed);
    // SAFETY: `allocate` made the block of as many bytes: it began at the system's address, or
    // as many bytes after it as the byte before the block says. Nobody refers to it: it was free.
    unsafe {
        let base = if bytes < LAZY_BYTES {
            block.0
        } else {
            block.0.sub(usize::from(block.0.sub(1).read()))
        };
        dealloc(base.as_ptr(), layout);
    }
}

fn free_all(blocks: Vec<(usize, Block)>) {
    blocks.into_iter().for_each(|(class, block)| free(class_bytes(class), block));
}

fn bytes_of(op: &'static str, shape: &Shape, dtype: DType) -> Result<usize> {
    let bytes = shape.numel().checked_mul(dtype.size());
    let bytes = bytes.filter(|&bytes| bytes <= isize::MAX as usize / 2);
    bytes.ok_or(Error::Overflow { op, shape: *shape })
}

/// Size of a block that belongs to no class.
fn exact_bytes(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(ALIGNMENT)
}

/// What the pool has done and holds.
pub(crate) fn stats() -> PoolStats {
    let shelf = shelf();
    let held = shelf.threads.iter().map(|thread| thread.held_bytes.load(Relaxed));
    let reused = shelf.threads.iter().map(|thread| thread.reused.load(Relaxed));
    PoolStats {
        allocated: ALLOCATED.load(Relaxed),
        reused: shelf.reused + reused.sum::<u64>(),
        held_bytes: shelf.held_bytes + held.sum::<usize>(),
        system_bytes: SYSTEM_BYTES.load(Relaxed),
        high_water_bytes: HIGH_WATER_BYTES.load(Relaxed),
        limit_bytes: limit_bytes(),
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
    /// Memory for the elements of a shape, with any content.
    pub fn new(op: &'static str, shape: &Shape, dtype: DType) -> Result<Self> {
        shape.validate(op)?;
        let bytes = bytes_of(op, shape, dtype)?;
        Buffer::take(bytes)?.ok_or(Error::OutOfMemory { op, bytes })
    }

    /// Memory to work in for a moment.
    pub fn scratch(bytes: usize) -> Self {
        match Buffer::take(bytes) {
            Ok(Some(buffer)) => buffer,
            _ => handle_alloc_error(Layout::new::<[u8; LAZY_BYTES]>()),
        }
    }

    /// As [`Buffer::new`], of just as many bytes as needed and not recycled: for what is loaded once
    /// and stays.
    pub fn exact(op: &'static str, shape: &Shape, dtype: DType) -> Result<Self> {
        shape.validate(op)?;
        crate::runtime::check()?;
        let bytes = bytes_of(op, shape, dtype)?;
        let block = allocate(exact_bytes(bytes)).ok_or(Error::OutOfMemory { op, bytes })?;
        Ok(Buffer { block, bytes, class: None }.marked())
    }

    fn take(bytes: usize) -> Result<Option<Self>> {
        let class = class_of(bytes);
        let block = match take(class) {
            Some(block) => Some(block),
            None => {
                crate::runtime::check()?;
                allocate(class_bytes(class))
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
            None => free(exact_bytes(self.bytes), self.block),
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

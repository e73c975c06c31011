//! Blocks of memory by size class: lists per thread, the shelf that all threads share, the system.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::{ALIGNMENT, PoolStats, huge_pages};
use crate::error::Result;
use crate::runtime::setting;

/// Maximum bytes that the shelf keeps, unless set by `SWATH_POOL_BYTES`; 0 disables recycling.
const DEFAULT_POOL_BYTES: usize = 1 << 30;

/// Largest block kept in the lists of a thread.
pub(super) const LOCAL_MAX_BYTES: usize = 16 << 10;

/// Maximum bytes of one size class kept by a thread.
const LOCAL_BYTES_PER_CLASS: usize = 64 << 10;

/// Minimum size of blocks that are allocated with the allocator's default alignment and aligned here: for a
/// larger alignment, Rust's system allocator writes the zeros itself and touches every page.
pub(super) const LAZY_BYTES: usize = 64 << 10;

/// Size of a page. Blocks of at least [`LAZY_BYTES`] are allocated with an extra page, so that they begin at
/// different offsets in their pages. At equal offsets, loads wait for earlier stores whose addresses agree in
/// the last 12 bits (4K aliasing).
pub(super) const PAGE: usize = 4096;

/// Cache lines between the page offsets of consecutive blocks; odd, so that all offsets are used.
const LINES_APART: usize = 21;

/// Default alignment of allocators.
pub(super) const SYSTEM_ALIGNMENT: usize = 16;

/// Maximum bytes of scratch memory per class that are allocated in advance.
const PREPARED_BYTES: usize = 64 << 20;

/// Number of classes of buffers; the classes of objects follow.
pub(super) const CLASSES: usize = 256;
pub(super) const LOCAL_CLASSES: usize = class_of(LOCAL_MAX_BYTES) + 1;

/// Step between the sizes of objects (nodes, rules, handles), which need no cache line of their own.
const OBJECT_STEP: usize = 32;
const OBJECT_CLASSES: usize = 16;

/// First class of scratch memory, which is kept separately so that buffers do not use up the blocks that a
/// thread needs later.
const SCRATCH: usize = CLASSES + OBJECT_CLASSES;

/// Maximum bytes of one class of objects on the shelf: enough for a graph of 40,000 nodes.
const MAX_OBJECT_BYTES: usize = 8 << 20;

/// Smallest class whose blocks have at least `bytes` bytes; `bytes` is at most `isize::MAX`.
pub(super) const fn class_of(bytes: usize) -> usize {
    let units = bytes.div_ceil(ALIGNMENT);
    if units <= 4 {
        return units.saturating_sub(1);
    }
    let octave = (units - 1).ilog2() as usize;
    let quarter = (units - (1 << octave)).div_ceil(1 << (octave - 2));
    4 * (octave - 1) + quarter - 1
}

/// Size of the blocks of a class.
pub(super) const fn class_bytes(class: usize) -> usize {
    if class >= SCRATCH {
        return class_bytes(class - SCRATCH);
    }
    if class >= CLASSES {
        return (class - CLASSES + 1) * OBJECT_STEP;
    }
    if class < 4 {
        return (class + 1) * ALIGNMENT;
    }
    let (octave, quarter) = (class / 4 + 1, class % 4 + 1);
    ((1 << octave) + quarter * (1 << (octave - 2))) * ALIGNMENT
}

/// Address of a block, whose size is that of its class.
#[derive(Clone, Copy)]
pub(super) struct Block(pub(super) NonNull<u8>);

// SAFETY: a block has one owner.
unsafe impl Send for Block {}

/// Counters of one thread, which alone writes them; read by [`stats`].
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

/// Free blocks that all threads share.
struct Shelf {
    lists: Vec<Vec<Block>>,
    /// Number of blocks of each class of scratch memory, in use or not.
    scratch: Vec<usize>,
    held_bytes: usize,
    reused: u64,
    /// Counters of the running threads.
    threads: Vec<Arc<Counters>>,
}

static SHELF: Mutex<Shelf> = Mutex::new(Shelf {
    lists: Vec::new(),
    scratch: Vec::new(),
    held_bytes: 0,
    reused: 0,
    threads: Vec::new(),
});
static ALLOCATED: AtomicU64 = AtomicU64::new(0);
static SYSTEM_BYTES: AtomicUsize = AtomicUsize::new(0);
static HIGH_WATER_BYTES: AtomicUsize = AtomicUsize::new(0);

fn shelf() -> MutexGuard<'static, Shelf> {
    let mut shelf = SHELF.lock().unwrap_or_else(PoisonError::into_inner);
    if shelf.lists.is_empty() {
        shelf.lists.resize_with(SCRATCH + CLASSES, Vec::new);
        shelf.scratch.resize(CLASSES, 0);
    }
    shelf
}

/// Value of `SWATH_POOL_BYTES`, or the error if it is invalid.
pub(crate) fn limit() -> &'static Result<usize> {
    static LIMIT: OnceLock<Result<usize>> = OnceLock::new();
    LIMIT.get_or_init(|| setting("SWATH_POOL_BYTES", || DEFAULT_POOL_BYTES, |_| true, "bytes"))
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

    /// Keeps the blocks. Surplus blocks are returned with their classes, to be freed without the lock.
    fn give(&mut self, class: usize, blocks: impl Iterator<Item = Block>) -> Vec<(usize, Block)> {
        let mut surplus = Vec::new();
        for block in blocks {
            let (bytes, limit) = (class_bytes(class), limit_bytes());
            let object = (CLASSES..SCRATCH).contains(&class);
            let is_full =
                object && self.lists[class].len().saturating_mul(bytes) >= MAX_OBJECT_BYTES;
            if bytes > limit || is_full {
                surplus.push((class, block));
                continue;
            }
            if self.held_bytes > limit - bytes {
                for (class, list) in self.lists.iter_mut().enumerate() {
                    surplus.extend(list.drain(..).map(|block| (class, block)));
                }
                self.held_bytes = 0;
            }
            self.held_bytes += bytes;
            self.lists[class].push(block);
        }
        for (class, _) in &surplus {
            if let Some(made) = class.checked_sub(SCRATCH) {
                self.scratch[made] -= 1;
            }
        }
        surplus
    }
}

/// One thread's free blocks of one class.
struct List {
    blocks: Vec<Block>,
    /// Maximum number of blocks; 0 if recycling is disabled.
    capacity: usize,
    block_bytes: usize,
}

/// One thread's free blocks of all small classes.
struct Local {
    lists: [List; LOCAL_CLASSES + OBJECT_CLASSES],
    counters: Arc<Counters>,
}

thread_local! {
    static LOCAL: RefCell<Local> = RefCell::new(Local::new());
}

impl Local {
    fn new() -> Self {
        let counters = Arc::<Counters>::default();
        shelf().threads.push(Arc::clone(&counters));
        let lists = std::array::from_fn(|index| {
            let block_bytes = class_bytes(class_at(index));
            let bytes = if limit_bytes() > 0 { LOCAL_BYTES_PER_CLASS } else { 0 };
            List { blocks: Vec::new(), capacity: bytes / block_bytes, block_bytes }
        });
        Local { lists, counters }
    }

    fn take(&mut self, index: usize, class: usize) -> Option<Block> {
        let list = &mut self.lists[index];
        if list.blocks.is_empty() {
            list.refill(class, &self.counters);
        }
        let block = list.blocks.pop()?;
        self.counters.set_held(|held| held - list.block_bytes);
        self.counters.reuse();
        Some(block)
    }

    /// Keeps a block; false if recycling is disabled.
    fn give(&mut self, index: usize, class: usize, block: Block) -> bool {
        let list = &mut self.lists[index];
        if list.blocks.len() >= list.capacity {
            if list.capacity == 0 {
                return false;
            }
            list.spill(class, &self.counters);
        }
        list.blocks.push(block);
        self.counters.set_held(|held| held + list.block_bytes);
        true
    }
}

impl List {
    /// Takes half a list from the shelf, so that a thread that only allocates rarely locks it.
    #[cold]
    fn refill(&mut self, class: usize, counters: &Counters) {
        let mut shelf = shelf();
        let from = &mut shelf.lists[class];
        let wanted = (self.capacity / 2).max(1).min(from.len());
        self.blocks.extend(from.drain(from.len() - wanted..));
        shelf.held_bytes -= wanted * self.block_bytes;
        counters.set_held(|held| held + wanted * self.block_bytes);
    }

    /// Moves half a list to the shelf.
    #[cold]
    fn spill(&mut self, class: usize, counters: &Counters) {
        let moved = self.blocks.len() - self.capacity / 2;
        let surplus = shelf().give(class, self.blocks.drain(..moved));
        free_all(surplus);
        counters.set_held(|held| held - moved * self.block_bytes);
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let mut surplus = Vec::new();
        {
            let mut shelf = shelf();
            for (index, list) in self.lists.iter_mut().enumerate() {
                surplus.extend(shelf.give(class_at(index), list.blocks.drain(..)));
            }
            shelf.reused += self.counters.reused.load(Relaxed);
            shelf.threads.retain(|thread| !Arc::ptr_eq(thread, &self.counters));
        }
        free_all(surplus);
    }
}

/// Index of the thread-local list of a class, if there is one.
const fn local_index(class: usize) -> Option<usize> {
    match class {
        0..LOCAL_CLASSES => Some(class),
        CLASSES..SCRATCH => Some(class - CLASSES + LOCAL_CLASSES),
        _ => None,
    }
}

/// Class of a thread-local list: the inverse of [`local_index`].
const fn class_at(index: usize) -> usize {
    if index < LOCAL_CLASSES { index } else { index - LOCAL_CLASSES + CLASSES }
}

/// Takes a free block of the class from this thread's list or from the shelf.
pub(super) fn take(class: usize) -> Option<Block> {
    match local_index(class) {
        // A thread whose lists are already destroyed uses the shelf.
        Some(index) => match LOCAL.try_with(|local| local.borrow_mut().take(index, class)) {
            Ok(block) => block,
            Err(_) => shelf().take(class),
        },
        None => shelf().take(class),
    }
}

/// Returns a block of the class to this thread's list, the shelf or the system.
pub(super) fn give(class: usize, block: Block) {
    let kept = local_index(class).is_some_and(|index| {
        LOCAL.try_with(|local| local.borrow_mut().give(index, class, block)).unwrap_or(false)
    });
    if !kept {
        let surplus = shelf().give(class, std::iter::once(block));
        free_all(surplus);
    }
}

/// Allocation layout of a block of the class.
pub(super) fn class_layout(class: usize) -> Option<Layout> {
    match (CLASSES..SCRATCH).contains(&class) {
        true => Layout::from_size_align(class_bytes(class), SYSTEM_ALIGNMENT).ok(),
        false => system_layout(class_bytes(class)),
    }
}

/// Allocation layout of a buffer.
pub(super) fn system_layout(bytes: usize) -> Option<Layout> {
    let layout = if bytes < LAZY_BYTES {
        Layout::from_size_align(bytes, ALIGNMENT)
    } else {
        Layout::from_size_align(bytes.checked_add(PAGE)?, SYSTEM_ALIGNMENT)
    };
    layout.ok()
}

/// Allocates a zeroed block from the system.
#[cold]
#[inline(never)]
pub(super) fn allocate(layout: Option<Layout>) -> Option<Block> {
    let layout = layout?;
    // SAFETY: the layout's size is not zero: the smallest block has `OBJECT_STEP` bytes.
    let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    ALLOCATED.fetch_add(1, Relaxed);
    let total = SYSTEM_BYTES.fetch_add(layout.size(), Relaxed) + layout.size();
    HIGH_WATER_BYTES.fetch_max(total, Relaxed);
    if layout.size() < LAZY_BYTES {
        return Some(Block(base));
    }
    huge_pages::ask_for(base, layout.size());
    static BLOCKS: AtomicUsize = AtomicUsize::new(0);
    let line = BLOCKS.fetch_add(LINES_APART, Relaxed) % (PAGE / ALIGNMENT);
    let shift = line * ALIGNMENT + ALIGNMENT - base.addr().get() % ALIGNMENT;
    // SAFETY: `base` is aligned to 16, so `shift` is a multiple of 16 from 16 to `PAGE`. The allocation is
    // `PAGE` bytes larger than the block, so there is room for `shift` bytes before it and for all of it.
    let data = unsafe {
        let data = base.add(shift);
        data.cast::<u16>().sub(1).write(shift as u16);
        data
    };
    Some(Block(data))
}

/// Returns a block to the system.
pub(super) fn free(layout: Option<Layout>, block: Block) {
    let layout = layout.expect("the block was allocated with this layout");
    SYSTEM_BYTES.fetch_sub(layout.size(), Relaxed);
    // SAFETY: `allocate` made the block with this layout, at the system's address or shifted by the number
    // stored in the two bytes before the block. A free block has no other references.
    unsafe {
        let base = if layout.size() < LAZY_BYTES {
            block.0
        } else {
            block.0.sub(usize::from(block.0.cast::<u16>().sub(1).read()))
        };
        dealloc(base.as_ptr(), layout);
    }
}

fn free_all(blocks: Vec<(usize, Block)>) {
    blocks.into_iter().for_each(|(class, block)| free(class_layout(class), block));
}

/// Takes temporary memory; returns the block and its class. The first call allocates a block for each of
/// `threads` threads, up to [`PREPARED_BYTES`], so that later calls of other threads do not allocate.
pub(super) fn take_scratch(bytes: usize, threads: usize) -> (Block, usize) {
    let class = SCRATCH + class_of(bytes);
    let threads = threads.min(PREPARED_BYTES / class_bytes(class));
    let (found, missing) = {
        let mut shelf = shelf();
        let found = shelf.take(class);
        let made = &mut shelf.scratch[class - SCRATCH];
        let missing = threads.saturating_sub(*made).max(usize::from(found.is_none()));
        *made += missing;
        (found, missing)
    };
    let new = || match allocate(class_layout(class)) {
        Some(block) => block,
        None => handle_alloc_error(Layout::new::<[u8; LAZY_BYTES]>()),
    };
    let (block, more) = match found {
        Some(block) => (block, missing),
        None => (new(), missing - 1),
    };
    if more > 0 {
        let surplus = shelf().give(class, (0..more).map(|_| new()));
        free_all(surplus);
    }
    (block, class)
}

/// Allocates the lists of this thread in advance.
pub(crate) fn warm_up() {
    let _ = LOCAL.try_with(|local| {
        for list in &mut local.borrow_mut().lists {
            list.blocks.reserve(8);
        }
    });
}

/// Alignment of an object.
pub(crate) const OBJECT_ALIGNMENT: usize = SYSTEM_ALIGNMENT;

/// Class of an object: a class of objects up to 512 bytes, else one of buffers.
const fn object_class(bytes: usize) -> usize {
    match bytes.div_ceil(OBJECT_STEP) {
        0 => CLASSES,
        steps @ 1..=OBJECT_CLASSES => CLASSES + steps - 1,
        _ => class_of(bytes),
    }
}

/// Allocates memory for an object, aligned to [`OBJECT_ALIGNMENT`], with arbitrary content.
pub(crate) fn take_object(bytes: usize) -> NonNull<u8> {
    let class = object_class(bytes);
    match take(class).or_else(|| allocate(class_layout(class))) {
        Some(block) => block.0,
        None => handle_alloc_error(Layout::new::<[u8; LAZY_BYTES]>()),
    }
}

/// Returns the memory of an object.
///
/// # Safety
/// `block` came from [`take_object`] with the same `bytes` and is not used any more.
pub(crate) unsafe fn give_object(block: NonNull<u8>, bytes: usize) {
    give(object_class(bytes), Block(block));
}

/// Size of a block without a class.
pub(super) fn exact_bytes(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(ALIGNMENT)
}

/// Statistics of the memory pool.
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

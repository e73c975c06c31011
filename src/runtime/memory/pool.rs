//! Blocks of memory by size class: the lists of the threads, the shelf behind them, the system.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::{ALIGNMENT, PoolStats, huge_pages};
use crate::error::{Error, Result};

/// Bytes that the shelf keeps for reuse unless `SWATH_POOL_BYTES` says otherwise; 0 turns recycling
/// off.
const DEFAULT_POOL_BYTES: usize = 1 << 30;

/// Largest block kept in a thread's own lists.
pub(super) const LOCAL_MAX_BYTES: usize = 16 << 10;

/// Bytes of one size class kept in a thread's own list.
const LOCAL_BYTES_PER_CLASS: usize = 64 << 10;

/// Blocks from this size on are asked for with the allocator's own alignment and aligned here: a
/// stricter alignment makes Rust's system allocator write the zeros itself, touching every page.
pub(super) const LAZY_BYTES: usize = 64 << 10;

/// Bytes of a page, by which blocks of [`LAZY_BYTES`] and more exceed what they hold: they begin on
/// different lines of their pages. Allocators would have them all begin on the same, and loads wait
/// for stores before them that agree in the last 12 bits of the address.
pub(super) const PAGE: usize = 4096;

/// Lines from where one block begins in its page to where the next does; odd, so that all are used.
const LINES_APART: usize = 21;

/// Alignment that allocators give without being asked.
const SYSTEM_ALIGNMENT: usize = 16;

/// Bytes of scratch memory of a class that are made before they are asked for.
const PREPARED_BYTES: usize = 64 << 20;

/// Classes of buffers; those of objects follow.
pub(super) const CLASSES: usize = 256;
pub(super) const LOCAL_CLASSES: usize = class_of(LOCAL_MAX_BYTES) + 1;

/// Objects (nodes, rules, handles) come in steps of so many bytes and need no cache line of their own.
const OBJECT_STEP: usize = 32;
const OBJECT_CLASSES: usize = 16;

/// Classes of scratch memory, which stays apart so that nothing else takes what a late thread will need.
const SCRATCH: usize = CLASSES + OBJECT_CLASSES;

/// Bytes of one class of objects that the shelf keeps: a graph of 40,000 nodes comes back for nothing.
const MAX_OBJECT_BYTES: usize = 8 << 20;

/// The class whose blocks hold `bytes`, which is at most `isize::MAX`.
pub(super) const fn class_of(bytes: usize) -> usize {
    let units = bytes.div_ceil(ALIGNMENT);
    if units <= 4 {
        return units.saturating_sub(1);
    }
    let octave = (units - 1).ilog2() as usize;
    let quarter = (units - (1 << octave)).div_ceil(1 << (octave - 2));
    4 * (octave - 1) + quarter - 1
}

/// Bytes of a block of this class.
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

/// A free block: the address of its first byte. Its size is its class's.
#[derive(Clone, Copy)]
pub(super) struct Block(pub(super) NonNull<u8>);

// SAFETY: a free block is memory that nobody else refers to.
unsafe impl Send for Block {}

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
    /// By class of scratch memory: how many blocks there are, in use or not.
    scratch: Vec<usize>,
    held_bytes: usize,
    reused: u64,
    /// Counters of the threads that are alive.
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
            let object = (CLASSES..SCRATCH).contains(&class);
            let enough = object && self.lists[class].len() * bytes >= MAX_OBJECT_BYTES;
            if bytes > limit_bytes() || enough {
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
    /// Blocks kept at most; none where recycling is off.
    capacity: usize,
    block_bytes: usize,
}

/// One thread's lists of small free blocks.
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
        let lists = std::array::from_fn(|place| {
            let block_bytes = class_bytes(class_at(place));
            let bytes = if limit_bytes() > 0 { LOCAL_BYTES_PER_CLASS } else { 0 };
            List { blocks: Vec::new(), capacity: bytes / block_bytes, block_bytes }
        });
        Local { lists, counters }
    }

    fn take(&mut self, place: usize, class: usize) -> Option<Block> {
        let list = &mut self.lists[place];
        if list.blocks.is_empty() {
            list.refill(class, &self.counters);
        }
        let block = list.blocks.pop()?;
        self.counters.set_held(|held| held - list.block_bytes);
        self.counters.reuse();
        Some(block)
    }

    /// Whether the block is kept.
    fn give(&mut self, place: usize, class: usize, block: Block) -> bool {
        let list = &mut self.lists[place];
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
    /// Takes half a list at once, so that a thread that only takes seldom locks.
    #[cold]
    fn refill(&mut self, class: usize, counters: &Counters) {
        let mut shelf = shelf();
        let from = &mut shelf.lists[class];
        let wanted = (self.capacity / 2).max(1).min(from.len());
        self.blocks.extend(from.drain(from.len() - wanted..));
        shelf.held_bytes -= wanted * self.block_bytes;
        counters.set_held(|held| held + wanted * self.block_bytes);
    }

    /// Leaves half a list.
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
            for (place, list) in self.lists.iter_mut().enumerate() {
                surplus.extend(shelf.give(class_at(place), list.blocks.drain(..)));
            }
            shelf.reused += self.counters.reused.load(Relaxed);
            shelf.threads.retain(|thread| !Arc::ptr_eq(thread, &self.counters));
        }
        free_all(surplus);
    }
}

/// Where a thread keeps its blocks of the class, if it does.
const fn place(class: usize) -> Option<usize> {
    match class {
        0..LOCAL_CLASSES => Some(class),
        CLASSES..SCRATCH => Some(class - CLASSES + LOCAL_CLASSES),
        _ => None,
    }
}

/// The class that a thread keeps there: the inverse of [`place`].
const fn class_at(place: usize) -> usize {
    if place < LOCAL_CLASSES { place } else { place - LOCAL_CLASSES + CLASSES }
}

/// A block of the class from this thread's lists or the shelf.
pub(super) fn take(class: usize) -> Option<Block> {
    match place(class) {
        // A thread whose lists are gone already goes to the shelf.
        Some(place) => match LOCAL.try_with(|local| local.borrow_mut().take(place, class)) {
            Ok(block) => block,
            Err(_) => shelf().take(class),
        },
        None => shelf().take(class),
    }
}

pub(super) fn give(class: usize, block: Block) {
    let kept = place(class).is_some_and(|place| {
        LOCAL.try_with(|local| local.borrow_mut().give(place, class, block)).unwrap_or(false)
    });
    if !kept {
        let surplus = shelf().give(class, std::iter::once(block));
        free_all(surplus);
    }
}

/// How a block of the class is asked for.
pub(super) fn class_layout(class: usize) -> Option<Layout> {
    match (CLASSES..SCRATCH).contains(&class) {
        true => Layout::from_size_align(class_bytes(class), SYSTEM_ALIGNMENT).ok(),
        false => system_layout(class_bytes(class)),
    }
}

/// How a buffer of so many bytes is asked for.
pub(super) fn system_layout(bytes: usize) -> Option<Layout> {
    let layout = if bytes < LAZY_BYTES {
        Layout::from_size_align(bytes, ALIGNMENT)
    } else {
        Layout::from_size_align(bytes.checked_add(PAGE)?, SYSTEM_ALIGNMENT)
    };
    layout.ok()
}

/// A zeroed block from the system.
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
    // SAFETY: `shift` is a multiple of 16 from 16 to `PAGE`, as `base` is aligned to 16, and `PAGE` bytes
    // more than the block has were asked for: `shift` bytes lie before the block and all of it follows.
    let data = unsafe {
        let data = base.add(shift);
        data.cast::<u16>().sub(1).write(shift as u16);
        data
    };
    Some(Block(data))
}

pub(super) fn free(layout: Option<Layout>, block: Block) {
    let layout = layout.expect("the block was allocated with this layout");
    SYSTEM_BYTES.fetch_sub(layout.size(), Relaxed);
    // SAFETY: `allocate` made the block by this layout: it began at the system's address, or
    // as many bytes after it as the two bytes before the block say. Nobody refers to it: it was free.
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

/// Memory to work in for a moment, and its class. As many blocks are made, up to [`PREPARED_BYTES`], as
/// there are threads beside this one when the first asks: the others may ask later, and this is when
/// memory is asked for.
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

/// Makes what this thread needs to keep blocks.
pub(crate) fn warm_up() {
    let _ = LOCAL.try_with(|local| {
        for list in &mut local.borrow_mut().lists {
            list.blocks.reserve(8);
        }
    });
}

/// Alignment of an object.
pub(crate) const OBJECT_ALIGNMENT: usize = SYSTEM_ALIGNMENT;

/// The class of an object of so many bytes: of its own up to 512, else a buffer's.
const fn object_class(bytes: usize) -> usize {
    match bytes.div_ceil(OBJECT_STEP) {
        0 => CLASSES,
        steps @ 1..=OBJECT_CLASSES => CLASSES + steps - 1,
        _ => class_of(bytes),
    }
}

/// Memory for an object of so many bytes, aligned to [`OBJECT_ALIGNMENT`], with any content.
pub(crate) fn take_object(bytes: usize) -> NonNull<u8> {
    let class = object_class(bytes);
    match take(class).or_else(|| allocate(class_layout(class))) {
        Some(block) => block.0,
        None => handle_alloc_error(Layout::new::<[u8; LAZY_BYTES]>()),
    }
}

/// Gives an object's memory back.
///
/// # Safety
/// `block` came from [`take_object`] for as many bytes, and nobody uses it any more.
pub(crate) unsafe fn give_object(block: NonNull<u8>, bytes: usize) {
    give(object_class(bytes), Block(block));
}

/// Size of a block that belongs to no class.
pub(super) fn exact_bytes(bytes: usize) -> usize {
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

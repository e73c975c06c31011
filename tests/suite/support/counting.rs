//! An allocator that counts what the program asks the system for. Only a test that is [`alone`] can tell
//! what of it is its own.
//!
//! [`alone`]: super::alone

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The system's allocator, counted over all threads.
pub struct Counting;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn count(bytes: usize) {
    CALLS.fetch_add(1, SeqCst);
    let live = LIVE.fetch_add(bytes, SeqCst) + bytes;
    PEAK.fetch_max(live, SeqCst);
}

// SAFETY: every method hands its arguments to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), SeqCst);
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new memory are there at once, as far as anyone can promise.
        count(size);
        LIVE.fetch_sub(layout.size(), SeqCst);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// How often memory was asked for so far.
pub fn calls() -> usize {
    CALLS.load(SeqCst)
}

/// Bytes that are had now.
pub fn live_bytes() -> usize {
    LIVE.load(SeqCst)
}

/// Runs `f` and returns, beside its result, the most bytes that were had during it beyond those had
/// before.
pub fn peak_of<R>(f: impl FnOnce() -> R) -> (R, usize) {
    let before = live_bytes();
    PEAK.store(before, SeqCst);
    let result = f();
    (result, PEAK.load(SeqCst).saturating_sub(before))
}

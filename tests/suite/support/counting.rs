//! An allocator that counts what the program asks the system for. Only a test that is [`alone`] can tell
//! what of it is its own.
//!
//! [`alone`]: super::alone

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The system's allocator, counted over all threads. Calls of the main thread do not count: the test
/// harness runs on it, beside the test, and on a busy machine late.
pub struct Counting;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Where the main thread's [`MARK`] lies: no thread asks for memory before it.
static MAIN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MARK: u8 = const { 0 };
}

fn is_main() -> bool {
    let mark = MARK.with(|mark| std::ptr::from_ref(mark).addr());
    MAIN.compare_exchange(0, mark, SeqCst, SeqCst).is_ok() || MAIN.load(SeqCst) == mark
}

fn count(bytes: usize) {
    CALLS.fetch_add(usize::from(!is_main()), SeqCst);
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

/// How often memory was asked for so far, by any thread but the main one.
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

//! An allocator that counts allocations. Only a test that runs [`alone`] can attribute the counts to itself.
//!
//! [`alone`]: super::alone

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The system's allocator, with counts over all threads. Calls of the main thread are not counted: the test
/// harness runs on it, concurrently with the test.
pub struct Counting;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Address of the main thread's [`MARK`]; the main thread is the first to allocate.
static MAIN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MARK: u8 = const { 0 };
}

fn is_main() -> bool {
    let mark = MARK.with(|mark| std::ptr::from_ref(mark).addr());
    MAIN.compare_exchange(0, mark, SeqCst, SeqCst).is_ok() || MAIN.load(SeqCst) == mark
}

/// Counts an allocation, which may have failed, and returns its block.
fn counted(block: *mut u8, bytes: usize) -> *mut u8 {
    CALLS.fetch_add(usize::from(!is_main()), SeqCst);
    if !block.is_null() {
        let live = LIVE.fetch_add(bytes, SeqCst) + bytes;
        PEAK.fetch_max(live, SeqCst);
    }
    block
}

// SAFETY: every method passes its arguments to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promised.
        counted(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promised.
        counted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), SeqCst);
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promised.
        let new = counted(unsafe { System.realloc(block, layout, size) }, size);
        // The old and the new block may have existed at the same time.
        if !new.is_null() {
            LIVE.fetch_sub(layout.size(), SeqCst);
        }
        new
    }
}

/// Number of allocations so far, by any thread but the main one.
pub fn calls() -> usize {
    CALLS.load(SeqCst)
}

/// Bytes that are allocated now.
pub fn live_bytes() -> usize {
    LIVE.load(SeqCst)
}

/// Runs `f` and returns its result and the peak of bytes that were allocated beyond those before it.
pub fn peak_of<R>(f: impl FnOnce() -> R) -> (R, usize) {
    let before = live_bytes();
    PEAK.store(before, SeqCst);
    let result = f();
    (result, PEAK.load(SeqCst).saturating_sub(before))
}

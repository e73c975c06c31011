//! Thread-local mode of recording for autodiff: a set of flags. A thread that runs another job while it waits
//! resets them for that job (`runtime/parallel.rs`).

use std::cell::Cell;

use super::on_drop::OnDrop;

/// Operations on tracked tensors are recorded.
pub(crate) const RECORDING: u8 = 1;
/// Results are tracked, but nothing is kept for them: the first run of a checkpointed function.
pub(crate) const FIRST_RUN: u8 = 1 << 1;
/// A checkpointed function runs again, in a backward pass.
pub(crate) const REPLAY: u8 = 1 << 2;
/// Ids of nodes and drawn values are written to a tape or read from one.
pub(crate) const TAPED: u8 = 1 << 3;
/// Results are inspected for NaN and infinity.
pub(crate) const DETECTING: u8 = 1 << 4;

thread_local! {
    static MODE: Cell<u8> = const { Cell::new(RECORDING) };
}

/// True if one of the flags is set on this thread.
pub(crate) fn has(flags: u8) -> bool {
    MODE.get() & flags != 0
}

/// True if operations on this thread are recorded.
pub(crate) fn is_recording() -> bool {
    has(RECORDING)
}

/// Runs `f` on this thread with the flags of `set` and without those of `cleared`, and then restores the mode,
/// also after a panic.
pub(crate) fn with_flags<R>(set: u8, cleared: u8, f: impl FnOnce() -> R) -> R {
    let outer = MODE.replace(MODE.get() & !cleared | set);
    let _restore = OnDrop(|| MODE.set(outer));
    f()
}

/// Runs `f` with recording on or off. What is recorded is kept, also within a first run.
pub(crate) fn with_recording<R>(recording: bool, f: impl FnOnce() -> R) -> R {
    match recording {
        true => with_flags(RECORDING, FIRST_RUN, f),
        false => with_flags(0, RECORDING, f),
    }
}

thread_local! {
    static MICRO_BATCH: Cell<u64> = const { Cell::new(0) };
}

/// The micro-batch that this thread computes, by which dropout draws its zeros; 0 outside of one.
pub(crate) fn micro_batch() -> u64 {
    MICRO_BATCH.get()
}

/// Runs `f` on this thread for a micro-batch.
pub(crate) fn with_micro_batch<R>(index: u64, f: impl FnOnce() -> R) -> R {
    let outer = MICRO_BATCH.replace(index);
    let _restore = OnDrop(|| MICRO_BATCH.set(outer));
    f()
}

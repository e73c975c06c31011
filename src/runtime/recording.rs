//! Thread-local flag of recording for autodiff. A thread that runs another job while it waits resets the flag
//! for that job (`runtime/parallel.rs`).

use std::cell::Cell;

thread_local! {
    static RECORDING: Cell<bool> = const { Cell::new(true) };
}

/// True if operations on this thread are recorded.
pub(crate) fn is_recording() -> bool {
    RECORDING.get()
}

/// Runs `f` with recording on or off on this thread, and then restores the flag, also after a panic.
pub(crate) fn with_recording<R>(recording: bool, f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            RECORDING.set(self.0);
        }
    }
    let _restore = Restore(RECORDING.replace(recording));
    f()
}

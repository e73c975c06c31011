//! Whether operations on this thread are recorded. `autodiff` reads and sets it; threads that take up another
//! job while they wait put it aside (`backend/cpu/parallel.rs`).

use std::cell::Cell;

thread_local! {
    static RECORDING: Cell<bool> = const { Cell::new(true) };
}

pub(crate) fn is_recording() -> bool {
    RECORDING.get()
}

/// Runs `f` with recording on or off on this thread; what it was comes back, also if `f` panics.
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

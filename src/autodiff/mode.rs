//! Whether operations on this thread are recorded.

use std::cell::Cell;

thread_local! {
    static RECORDING: Cell<bool> = const { Cell::new(true) };
}

/// True if operations on tracked tensors are recorded on this thread.
pub fn is_grad_enabled() -> bool {
    RECORDING.get()
}

/// Runs `f` without recording: its results are untracked. Holds for the calling thread, also if
/// `f` panics.
///
/// ```
/// use swath::prelude::*;
/// let x = tensor![1.0, 2.0].requires_grad();
/// let y = no_grad(|| x.exp())?;
/// assert!(!y.is_tracked());
/// # Ok::<(), Error>(())
/// ```
pub fn no_grad<R>(f: impl FnOnce() -> R) -> R {
    with_recording(false, f)
}

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

//! Recording on and off, as users ask for it.

use crate::runtime::recording::{is_recording, with_recording};

/// True if operations on tracked tensors are recorded on this thread.
pub fn is_grad_enabled() -> bool {
    is_recording()
}

/// Runs `f` without recording: its results are untracked. Holds for the calling thread, also if
/// `f` panics; not for other jobs that it takes up in a rayon pool while an operation waits for its parts.
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

//! `no_grad` and `is_grad_enabled`.

use crate::runtime::recording::{is_recording, with_recording};

/// True if operations on tracked tensors are recorded on the calling thread.
pub fn is_grad_enabled() -> bool {
    is_recording()
}

/// Runs `f` without recording, so that its results are untracked. Recording is restored afterwards,
/// also if `f` panics. Only the calling thread is affected, and not other jobs that it runs in a
/// rayon pool while an operation waits for its parts.
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

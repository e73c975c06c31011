//! [`Transport`]: the trait that carries messages between ranks.

use crate::backend::cpu::CpuTensor;
use crate::dtype::DType;
use crate::error::Result;

/// Carries messages between the ranks of a world. Implement it to train over a network that [`World`](super::World)
/// does not support.
///
/// Messages from one rank to another arrive in the order of their sending. A message is a contiguous
/// tensor, and its receiver knows its dtype and number of elements. Only [`Transport::finish`] may block: the
/// [`World`](super::World) polls [`Transport::test`], and gives up after its deadline.
pub trait Transport: Send {
    /// The rank of this process or thread, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// A description for people, such as `threads of this process` or `Open MPI v4.1.4`.
    fn name(&self) -> String;

    /// Starts to send a message. The transport keeps the message until it has been sent.
    ///
    /// # Errors
    /// [`Error::Transport`](crate::Error::Transport).
    fn send(&mut self, to: usize, message: CpuTensor) -> Result<()>;

    /// Starts to receive a message with one axis of `len` elements.
    ///
    /// # Errors
    /// [`Error::Transport`](crate::Error::Transport), [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    fn receive(&mut self, from: usize, dtype: DType, len: usize) -> Result<()>;

    /// Makes progress without blocking. Returns true once all sends and receives are complete.
    ///
    /// # Errors
    /// [`Error::Transport`](crate::Error::Transport) for a failure;
    /// [`Error::Mismatch`](crate::Error::Mismatch) if a message does not have the expected dtype and length, or its
    /// sender has left.
    fn test(&mut self) -> Result<bool>;

    /// Returns the received messages, in the order of the calls of [`Transport::receive`]. Called after
    /// [`Transport::test`] has returned true.
    fn take(&mut self) -> Vec<CpuTensor>;

    /// Returns a rank whose message has not arrived.
    fn waiting_for(&self) -> Option<usize>;

    /// True if all ranks must end together: dropping the last handle of a world then waits for the other ranks. If
    /// false, a rank may leave at any time, and [`Transport::test`] of the others reports it.
    fn ends_together(&self) -> bool {
        true
    }

    /// Shuts the transport down, after all ranks have agreed to end.
    ///
    /// # Errors
    /// [`Error::Transport`](crate::Error::Transport).
    fn finish(&mut self) -> Result<()>;

    /// Ends the whole job, if its ranks are processes.
    fn abort(&mut self);
}

//! [`Transport`]: what carries messages between ranks.

use crate::backend::cpu::CpuTensor;
use crate::dtype::DType;
use crate::error::Result;

/// Carries messages between the ranks of a world. Implement it to train over another network than those of
/// [`World`](super::World).
///
/// Messages from one rank to another arrive in the order in which they were sent. A message is a contiguous
/// tensor; its receiver knows its dtype and number of elements. Nothing waits but [`Transport::finish`]: the
/// [`World`](super::World) asks [`Transport::test`] again and again, and gives up after its deadline.
pub trait Transport: Send {
    /// The number of this process or thread among the ranks, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// What carries the messages, for people: `threads of this process`, `Open MPI v4.1.4`.
    fn name(&self) -> String;

    /// Begins to send. The transport holds the message until it has been sent.
    ///
    /// # Errors
    /// [`Error::Transport`](crate::Error::Transport).
    fn send(&mut self, to: usize, message: CpuTensor) -> Result<()>;

    /// Begins to receive a message with one axis of `len` elements.
    ///
    /// # Errors
    /// [`Error::Transport`](crate::Error::Transport), [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    fn receive(&mut self, from: usize, dtype: DType, len: usize) -> Result<()>;

    /// Goes on with what has begun, without waiting. True once all of it is done.
    ///
    /// # Errors
    /// [`Error::Transport`](crate::Error::Transport) for a failure;
    /// [`Error::Mismatch`](crate::Error::Mismatch) if a message has another dtype or length, or its sender has
    /// left.
    fn test(&mut self) -> Result<bool>;

    /// After [`Transport::test`] has returned true: the received messages, in the order in which their receipt
    /// began.
    fn take(&mut self) -> Vec<CpuTensor>;

    /// A rank whose message has not arrived.
    fn waiting_for(&self) -> Option<usize>;

    /// True if ranks have to end together: the last handle of a world then waits for the others. Where a rank may
    /// go at any time, [`Transport::test`] of another finds out.
    fn ends_together(&self) -> bool {
        true
    }

    /// Ends the use of the transport in good order, after all ranks have agreed to end.
    ///
    /// # Errors
    /// [`Error::Transport`](crate::Error::Transport).
    fn finish(&mut self) -> Result<()>;

    /// Ends the whole job, if it consists of processes.
    fn abort(&mut self);
}

//! [`Local`]: ranks that are threads of one process.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::transport::Transport;
use crate::backend::TensorData;
use crate::backend::cpu::CpuTensor;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Messages on their way, and who has left.
struct Shared {
    /// By sender and receiver.
    queues: Vec<VecDeque<CpuTensor>>,
    has_left: Vec<bool>,
}

/// One rank among threads. A message is handed over without a copy.
pub(super) struct Local {
    rank: usize,
    size: usize,
    shared: Arc<Mutex<Shared>>,
    expected: Vec<Expected>,
}

struct Expected {
    from: usize,
    dtype: DType,
    len: usize,
    message: Option<CpuTensor>,
}

impl Local {
    /// The ranks of a world of `size`.
    pub fn ranks(size: usize) -> Vec<Local> {
        let queues = (0..size * size).map(|_| VecDeque::new()).collect();
        let shared = Arc::new(Mutex::new(Shared { queues, has_left: vec![false; size] }));
        let rank = |rank| Local { rank, size, shared: Arc::clone(&shared), expected: Vec::new() };
        (0..size).map(rank).collect()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // Queues and flags are changed as a whole, so that a panic leaves them valid.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for Local {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn name(&self) -> String {
        "threads of this process".to_owned()
    }

    fn send(&mut self, to: usize, message: CpuTensor) -> Result<()> {
        let queue = self.rank * self.size + to;
        self.shared().queues[queue].push_back(message);
        Ok(())
    }

    fn receive(&mut self, from: usize, dtype: DType, len: usize) -> Result<()> {
        self.expected.push(Expected { from, dtype, len, message: None });
        Ok(())
    }

    fn test(&mut self) -> Result<bool> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_done = true;
        // By sender: a later message does not overtake an earlier one that is missing.
        let mut is_missing = vec![false; self.size];
        for expected in self.expected.iter_mut().filter(|expected| expected.message.is_none()) {
            let &mut Expected { from, dtype, len, .. } = expected;
            if is_missing[from] {
                continue;
            }
            let Some(message) = shared.queues[from * self.size + self.rank].pop_front() else {
                if shared.has_left[from] {
                    return Err(Error::Mismatch { rank: from, what: "it has left".to_owned() });
                }
                (is_done, is_missing[from]) = (false, true);
                continue;
            };
            if (message.dtype(), message.shape().numel()) != (dtype, len) {
                let what = format!(
                    "it sent {} of shape {} where {len} {dtype} were expected",
                    message.dtype(),
                    message.shape()
                );
                return Err(Error::Mismatch { rank: from, what });
            }
            expected.message = Some(message);
        }
        Ok(is_done)
    }

    fn take(&mut self) -> Vec<CpuTensor> {
        self.expected.drain(..).filter_map(|expected| expected.message).collect()
    }

    fn waiting_for(&self) -> Option<usize> {
        let missing = self.expected.iter().find(|expected| expected.message.is_none());
        missing.map(|expected| expected.from)
    }

    fn ends_together(&self) -> bool {
        false
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn abort(&mut self) {
        self.shared().has_left.fill(true);
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let rank = self.rank;
        self.shared().has_left[rank] = true;
    }
}

//! [`Local`]: ranks that are threads of one process.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::transport::Transport;
use crate::backend::TensorData;
use crate::backend::cpu::CpuTensor;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Messages on their way, and who has left.
struct Shared {
    /// By sender and receiver, of those pairs that have exchanged messages.
    queues: BTreeMap<[usize; 2], VecDeque<CpuTensor>>,
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
        let (queues, has_left) = (BTreeMap::new(), vec![false; size]);
        let shared = Arc::new(Mutex::new(Shared { queues, has_left }));
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
        self.shared().queues.entry([self.rank, to]).or_default().push_back(message);
        Ok(())
    }

    fn receive(&mut self, from: usize, dtype: DType, len: usize) -> Result<()> {
        self.expected.push(Expected { from, dtype, len, message: None });
        Ok(())
    }

    fn test(&mut self) -> Result<bool> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        // Senders: a later message does not overtake an earlier one that is missing.
        let mut missing = BTreeSet::new();
        for expected in self.expected.iter_mut().filter(|expected| expected.message.is_none()) {
            let &mut Expected { from, dtype, len, .. } = expected;
            if missing.contains(&from) {
                continue;
            }
            let queue = shared.queues.get_mut(&[from, self.rank]);
            let Some(message) = queue.and_then(VecDeque::pop_front) else {
                if shared.has_left[from] {
                    return Err(Error::Mismatch { rank: from, what: "it has left".to_owned() });
                }
                missing.insert(from);
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
        Ok(missing.is_empty())
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

//! [`LocalTransport`]: messages between threads of one process.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::transport::Transport;
use crate::backend::TensorData;
use crate::backend::cpu::CpuTensor;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Messages in flight, and the ranks that have left.
struct Shared {
    /// One queue for each pair of sender and receiver that has exchanged a message.
    queues: BTreeMap<[usize; 2], VecDeque<CpuTensor>>,
    has_left: Vec<bool>,
}

/// The endpoint of one rank. Messages are passed without a copy.
pub(super) struct LocalTransport {
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

impl LocalTransport {
    /// Returns the endpoints of `size` ranks.
    pub fn ranks(size: usize) -> Vec<LocalTransport> {
        let (queues, has_left) = (BTreeMap::new(), vec![false; size]);
        let shared = Arc::new(Mutex::new(Shared { queues, has_left }));
        let rank =
            |rank| LocalTransport { rank, size, shared: Arc::clone(&shared), expected: Vec::new() };
        (0..size).map(rank).collect()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // A panic cannot leave a queue or a flag half written.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for LocalTransport {
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
        // Senders with a missing message: their later messages must wait for it.
        let mut missing = BTreeSet::new();
        for expected in self.expected.iter_mut().filter(|expected| expected.message.is_none()) {
            let &mut Expected { from, dtype, len, .. } = expected;
            if missing.contains(&from) {
                continue;
            }
            let queue = shared.queues.get_mut(&[from, self.rank]);
            let Some(message) = queue.and_then(VecDeque::pop_front) else {
                if shared.has_left[from] {
                    return Err(Error::Mismatch { rank: from, what: "it left".to_owned() });
                }
                missing.insert(from);
                continue;
            };
            if (message.dtype(), message.shape().numel()) != (dtype, len) {
                let what = format!(
                    "expected a message of {len} {dtype}, got {} of shape {}",
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

impl Drop for LocalTransport {
    fn drop(&mut self) {
        let rank = self.rank;
        self.shared().has_left[rank] = true;
    }
}

//! [`World`]: the ranks that train together, and their collective operations.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::agreement::{self, Hash, Operation, Proposal, WORDS};
use super::local::LocalTransport;
use super::reduce;
use super::transport::Transport;
use super::tree::Node;
use crate::backend::Backend;
use crate::backend::cpu::{CpuBackend, CpuTensor};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// How long an operation waits for other ranks unless [`World::with_deadline`] sets another limit.
const DEADLINE: Duration = Duration::from_secs(120);
/// Maximum number of ranks of [`World::local`], which are threads.
const MAX_RANKS: usize = 1 << 16;
/// A waiting rank first polls for `SPIN`, yielding to other threads, and then sleeps for `NAP` between polls.
const SPIN: Duration = Duration::from_millis(20);
const NAP: Duration = Duration::from_micros(200);

/// The ranks that train together: processes of an MPI job, or threads of one process. Clones are handles of the
/// same rank.
///
/// All ranks must call the methods that move data, in the same order. Before anything is moved, the ranks agree on
/// the operation. If one of them differs, all of them return [`Error::Mismatch`], which names that rank. If a rank
/// does not answer within the deadline, the others return [`Error::Stalled`], and the world cannot be used any more.
/// None of these methods hangs.
///
/// When the last handle is dropped, an MPI process waits for the other ranks to drop theirs, at most until the
/// deadline. After an error or panic, drop does not wait. Return the error from `main`; the launcher then ends the
/// other processes.
///
/// ```
/// use swath::distributed::World;
/// use swath::prelude::*;
///
/// let ranks = World::local(3)?;
/// std::thread::scope(|scope| {
///     for world in ranks {
///         scope.spawn(move || {
///             let x = Tensor::<CpuBackend>::full(2, world.rank() as f32)?;
///             assert_eq!(world.broadcast(&x)?.to_vec::<f32>()?, [0.0, 0.0]);
///             let all = world.all_gather(&x)?;
///             assert_eq!(all[2].to_vec::<f32>()?, [2.0, 2.0]);
///             Ok::<(), Error>(())
///         });
///     }
/// });
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct World {
    rank: usize,
    size: usize,
    state: Arc<Mutex<State>>,
}

/// The transport, and the error that has ended its use.
pub(super) struct State {
    transport: Box<dyn Transport>,
    deadline: Duration,
    /// The first error after which the world cannot be used.
    failed: Option<Error>,
}

/// A message to receive: its sender, dtype and number of elements.
pub(super) type Expected = (usize, DType, usize);

impl World {
    /// Returns the ranks of a world of `size` threads; move each into its thread. Useful for tests, and on machines
    /// with many sockets. Messages are passed without a copy.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless there are 1 to 65,536 ranks.
    pub fn local(size: usize) -> Result<Vec<World>> {
        if !(1..=MAX_RANKS).contains(&size) {
            let reason = format!("expected 1 to {MAX_RANKS} ranks, got {size}");
            return Err(Error::InvalidArgument { op: "World::local", reason });
        }
        Ok(LocalTransport::ranks(size).into_iter().map(World::over).collect())
    }

    /// Returns a world that uses this transport.
    pub fn over(transport: impl Transport + 'static) -> World {
        let (rank, size) = (transport.rank(), transport.size());
        let transport: Box<dyn Transport> = Box::new(transport);
        let state = State { transport, deadline: DEADLINE, failed: None };
        World { rank, size, state: Arc::new(Mutex::new(state)) }
    }

    /// Joins the processes that `mpirun` (or `srun`, `mpiexec`) started. Without a launcher, there is one rank. Call
    /// it once, at the start of the program, because MPI cannot be started again.
    ///
    /// From then on, a panic of any thread ends the process. The launcher then ends the job, so the other ranks do not
    /// wait.
    ///
    /// # Errors
    /// [`Error::WrongLauncher`] if launcher and program use different MPI libraries; [`Error::Transport`] if the
    /// program was built without MPI, or MPI does not start, or was started before.
    #[cfg(feature = "mpi")]
    pub fn mpi() -> Result<World> {
        super::mpi::MpiTransport::start().map(World::over)
    }

    /// Sets how long an operation waits for other ranks, 120 s by default. Choose it longer than any work that one rank
    /// does alone, such as writing a checkpoint. [`Duration::MAX`] means no limit. The deadline applies to all handles
    /// of this rank.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> World {
        self.state().deadline = deadline;
        self
    }

    /// The index of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// True on rank 0, the one that should print and write files.
    pub fn is_root(&self) -> bool {
        self.rank == 0
    }

    /// Waits until every rank has called it.
    ///
    /// # Errors
    /// [`Error::Mismatch`], [`Error::Stalled`], [`Error::Transport`].
    pub fn barrier(&self) -> Result<()> {
        self.state().agree(&Proposal::of(Operation::Barrier))
    }

    /// Fails on every rank unless all ranks pass the same value, such as a seed or a hash of the data.
    ///
    /// ```
    /// use swath::distributed::World;
    /// World::local(1)?[0].agree(42)?;
    /// # Ok::<(), swath::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Mismatch`] with the first rank that differs from rank 0; [`Error::Stalled`],
    /// [`Error::Transport`].
    pub fn agree(&self, value: u64) -> Result<()> {
        self.state().agree(&Proposal { value, ..Proposal::of(Operation::Agree) })
    }

    /// Returns rank 0's values of `x`. Shape and dtype must be the same on all ranks. The result is not tracked.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if shapes or dtypes differ; [`Error::Stalled`], [`Error::Transport`].
    pub fn broadcast<B: Backend>(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        let own = self.state().or_report(pack(x))?;
        self.agree_on(Operation::Broadcast, x)?;
        let sent = self.state().broadcast(vec![own])?.pop();
        unpack(x, sent.expect("as many as were passed"))
    }

    /// Returns the tensors of all ranks, in rank order. Shape and dtype must be the same on all ranks. The results
    /// are not tracked.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if shapes or dtypes differ; [`Error::Stalled`], [`Error::Transport`].
    pub fn all_gather<B: Backend>(&self, x: &Tensor<B>) -> Result<Vec<Tensor<B>>> {
        let own = self.state().or_report(pack(x))?;
        self.agree_on(Operation::Gather, x)?;
        let (dtype, len) = (own.dtype(), own.numel());
        let others = (0..self.size).filter(|&rank| rank != self.rank);
        let sends = others.clone().map(|rank| (rank, own.clone())).collect();
        let expected = others.map(|rank| (rank, dtype, len)).collect();
        let mut all = self.state().exchange(Operation::Gather, sends, expected)?;
        all.insert(self.rank, own);
        all.into_iter().map(|part| unpack(x, part)).collect()
    }

    /// Returns the tensors of all ranks on rank 0, and `None` on the others. Shape and dtype must be the same on
    /// all ranks. The results are not tracked.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if shapes or dtypes differ; [`Error::Stalled`], [`Error::Transport`].
    pub fn gather<B: Backend>(&self, x: &Tensor<B>) -> Result<Option<Vec<Tensor<B>>>> {
        let own = self.state().or_report(pack(x))?;
        self.agree_on(Operation::Gather, x)?;
        if !self.is_root() {
            self.state().exchange(Operation::Gather, vec![(0, own)], Vec::new())?;
            return Ok(None);
        }
        let expected = (1..self.size).map(|rank| (rank, own.dtype(), own.numel())).collect();
        let others = self.state().exchange(Operation::Gather, Vec::new(), expected)?;
        let all = [own].into_iter().chain(others);
        all.map(|part| unpack(x, part)).collect::<Result<_>>().map(Some)
    }

    /// Returns the sum of the tensors of all ranks, with the same bits on each of them. Shape and dtype (a float) must
    /// be the same on all ranks. The additions form a tree over the ranks, so rounding depends on the number of ranks;
    /// with [`DataParallel`](super::DataParallel) it does not. The result is not tracked.
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`] for a dtype that is not a float; [`Error::Mismatch`] if shapes or dtypes differ;
    /// [`Error::Stalled`], [`Error::Transport`].
    pub fn sum<B: Backend>(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        let (op, dtype, shape) = ("sum", x.dtype(), *x.shape());
        if !dtype.is_float() {
            return Err(Error::UnsupportedDType { op, dtype, shape });
        }
        let own = pack(x).and_then(|x| x.to_dtype(dtype.at_least_f32()));
        let own = self.state().or_report(own)?;
        self.agree_on(Operation::Sum, x)?;
        let layout = [(own.dtype(), *own.shape())];
        let node = Node { level: 0, k: self.rank, value: vec![own] };
        let count = (self.size, 1.0);
        let sum = reduce::mean(&mut self.state(), Operation::Sum, count, vec![node], &layout)?;
        unpack(x, sum.into_iter().next().expect("as many as were passed"))
    }

    /// Ends the whole MPI job with a failure. Ranks that are threads get an error at their next operation. Blocks while
    /// another thread of this rank runs an operation.
    pub fn abort(&self) {
        self.state().transport.abort();
    }

    /// Agrees on an operation on tensors with the dtype and shape of `x`.
    fn agree_on<B: Backend>(&self, operation: Operation, x: &Tensor<B>) -> Result<()> {
        let layout = Hash::new().bytes(x.dtype().name().as_bytes()).shape(x.shape()).finish();
        self.state().agree(&Proposal { layout, ..Proposal::of(operation) })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // After a panic within an operation, the process ends or the other ranks report this one as stalled.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts a tensor to a message: on the CPU, with one axis, `Bool` as `U8`.
pub(super) fn pack<B: Backend>(x: &Tensor<B>) -> Result<Tensor<CpuBackend>> {
    let x: Tensor<CpuBackend> = x.detach().to_backend()?;
    let x = if x.dtype() == DType::Bool { x.to_dtype(DType::U8)? } else { x };
    x.reshape(x.numel())?.contiguous()
}

/// Converts a message to a tensor with the dtype and shape of `x`.
pub(super) fn unpack<B: Backend>(x: &Tensor<B>, message: Tensor<CpuBackend>) -> Result<Tensor<B>> {
    message.to_dtype(x.dtype())?.reshape(*x.shape())?.to_backend()
}

impl State {
    /// The rank, and the number of ranks.
    pub fn rank_and_size(&self) -> (usize, usize) {
        (self.transport.rank(), self.transport.size())
    }

    /// Fails on all ranks unless all proposals are equal.
    pub fn agree(&mut self, proposal: &Proposal) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let (rank, size) = (self.transport.rank(), self.transport.size());
        if size == 1 {
            return Ok(());
        }
        let own = proposal.words();
        let result = match rank {
            0 => self.decide_for_all(own, proposal.operation),
            _ => {
                let sends = vec![(0, Tensor::from_data(agreement::message(own)?))];
                let expected = vec![(0, DType::I64, WORDS)];
                // Wait longer than rank 0 does, so that it can name another rank that stalled.
                let grace = self.deadline / 4 + Duration::from_secs(1);
                let deadline = self.deadline.saturating_add(grace);
                self.wait(proposal.operation, sends, expected, deadline)
                    .and_then(|decision| agreement::words(decision[0].data()))
            }
        };
        let decision = match result {
            Err(Error::Mismatch { rank, .. }) => agreement::has_left(rank),
            result => result?,
        };
        let outcome = agreement::outcome(decision, proposal);
        if agreement::is_final(decision) {
            self.failed = outcome.clone().err();
        }
        outcome
    }

    /// Receives the proposals of the other ranks, and sends them the decision.
    fn decide_for_all(&mut self, own: [i64; WORDS], operation: Operation) -> Result<[i64; WORDS]> {
        let size = self.transport.size();
        let expected = (1..size).map(|rank| (rank, DType::I64, WORDS)).collect();
        let proposals = self.wait(operation, Vec::new(), expected, self.deadline);
        let decision = match &proposals {
            Ok(proposals) => {
                let others = proposals.iter().map(|proposal| agreement::words(proposal.data()));
                let all: Result<Vec<_>> = [Ok(own)].into_iter().chain(others).collect();
                agreement::decide(&all?)
            }
            Err(Error::Stalled { waiting_for, seconds, .. }) => {
                agreement::stalled(*waiting_for, *seconds)
            }
            Err(Error::Mismatch { rank, .. }) => agreement::has_left(*rank),
            Err(error) => return Err(error.clone()),
        };
        for rank in 1..size {
            let sent = self.transport.send(rank, agreement::message(decision)?);
            if proposals.is_ok() {
                sent?;
            }
        }
        match proposals {
            Ok(_) => drop(self.complete(operation, self.deadline)?),
            // A receive is still pending, so completion cannot be awaited: poll for a while to get the sends out.
            Err(_) => {
                let start = Instant::now();
                while start.elapsed() < SPIN && self.transport.test().is_ok() {
                    std::thread::yield_now();
                }
            }
        }
        Ok(decision)
    }

    /// Tells the others that this rank's part of an operation failed.
    pub fn report_failure(&mut self) {
        // The caller has an error to return.
        let _ = self.agree(&Proposal::of(Operation::Failure));
    }

    /// Returns a result of this rank's part of an operation; an error is reported to the others.
    pub fn or_report<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.report_failure();
        }
        result
    }

    /// Sends and receives what all ranks have agreed on. Returns the messages in the order of `expected`.
    pub fn exchange(
        &mut self,
        operation: Operation,
        sends: Vec<(usize, Tensor<CpuBackend>)>,
        expected: Vec<Expected>,
    ) -> Result<Vec<Tensor<CpuBackend>>> {
        self.wait(operation, sends, expected, self.deadline)
    }

    fn wait(
        &mut self,
        operation: Operation,
        sends: Vec<(usize, Tensor<CpuBackend>)>,
        expected: Vec<Expected>,
        deadline: Duration,
    ) -> Result<Vec<Tensor<CpuBackend>>> {
        let result = self.begin(sends, expected).and_then(|()| self.complete(operation, deadline));
        Ok(self.keep_failure(result)?.into_iter().map(Tensor::from_data).collect())
    }

    /// Returns `result`, the outcome of an agreed operation. An error is kept: the others still expect this operation's
    /// messages from this rank, so it must not send any other.
    pub fn keep_failure<R>(&mut self, result: Result<R>) -> Result<R> {
        if let Err(error) = &result {
            self.failed.get_or_insert(error.clone());
        }
        result
    }

    fn begin(
        &mut self,
        sends: Vec<(usize, Tensor<CpuBackend>)>,
        expected: Vec<Expected>,
    ) -> Result<()> {
        for (from, dtype, len) in expected {
            self.transport.receive(from, dtype, len)?;
        }
        for (to, message) in sends {
            self.transport.send(to, message.into_data())?;
        }
        Ok(())
    }

    /// Waits until all sends and receives are complete, at most until the deadline.
    fn complete(&mut self, operation: Operation, deadline: Duration) -> Result<Vec<CpuTensor>> {
        let start = Instant::now();
        while !self.transport.test()? {
            let waited = start.elapsed();
            if waited > deadline {
                let (what, seconds) = (operation.name(), waited.as_secs());
                let waiting_for = self.transport.waiting_for().unwrap_or(0);
                return Err(Error::Stalled { waiting_for, what, seconds });
            }
            match waited < SPIN {
                true => std::thread::yield_now(),
                false => std::thread::sleep(NAP),
            }
        }
        Ok(self.transport.take())
    }

    /// Returns the messages of rank 0. They are sent along a binomial tree: a rank receives from the rank that lacks
    /// its highest bit.
    pub fn broadcast(
        &mut self,
        mut messages: Vec<Tensor<CpuBackend>>,
    ) -> Result<Vec<Tensor<CpuBackend>>> {
        let (rank, size) = (self.transport.rank(), self.transport.size());
        if rank > 0 {
            let from = rank - (1 << rank.ilog2());
            let expected = messages.iter().map(|x| (from, x.dtype(), x.numel())).collect();
            messages = self.exchange(Operation::Broadcast, Vec::new(), expected)?;
        }
        let first = if rank == 0 { 0 } else { rank.ilog2() + 1 };
        let receivers = (first..usize::BITS).map(|bit| rank + (1 << bit));
        let receivers = receivers.take_while(|&receiver| receiver < size);
        let sends = receivers.flat_map(|to| messages.iter().map(move |x| (to, x.clone())));
        self.exchange(Operation::Broadcast, sends.collect(), Vec::new())?;
        Ok(messages)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // After an error or in a panic, do not wait. The other ranks will notice.
        if self.failed.is_some() || std::thread::panicking() || !self.transport.ends_together() {
            return;
        }
        if self.agree(&Proposal::of(Operation::End)).is_ok() {
            let _ = self.transport.finish();
        }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "World({self})")
    }
}

/// One line: the rank, the number of ranks, the transport, and a warning if the launcher has bound the rank to one
/// CPU.
impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}, {}", self.rank, self.size, self.state().transport.name())?;
        let cpus = std::thread::available_parallelism().map_or(0, usize::from);
        let is_bound = std::env::var_os("OMPI_COMM_WORLD_SIZE").is_some() && self.size > 1;
        if cpus == 1 && is_bound {
            write!(f, "; bound to 1 CPU, so to 1 thread (mpirun --bind-to none gives it all)")?;
        }
        Ok(())
    }
}

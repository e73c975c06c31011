//! [`World`]: the ranks that train together, and what they do together.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::agreement::{self, Claim, Hash, Operation, WORDS};
use super::local::Local;
use super::reduce;
use super::transport::Transport;
use super::tree::Node;
use crate::backend::Backend;
use crate::backend::cpu::{CpuBackend, CpuTensor};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// How long an operation waits for other ranks, if [`World::with_deadline`] does not say.
const DEADLINE: Duration = Duration::from_secs(120);
/// The most ranks of [`World::local`]; each is to be a thread.
const MAX_RANKS: usize = 1 << 16;
/// Waiting spins for so long, giving way to other threads, and sleeps between looks after that.
const SPIN: Duration = Duration::from_millis(20);
const NAP: Duration = Duration::from_micros(200);

/// The ranks that train together: processes of an MPI job, or threads of one process. Clones are handles of the
/// same rank.
///
/// Every method that moves data is called by all ranks, in the same order. Before anything is moved the ranks
/// agree on what they are about to do, so that a difference between them is an error on all of them:
/// [`Error::Mismatch`] names the rank. A rank that does not answer within the deadline is
/// [`Error::Stalled`], after which the world cannot be used. None of these methods hangs.
///
/// When the last handle is dropped, an MPI process takes leave of the others and waits for them, at most until the
/// deadline. An error of a world, or a panic, is not waited with: leave `main` with the error, and the launcher ends
/// the other processes.
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

/// The transport and what has happened to it.
pub(super) struct State {
    transport: Box<dyn Transport>,
    deadline: Duration,
    /// The error after which nothing can be done together.
    failed: Option<Error>,
}

/// A message to be received: its sender, dtype and number of elements.
pub(super) type Expected = (usize, DType, usize);

impl World {
    /// The ranks of a world of `size` threads, which need not exist yet: give each of them one. For tests, and
    /// for machines with many sockets. Messages are handed over without a copy.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no rank, and for more than 65,536.
    pub fn local(size: usize) -> Result<Vec<World>> {
        if !(1..=MAX_RANKS).contains(&size) {
            let reason = format!("expected 1 to {MAX_RANKS} ranks, got {size}");
            return Err(Error::InvalidArgument { op: "World::local", reason });
        }
        Ok(Local::ranks(size).into_iter().map(World::over).collect())
    }

    /// A world over a transport.
    pub fn over(transport: impl Transport + 'static) -> World {
        let (rank, size) = (transport.rank(), transport.size());
        let transport: Box<dyn Transport> = Box::new(transport);
        let state = State { transport, deadline: DEADLINE, failed: None };
        World { rank, size, state: Arc::new(Mutex::new(state)) }
    }

    /// The processes that `mpirun` (or `srun`, `mpiexec`) started; a single rank if the program was started
    /// by itself. Call it once, at the start of the program: MPI cannot be started again.
    ///
    /// From then on, a panic of any thread ends the process, so that the launcher ends the job instead of leaving
    /// the others waiting.
    ///
    /// # Errors
    /// [`Error::WrongLauncher`] if the launcher belongs to another MPI library than the program;
    /// [`Error::Transport`] if the program was built without MPI, if MPI does not start or was started before.
    #[cfg(feature = "mpi")]
    pub fn mpi() -> Result<World> {
        super::mpi::Over::start().map(World::over)
    }

    /// Sets how long an operation waits for other ranks, 120 s by default. It must exceed what one rank may do
    /// alone in the meantime, such as to write a checkpoint; with [`Duration::MAX`] there is no
    /// limit. It counts for all handles of this rank.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> World {
        self.state().deadline = deadline;
        self
    }

    /// The number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// True on rank 0, which prints and writes files.
    pub fn is_root(&self) -> bool {
        self.rank == 0
    }

    /// Waits until every rank has called it.
    ///
    /// # Errors
    /// [`Error::Mismatch`], [`Error::Stalled`], [`Error::Transport`].
    pub fn barrier(&self) -> Result<()> {
        self.state().agree(&Claim::of(Operation::Barrier))
    }

    /// Fails on every rank unless all of them pass the same value: a seed, a hash of the data.
    ///
    /// ```
    /// use swath::distributed::World;
    /// World::local(1)?[0].agree(42)?;
    /// # Ok::<(), swath::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Mismatch`] with the first rank whose value is not that of rank 0; [`Error::Stalled`],
    /// [`Error::Transport`].
    pub fn agree(&self, value: u64) -> Result<()> {
        self.state().agree(&Claim { value, ..Claim::of(Operation::Agree) })
    }

    /// Returns the values that `x` has on rank 0. Shape and dtype are the same on all ranks. The result is not
    /// tracked.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if shapes or dtypes differ; [`Error::Stalled`], [`Error::Transport`].
    pub fn broadcast<B: Backend>(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        let own = carried(x)?;
        self.like(Operation::Broadcast, x)?;
        let sent = self.state().broadcast(vec![own])?.pop();
        restored(x, sent.expect("as many as were passed"))
    }

    /// Returns the tensors of all ranks, in their order. Shape and dtype are the same on all ranks. The results
    /// are not tracked.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if shapes or dtypes differ; [`Error::Stalled`], [`Error::Transport`].
    pub fn all_gather<B: Backend>(&self, x: &Tensor<B>) -> Result<Vec<Tensor<B>>> {
        let own = carried(x)?;
        self.like(Operation::Gather, x)?;
        let (dtype, len) = (own.dtype(), own.numel());
        let others = (0..self.size).filter(|&rank| rank != self.rank);
        let sends = others.clone().map(|rank| (rank, own.clone())).collect();
        let expected = others.map(|rank| (rank, dtype, len)).collect();
        let mut all = self.state().exchange(Operation::Gather, sends, expected)?;
        all.insert(self.rank, own);
        all.into_iter().map(|part| restored(x, part)).collect()
    }

    /// Returns the tensors of all ranks on rank 0, and `None` on the others. Shape and dtype are the same on
    /// all ranks. The results are not tracked.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if shapes or dtypes differ; [`Error::Stalled`], [`Error::Transport`].
    pub fn gather<B: Backend>(&self, x: &Tensor<B>) -> Result<Option<Vec<Tensor<B>>>> {
        let own = carried(x)?;
        self.like(Operation::Gather, x)?;
        if !self.is_root() {
            self.state().exchange(Operation::Gather, vec![(0, own)], Vec::new())?;
            return Ok(None);
        }
        let expected = (1..self.size).map(|rank| (rank, own.dtype(), own.numel())).collect();
        let others = self.state().exchange(Operation::Gather, Vec::new(), expected)?;
        let all = [own].into_iter().chain(others);
        all.map(|part| restored(x, part)).collect::<Result<_>>().map(Some)
    }

    /// Returns the sum of the tensors of all ranks, on each of them, with the same bits. Shape and dtype (a float) are
    /// the same on all ranks. Additions are made in a tree over the ranks, so that rounding depends on their number;
    /// [`DataParallel`](super::DataParallel) is for sums that do not. The result is not tracked.
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`] for other dtypes than floats; [`Error::Mismatch`] if shapes or dtypes differ;
    /// [`Error::Stalled`], [`Error::Transport`].
    pub fn sum<B: Backend>(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        let (op, dtype, shape) = ("sum", x.dtype(), *x.shape());
        if !dtype.is_float() {
            return Err(Error::UnsupportedDType { op, dtype, shape });
        }
        let own = carried(x)?.to_dtype(dtype.at_least_f32())?;
        self.like(Operation::Sum, x)?;
        let layout = [(own.dtype(), *own.shape())];
        let node = Node { level: 0, k: self.rank, value: vec![own] };
        let count = (self.size, 1.0);
        let sum = reduce::mean(&mut self.state(), Operation::Sum, count, vec![node], &layout)?;
        restored(x, sum.into_iter().next().expect("as many as were passed"))
    }

    /// Ends the whole MPI job, with a failure. Ranks that are threads get an error at their next operation. Waits while
    /// another thread of this rank is in an operation.
    pub fn abort(&self) {
        self.state().transport.abort();
    }

    /// Agrees on an operation on tensors like `x`.
    fn like<B: Backend>(&self, operation: Operation, x: &Tensor<B>) -> Result<()> {
        let layout = Hash::new().bytes(x.dtype().name().as_bytes()).shape(x.shape()).finish();
        self.state().agree(&Claim { layout, ..Claim::of(operation) })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A panic in the middle of an operation ends the process, or leaves a rank that the others find stalled.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A tensor as the message that carries it: on the CPU, with one axis; a `Bool` as `U8`.
pub(super) fn carried<B: Backend>(x: &Tensor<B>) -> Result<Tensor<CpuBackend>> {
    let x: Tensor<CpuBackend> = x.detach().to_backend()?;
    let x = if x.dtype() == DType::Bool { x.to_dtype(DType::U8)? } else { x };
    x.reshape(x.numel())?.contiguous()
}

/// A message as a tensor like `x`.
pub(super) fn restored<B: Backend>(
    x: &Tensor<B>,
    message: Tensor<CpuBackend>,
) -> Result<Tensor<B>> {
    message.to_dtype(x.dtype())?.reshape(*x.shape())?.to_backend()
}

impl State {
    /// The rank, and the number of ranks.
    pub fn place(&self) -> (usize, usize) {
        (self.transport.rank(), self.transport.size())
    }

    /// Fails on all ranks unless their claims are equal.
    pub fn agree(&mut self, claim: &Claim) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let (rank, size) = (self.transport.rank(), self.transport.size());
        if size == 1 {
            return Ok(());
        }
        let own = claim.words();
        let result = match rank {
            0 => self.decide(own, claim.operation),
            _ => {
                let sends = vec![(0, Tensor::from_data(agreement::message(own)?))];
                let expected = vec![(0, DType::I64, WORDS)];
                // Rank 0 says who has stalled, if it is another.
                let grace = self.deadline / 4 + Duration::from_secs(1);
                let deadline = self.deadline.saturating_add(grace);
                self.wait(claim.operation, sends, expected, deadline)
                    .and_then(|verdict| agreement::words(verdict[0].data()))
            }
        };
        let verdict = match result {
            Err(Error::Mismatch { rank, .. }) => agreement::has_left(rank),
            result => result?,
        };
        let outcome = agreement::outcome(verdict, claim);
        if agreement::is_final(verdict) {
            self.failed = outcome.clone().err();
        }
        outcome
    }

    /// Reads the claims of the others, and tells them the verdict.
    fn decide(&mut self, own: [i64; WORDS], operation: Operation) -> Result<[i64; WORDS]> {
        let size = self.transport.size();
        let expected = (1..size).map(|rank| (rank, DType::I64, WORDS)).collect();
        let claims = self.wait(operation, Vec::new(), expected, self.deadline);
        let verdict = match &claims {
            Ok(claims) => {
                let others = claims.iter().map(|claim| agreement::words(claim.data()));
                let all: Result<Vec<_>> = [Ok(own)].into_iter().chain(others).collect();
                agreement::verdict(&all?)
            }
            Err(Error::Stalled { waiting_for, seconds, .. }) => {
                agreement::stalled(*waiting_for, *seconds)
            }
            Err(Error::Mismatch { rank, .. }) => agreement::has_left(*rank),
            Err(error) => return Err(error.clone()),
        };
        for rank in 1..size {
            let sent = self.transport.send(rank, agreement::message(verdict)?);
            if claims.is_ok() {
                sent?;
            }
        }
        match claims {
            Ok(_) => drop(self.complete(operation, self.deadline)?),
            // A receipt is still open: the messages leave while this is asked, or not at all.
            Err(_) => {
                let start = Instant::now();
                while start.elapsed() < SPIN && self.transport.test().is_ok() {
                    std::thread::yield_now();
                }
            }
        }
        Ok(verdict)
    }

    /// Tells the others that this rank's part of an operation failed.
    pub fn report_failure(&mut self) {
        // The caller has an error to return.
        let _ = self.agree(&Claim::of(Operation::Failure));
    }

    /// Sends and receives; all ranks have agreed on it. The received messages are in the order of `expected`.
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

    /// Passes on a result of what ranks had agreed to do. After an error the others still expect messages of this rank,
    /// which must send no others.
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

    /// Waits until everything that has begun is done, at most until the deadline.
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

    /// Returns the messages of rank 0. They pass along a binomial tree: a rank has them from the one without
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
        // After an error, or while a panic passes, nothing waits: the others find out.
        if self.failed.is_some() || std::thread::panicking() || !self.transport.ends_together() {
            return;
        }
        if self.agree(&Claim::of(Operation::End)).is_ok() {
            let _ = self.transport.finish();
        }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "World({self})")
    }
}

/// One line: the rank, the number of ranks, the transport, and, if the launcher has bound the rank to fewer, the
/// number of CPUs.
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

//! Messages of bytes between the ranks of an MPI job: a minimal safe wrapper over Open MPI or MPICH.
//!
//! [`Mpi`] begins sends and receives, and [`Mpi::test`] tells whether all of them are done. No call waits for
//! another rank except [`Mpi::start`] and [`Mpi::finish`], so that the caller can set deadlines and, by
//! [`Mpi::waiting_for`], name the rank that is late.
//!
//! ```no_run
//! # fn main() -> Result<(), swath_mpi::Error> {
//! let mut mpi = swath_mpi::Mpi::start()?;
//! let (rank, size) = (mpi.rank(), mpi.size());
//! mpi.send((rank + 1) % size, vec![rank as u8; 4])?;
//! mpi.receive((rank + size - 1) % size, vec![0; 4])?;
//! while !mpi.test()? {
//!     std::thread::yield_now();
//! }
//! assert_eq!(mpi.take(), [vec![((rank + size - 1) % size) as u8; 4]]);
//! mpi.finish()
//! # }
//! ```
//!
//! # Building
//!
//! The build runs `mpicc`, or the program that the environment variable `MPICC` names. If neither can be run,
//! the crate builds without MPI, and [`Mpi::start`] returns [`Error::NotBuilt`].
//!
//! A library outside the system's folders has to be found again when a program starts. `mpicc` names its
//! folder, but Cargo does not pass such an argument on to the programs of other packages. Either set
//! `LD_LIBRARY_PATH`, or let the build script of the package that has the program say
//!
//! ```
//! for folder in std::env::var("DEP_SWATH_MPI_RPATH").unwrap_or_default().split_terminator(':') {
//!     println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
//! }
//! ```
//!
//! The variable is set for packages that depend on `swath-mpi` directly.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};

mod shim;

/// Most bytes of one MPI call, whose count is a C `int`. Longer messages are sent in parts.
const MAX_PART: usize = 1 << 30;

/// Why MPI could not be started or used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This crate was built where no `mpicc` could be run.
    #[error(
        "swath-mpi was built without MPI, because mpicc was not found: install Open MPI or MPICH, or set MPICC, \
         then build again after `cargo clean -p swath-mpi`"
    )]
    NotBuilt,
    /// A process starts MPI once: it was started before, and may have been finished since.
    #[error("MPI was started before in this process: it can be started once")]
    AlreadyStarted,
    /// MPI may only be called by the thread that initialised it.
    #[error("{} offers less than MPI_THREAD_SERIALIZED: initialise it with that level", library())]
    ThreadLevel,
    /// The job was started by the launcher of another MPI library, which leaves every process on its own. (MPICH 5
    /// under Open MPI's mpirun never gets here: it aborts in `MPI_Init_thread`, and names "PMI version PMIx".)
    #[error(
        "started as one of {launched} processes by the launcher of another MPI library, but MPI has {size}: \
         use the mpirun that belongs to {}",
        library()
    )]
    WrongLauncher {
        /// Number of processes that the launcher started.
        launched: usize,
        /// Number of ranks that MPI has.
        size: usize,
    },
    /// An MPI call failed, or was refused because its arguments are invalid.
    #[error("{function}: {reason}")]
    Call {
        /// Name of the MPI function.
        function: &'static str,
        /// MPI's text.
        reason: String,
    },
}

/// This process as a rank of an MPI job. There is one per process.
///
/// It may move to another thread, and MPI is asked to permit that. The process must not call MPI by other means
/// at the same time, unless it has initialised MPI with `MPI_THREAD_MULTIPLE`. Where [`start`](Mpi::start)
/// initialises MPI, errors of MPI are returned; otherwise those of a test go to the handler of `MPI_COMM_SELF`.
///
/// After a failed send, receive or test, each further one returns the same error.
///
/// Dropping it does not finalise MPI: when the process ends, the launcher ends the whole job, as is wanted after
/// an error. The process should then return a failure, because MPICH's launcher reports no other. Messages that
/// are under way are leaked, because MPI may still access their memory.
/// [`finish`](Mpi::finish) is the orderly end.
pub struct Mpi<M> {
    rank: usize,
    size: usize,
    library: String,
    max_part: usize,
    /// Messages under way.
    pending: Vec<Pending<M>>,
    /// Number of requests that they consist of.
    requests: usize,
    /// Messages that have arrived and were not taken.
    received: Vec<M>,
    failure: Option<Error>,
}

// SAFETY: the pointers in `pending` each own their message, as a `Box` does, and `M` may move to another thread.
// MPI runs at MPI_THREAD_SERIALIZED or more, which `start` checks: any thread may call it, one at a time. `Mpi`
// is not `Sync` and exists once, so that its calls are one at a time.
unsafe impl<M: Send> Send for Mpi<M> {}

/// A message whose memory MPI uses.
struct Pending<M> {
    /// Made by `Box::into_raw`. Nothing else may access it until MPI is done.
    message: *mut M,
    direction: Direction,
    peer: usize,
    /// Number of bytes.
    len: usize,
    /// Its parts among the requests.
    parts: std::ops::Range<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Send,
    Receive,
}

// `'static`: an `Mpi` may be dropped while MPI writes into a message, which must not be borrowed memory then.
impl<M: AsRef<[u8]> + AsMut<[u8]> + Send + 'static> Mpi<M> {
    /// Initialises MPI, or joins it if the process has done so. Waits for the other ranks.
    ///
    /// # Errors
    /// [`Error::NotBuilt`]; [`Error::AlreadyStarted`]; [`Error::ThreadLevel`]; [`Error::WrongLauncher`];
    /// [`Error::Call`] if a call of MPI fails.
    pub fn start() -> Result<Self, Error> {
        static STARTED: AtomicBool = AtomicBool::new(false);
        if !shim::IS_BUILT {
            return Err(Error::NotBuilt);
        }
        if STARTED.swap(true, Ordering::SeqCst) {
            return Err(Error::AlreadyStarted);
        }
        let [mut is_finalized, mut is_serialized, mut rank, mut size] = [0; 4];
        // SAFETY: both are valid pointers. The flag STARTED lets one thread through, once.
        let code = unsafe { shim::swath_mpi_init(&mut is_finalized, &mut is_serialized) };
        check("MPI_Init_thread", code)?;
        if is_finalized != 0 {
            return Err(Error::AlreadyStarted);
        }
        // SAFETY: both are valid pointers, and MPI is initialised and not finalised, as checked above.
        let code = unsafe { shim::swath_mpi_duplicate(&mut rank, &mut size) };
        check("MPI_Comm_dup", code)?;
        // MPI gives 0 ≤ rank < size.
        let (rank, size) = (rank as usize, size as usize);
        if let Some(launched) = launched(size) {
            return Err(Error::WrongLauncher { launched, size });
        }
        if is_serialized == 0 {
            return Err(Error::ThreadLevel);
        }
        Ok(Mpi {
            rank,
            size,
            library: library(),
            max_part: MAX_PART,
            pending: Vec::new(),
            requests: 0,
            received: Vec::new(),
            failure: None,
        })
    }

    /// Number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Name and version of the MPI library, for example "Open MPI v4.1.4".
    pub fn library(&self) -> &str {
        &self.library
    }

    /// Begins to send the bytes of `message`, which is kept until they have been sent. Messages from one rank to
    /// another arrive in the order in which they were sent.
    ///
    /// # Errors
    /// [`Error::Call`] if there is no rank `to`, or MPI fails.
    pub fn send(&mut self, to: usize, message: M) -> Result<(), Error> {
        self.begin(Direction::Send, to, message)
    }

    /// Begins to receive a message from rank `from`, which must have as many bytes as `message` has;
    /// [`test`](Mpi::test) fails otherwise. They replace its bytes. (Of too long a message from a rank to itself,
    /// Open MPI 4.1 drops the end without an error.)
    ///
    /// # Errors
    /// [`Error::Call`] if there is no rank `from`, or MPI fails.
    pub fn receive(&mut self, from: usize, message: M) -> Result<(), Error> {
        self.begin(Direction::Receive, from, message)
    }

    fn begin(&mut self, direction: Direction, peer: usize, message: M) -> Result<(), Error> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let function = direction.function();
        if peer >= self.size {
            let reason = format!("expected a rank below {}, got {peer}", self.size);
            return Err(Error::Call { function, reason });
        }
        let message = Box::into_raw(Box::new(message));
        // SAFETY: the pointer comes from a box that is freed only in `test`, when MPI is done with the bytes. Until
        // then nothing accesses the message: the borrow that the bytes are taken from lasts as long.
        let (bytes, len) = unsafe {
            match direction {
                Direction::Send => {
                    let bytes = (*message).as_ref();
                    (bytes.as_ptr().cast_mut(), bytes.len())
                }
                Direction::Receive => {
                    let bytes = (*message).as_mut();
                    (bytes.as_mut_ptr(), bytes.len())
                }
            }
        };
        let parts = self.requests..self.requests + len.div_ceil(self.max_part).max(1);
        self.requests = parts.end;
        self.pending.push(Pending { message, direction, peer, len, parts: parts.clone() });
        for part in 0..parts.len() {
            let start = part * self.max_part;
            let part_len = (len - start).min(self.max_part) as c_int;
            // SAFETY: `start + part_len` is at most `len`, so that the bytes lie within the message, which is not
            // freed before MPI is done. They may be written where the direction is Receive: they come from
            // `as_mut` then. MPI runs, because `finish` consumes `self`; `peer` is a rank, as checked above, and
            // `&mut self` makes the calls one at a time.
            let code = unsafe {
                let bytes = bytes.add(start).cast();
                match direction {
                    Direction::Send => shim::swath_mpi_send(bytes, part_len, peer as c_int),
                    Direction::Receive => shim::swath_mpi_receive(bytes, part_len, peer as c_int),
                }
            };
            self.keep_failure(check(function, code))?;
        }
        Ok(())
    }

    /// True if everything that was begun is done. Does not wait; MPI makes progress in this call alone.
    ///
    /// # Errors
    /// [`Error::Call`] if MPI fails, or a message has not as many bytes as expected.
    pub fn test(&mut self) -> Result<bool, Error> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.pending.is_empty() {
            return Ok(true);
        }
        let mut is_done = 0;
        // SAFETY: a valid pointer; MPI runs, because `finish` consumes `self`; `&mut self` makes the calls one at a
        // time. The memory of all requests is valid, because `pending` holds the messages.
        let code = unsafe { shim::swath_mpi_test(&mut is_done) };
        self.keep_failure(check("MPI_Testall", code))?;
        if is_done == 0 {
            return Ok(false);
        }
        let lengths = self.pending.iter().try_for_each(check_length);
        self.keep_failure(lengths)?;
        self.requests = 0;
        for pending in self.pending.drain(..) {
            // SAFETY: the pointer comes from `Box::into_raw` and leaves `pending` here, so that it is freed once.
            // MPI is done with the memory: MPI_Testall said so for all requests.
            let message = unsafe { Box::from_raw(pending.message) };
            if pending.direction == Direction::Receive {
                self.received.push(*message);
            }
        }
        Ok(true)
    }

    /// The messages that [`test`](Mpi::test) found received, in the order of their [`receive`](Mpi::receive),
    /// without those taken before. Empty if there are none.
    pub fn take(&mut self) -> Vec<M> {
        std::mem::take(&mut self.received)
    }

    /// The other rank of the first receive that is not done; if there is none, of the first send.
    pub fn waiting_for(&self) -> Option<usize> {
        let is_done = |request: usize| {
            let mut is_done = 0;
            // SAFETY: a valid pointer; the shim checks the number of the request, which it may lack after a failed
            // `begin`. MPI runs, because `finish` consumes `self`, and `Mpi` is not `Sync`, so that the calls are one
            // at a time.
            let code = unsafe { shim::swath_mpi_is_done(request as c_int, &mut is_done) };
            code == 0 && is_done != 0
        };
        let first = |direction| {
            let mut pending = self.pending.iter().filter(|pending| pending.direction == direction);
            pending.find(|pending| !pending.parts.clone().all(is_done)).map(|pending| pending.peer)
        };
        first(Direction::Receive).or_else(|| first(Direction::Send))
    }

    /// Finalises MPI, unless the process had initialised it before [`start`](Mpi::start). Waits for the other
    /// ranks. MPI wants this to be called by the thread that called `start`.
    ///
    /// # Errors
    /// [`Error::Call`] if a call has failed before, messages are under way, or MPI fails.
    pub fn finish(self) -> Result<(), Error> {
        let function = "MPI_Finalize";
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if !self.pending.is_empty() {
            let reason = format!("{} messages are not known to be done", self.pending.len());
            return Err(Error::Call { function, reason });
        }
        // SAFETY: MPI runs and has no request, as checked above; `self` is consumed and `start` gives no other,
        // so that nothing is called afterwards.
        check(function, unsafe { shim::swath_mpi_finish() })
    }

    /// Ends the job on all ranks, by `MPI_Abort`. The launcher reports `code`.
    pub fn abort(&mut self, code: i32) -> ! {
        // SAFETY: MPI runs, because `finish` consumes `self`; `&mut self` makes the calls one at a time.
        unsafe { shim::swath_mpi_abort(code) };
        std::process::abort()
    }

    /// Sends messages in parts of so many bytes. All ranks must agree.
    #[doc(hidden)]
    pub fn set_max_part(&mut self, bytes: usize) {
        self.max_part = bytes.clamp(1, MAX_PART);
    }

    fn keep_failure(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        self.failure = result.clone().err();
        result
    }
}

impl Direction {
    fn function(self) -> &'static str {
        match self {
            Direction::Send => "MPI_Isend",
            Direction::Receive => "MPI_Irecv",
        }
    }
}

/// # Errors
/// [`Error::Call`] if a part of the message has not the length that was expected.
fn check_length<M>(pending: &Pending<M>) -> Result<(), Error> {
    if pending.direction == Direction::Send {
        return Ok(());
    }
    let mut len = 0;
    for part in pending.parts.clone() {
        let mut bytes = 0;
        // SAFETY: a valid pointer; the shim checks the number of the request. `test`, the only caller, has found
        // everything done and holds the `Mpi` mutably, so that the calls are one at a time.
        let code = unsafe { shim::swath_mpi_received(part as c_int, &mut bytes) };
        check("MPI_Get_count", code)?;
        len += bytes as usize;
    }
    if len == pending.len {
        return Ok(());
    }
    let reason = format!("expected {} bytes from rank {}, got {len}", pending.len, pending.peer);
    Err(Error::Call { function: "MPI_Testall", reason })
}

/// Number of processes that a launcher started, if that differs from the number of ranks. Open MPI's launcher and
/// those of MPICH and its relatives say it in environment variables, and so does Slurm's srun.
fn launched(size: usize) -> Option<usize> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    let numbers = || {
        ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"].into_iter().filter_map(number)
    };
    // One launcher may have been started by another.
    if numbers().any(|number: usize| number == size) { None } else { numbers().next() }
}

/// # Errors
/// [`Error::Call`] with MPI's text, unless `code` is that of success.
fn check(function: &'static str, code: c_int) -> Result<(), Error> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: the shim writes at most `length` bytes, with a final 0. MPI runs, or is about to: MPI_Error_string
    // may be called at any time.
    let reason = text(|bytes, length| unsafe { shim::swath_mpi_error(code, bytes, length) });
    Err(Error::Call { function, reason })
}

/// Name and version of the MPI library: of its first line, what precedes a comma.
fn library() -> String {
    // SAFETY: the shim writes at most `length` bytes, with a final 0. MPI_Get_library_version may be called at any
    // time and by any thread.
    let whole = text(|bytes, length| unsafe { shim::swath_mpi_library(bytes, length) });
    let line = whole.lines().next().unwrap_or_default();
    let name = line.split(',').next().unwrap_or_default();
    let words = name.split_whitespace().filter(|word| *word != "Version:");
    words.collect::<Vec<_>>().join(" ")
}

/// The text that `write` writes into memory of the given length.
fn text(write: impl FnOnce(*mut c_char, c_int) -> c_int) -> String {
    let mut bytes = [0u8; 512];
    if write(bytes.as_mut_ptr().cast(), bytes.len() as c_int) != 0 {
        return "unknown".to_owned();
    }
    let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..len]).trim().to_owned()
}

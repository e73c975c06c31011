//! Messages of bytes between the ranks of an MPI job: a minimal safe wrapper over Open MPI or MPICH.
//!
//! [`Mpi`] starts sends and receives, and [`Mpi::test`] returns whether all of them are complete. Only [`Mpi::start`]
//! and [`Mpi::finish`] wait for other ranks. The caller can therefore set deadlines, and name a late rank with
//! [`Mpi::waiting_for`].
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
//! The build runs `mpicc`, or the program in the environment variable `MPICC`. If it cannot be run, the crate builds
//! without MPI, and [`Mpi::start`] returns [`Error::NotBuilt`].
//!
//! A program must find a library outside the system's folders at run time. `mpicc` passes its folder to the linker, but
//! Cargo does not do so for programs of other packages. Either set `LD_LIBRARY_PATH`, or add this to the build script
//! of the program's package:
//!
//! ```
//! for folder in std::env::var("DEP_SWATH_MPI_RPATH").unwrap_or_default().split_terminator(':') {
//!     println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
//! }
//! ```
//!
//! Cargo sets the variable for packages that depend on `swath-mpi` directly.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};

mod shim;

/// Maximum number of bytes of one MPI call, because its count is a C `int`. Longer messages are sent in parts.
const MAX_PART: usize = 1 << 30;

/// The reason why MPI could not be started or used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The crate was built without `mpicc`.
    #[error(
        "swath-mpi was built without MPI, because mpicc was not found: install Open MPI or MPICH, or set MPICC, \
         then build again after `cargo clean -p swath-mpi`"
    )]
    NotBuilt,
    /// MPI was started before in this process. It cannot be started again, even after it was finished.
    #[error("MPI was started before in this process: it can be started once")]
    AlreadyStarted,
    /// MPI permits calls only from the thread that initialised it.
    #[error("{} offers less than MPI_THREAD_SERIALIZED: initialise it with that level", library())]
    ThreadLevel,
    /// The launcher of another MPI library started the job, so every process is alone. (MPICH 5 under Open MPI's mpirun
    /// does not return this error: it aborts in `MPI_Init_thread` with "PMI version PMIx".)
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
    /// An MPI call failed or had invalid arguments.
    #[error("{function}: {reason}")]
    Call {
        /// Name of the MPI function.
        function: &'static str,
        /// The reason, usually as MPI reports it.
        reason: String,
    },
}

/// This process as a rank of an MPI job. There is one per process.
///
/// It may move to another thread; MPI is initialised to permit that. The process must not call MPI by other means at
/// the same time, unless it has initialised MPI with `MPI_THREAD_MULTIPLE`. If [`start`](Mpi::start) initialises MPI,
/// all errors of MPI are returned. Otherwise errors of `test` go to the handler of `MPI_COMM_SELF`.
///
/// After a failed send, receive or test, all later ones return the same error.
///
/// [`finish`](Mpi::finish) shuts MPI down. Dropping `Mpi` does not: the launcher ends the whole job when the process
/// ends, which is right after an error. Return a failure then, because MPICH's launcher reports nothing else. Messages
/// in flight are leaked, because MPI may still access their memory.
pub struct Mpi<M> {
    rank: usize,
    size: usize,
    library: String,
    max_part: usize,
    /// Messages in flight.
    pending: Vec<Pending<M>>,
    /// Number of requests for the messages in flight.
    requests: usize,
    /// Messages that have arrived and have not been taken.
    received: Vec<M>,
    failure: Option<Error>,
}

// SAFETY: each pointer in `pending` owns its message like a `Box`, and `M` may move to another thread. `start` checks
// for MPI_THREAD_SERIALIZED, which permits calls from any thread, one at a time. `Mpi` is not `Sync` and exists once,
// so its calls are one at a time.
unsafe impl<M: Send> Send for Mpi<M> {}

/// A message in flight. MPI accesses its memory.
struct Pending<M> {
    /// From `Box::into_raw`. Nothing else may access it until MPI is done.
    message: *mut M,
    direction: Direction,
    peer: usize,
    /// Number of bytes.
    len: usize,
    /// The range of its requests.
    parts: std::ops::Range<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Send,
    Receive,
}

// `'static`: an `Mpi` may be dropped while MPI writes into a message, so a message must not be borrowed memory.
impl<M: AsRef<[u8]> + AsMut<[u8]> + Send + 'static> Mpi<M> {
    /// Initialises MPI unless the process has already done so. Waits for the other ranks.
    ///
    /// # Errors
    /// [`Error::NotBuilt`]; [`Error::AlreadyStarted`]; [`Error::ThreadLevel`]; [`Error::WrongLauncher`];
    /// [`Error::Call`] if an MPI call fails.
    pub fn start() -> Result<Self, Error> {
        static STARTED: AtomicBool = AtomicBool::new(false);
        if !shim::IS_BUILT {
            return Err(Error::NotBuilt);
        }
        if STARTED.swap(true, Ordering::SeqCst) {
            return Err(Error::AlreadyStarted);
        }
        let [mut is_finalized, mut is_serialized, mut rank, mut size] = [0; 4];
        // SAFETY: both pointers are valid. STARTED ensures that one thread gets here, once.
        let code = unsafe { shim::swath_mpi_init(&mut is_finalized, &mut is_serialized) };
        check("MPI_Init_thread", code)?;
        if is_finalized != 0 {
            return Err(Error::AlreadyStarted);
        }
        // SAFETY: both pointers are valid. MPI is initialised and not finalised, as checked above.
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

    /// Index of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Name and version of the MPI library, such as "Open MPI v4.1.4".
    pub fn library(&self) -> &str {
        &self.library
    }

    /// Starts to send the bytes of `message`, and keeps it until they have been sent. Messages from one rank to another
    /// arrive in the order of their sending.
    ///
    /// # Errors
    /// [`Error::Call`] if there is no rank `to`, or MPI fails.
    pub fn send(&mut self, to: usize, message: M) -> Result<(), Error> {
        self.begin(Direction::Send, to, message)
    }

    /// Starts to receive a message from rank `from` into the bytes of `message`. The two must have the same length;
    /// otherwise [`test`](Mpi::test) fails. (If a rank sends itself a longer message, Open MPI 4.1 truncates it without
    /// an error.)
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
        // SAFETY: the pointer comes from a box that only `test` frees, when MPI is done with the bytes. Nothing else
        // accesses the message until then.
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
            // SAFETY: `start + part_len` is at most `len`, so the bytes lie within the message, which is not freed
            // before MPI is done. MPI writes them only for Receive, where they come from `as_mut`. MPI runs, because
            // `finish` consumes `self`. `peer` is a rank, as checked above. `&mut self` makes the calls one at a time.
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

    /// Returns true if all sends and receives are complete. Does not wait. MPI makes progress only in this call.
    ///
    /// # Errors
    /// [`Error::Call`] if MPI fails, or a message does not have the expected length.
    pub fn test(&mut self) -> Result<bool, Error> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.pending.is_empty() {
            return Ok(true);
        }
        let mut is_done = 0;
        // SAFETY: the pointer is valid. MPI runs, because `finish` consumes `self`, and `&mut self` makes the calls one
        // at a time. The memory of all requests is valid, because `pending` holds the messages.
        let code = unsafe { shim::swath_mpi_test(&mut is_done) };
        self.keep_failure(check("MPI_Testall", code))?;
        if is_done == 0 {
            return Ok(false);
        }
        let lengths = self.pending.iter().try_for_each(check_length);
        self.keep_failure(lengths)?;
        self.requests = 0;
        for pending in self.pending.drain(..) {
            // SAFETY: the pointer comes from `Box::into_raw` and leaves `pending` here, so it is freed once. MPI is
            // done with the memory, because MPI_Testall has completed all requests.
            let message = unsafe { Box::from_raw(pending.message) };
            if pending.direction == Direction::Receive {
                self.received.push(*message);
            }
        }
        Ok(true)
    }

    /// Takes the messages that [`test`](Mpi::test) has completed since the last call, in the order of
    /// [`receive`](Mpi::receive).
    pub fn take(&mut self) -> Vec<M> {
        std::mem::take(&mut self.received)
    }

    /// Returns the sender of the first incomplete receive, or else the receiver of the first incomplete send.
    pub fn waiting_for(&self) -> Option<usize> {
        let is_done = |request: usize| {
            let mut is_done = 0;
            // SAFETY: the pointer is valid. The shim checks the request's index, which may not exist after a failed
            // `begin`. MPI runs, because `finish` consumes `self`. `Mpi` is not `Sync`, so the calls are one at a time.
            let code = unsafe { shim::swath_mpi_is_done(request as c_int, &mut is_done) };
            code == 0 && is_done != 0
        };
        let first = |direction| {
            let mut pending = self.pending.iter().filter(|pending| pending.direction == direction);
            pending.find(|pending| !pending.parts.clone().all(is_done)).map(|pending| pending.peer)
        };
        first(Direction::Receive).or_else(|| first(Direction::Send))
    }

    /// Finalises MPI, unless the process had initialised it before [`start`](Mpi::start). Waits for the other ranks.
    /// MPI requires that the thread that called `start` calls this.
    ///
    /// # Errors
    /// [`Error::Call`] if a call has failed before, messages are in flight, or MPI fails.
    pub fn finish(self) -> Result<(), Error> {
        let function = "MPI_Finalize";
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if !self.pending.is_empty() {
            let reason = format!("{} messages are in flight", self.pending.len());
            return Err(Error::Call { function, reason });
        }
        // SAFETY: MPI runs and has no requests, as checked above. No call follows, because `self` is consumed and
        // `start` returns no other.
        check(function, unsafe { shim::swath_mpi_finish() })
    }

    /// Ends the job on all ranks with `MPI_Abort`. The launcher reports `code`.
    pub fn abort(&mut self, code: i32) -> ! {
        // SAFETY: MPI runs, because `finish` consumes `self`. `&mut self` makes the calls one at a time.
        unsafe { shim::swath_mpi_abort(code) };
        std::process::abort()
    }

    /// Sets the maximum size of a part. All ranks must use the same.
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
/// [`Error::Call`] if the message does not have the expected length.
fn check_length<M>(pending: &Pending<M>) -> Result<(), Error> {
    if pending.direction == Direction::Send {
        return Ok(());
    }
    let mut len = 0;
    for part in pending.parts.clone() {
        let mut bytes = 0;
        // SAFETY: the pointer is valid, and the shim checks the request's index. The only caller, `test`, has completed
        // all requests, and holds the `Mpi` mutably, so the calls are one at a time.
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

/// Returns the number of processes that a launcher started, if that differs from the number of ranks. Open MPI, MPICH
/// and its derivatives, and Slurm's srun set it in environment variables.
fn launched(size: usize) -> Option<usize> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    let numbers = || {
        ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"].into_iter().filter_map(number)
    };
    // One launcher may have been started by another.
    if numbers().any(|number: usize| number == size) { None } else { numbers().next() }
}

/// # Errors
/// [`Error::Call`] with MPI's text, unless `code` is 0.
fn check(function: &'static str, code: c_int) -> Result<(), Error> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: the shim writes at most `length` bytes, with a final 0. MPI_Error_string may be called at any time.
    let reason = text(|bytes, length| unsafe { shim::swath_mpi_error(code, bytes, length) });
    Err(Error::Call { function, reason })
}

/// Returns name and version of the MPI library: the part of its first line before a comma.
fn library() -> String {
    // SAFETY: the shim writes at most `length` bytes, with a final 0. Any thread may call MPI_Get_library_version at
    // any time.
    let whole = text(|bytes, length| unsafe { shim::swath_mpi_library(bytes, length) });
    let line = whole.lines().next().unwrap_or_default();
    let name = line.split(',').next().unwrap_or_default();
    let words = name.split_whitespace().filter(|word| *word != "Version:");
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the text that `write` writes into a buffer of the given length.
fn text(write: impl FnOnce(*mut c_char, c_int) -> c_int) -> String {
    let mut bytes = [0u8; 512];
    if write(bytes.as_mut_ptr().cast(), bytes.len() as c_int) != 0 {
        return "unknown".to_owned();
    }
    let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..len]).trim().to_owned()
}

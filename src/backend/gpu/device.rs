//! [`Context`]: compiled kernels, recycled memory, encoded dispatches, and the faults that these may have found.

mod findings;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::runtime::{self, GpuInfo};
use crate::shape::Shape;

use super::driver::{Capabilities, Driver, Failure};
use super::kernel::Kernel;
use super::plan::Plan;
use findings::{Epoch, FAULTS, Findings};

/// Encoded dispatches that are submitted without waiting for a read. A chain of 1000 ops stays one submission.
const SUBMIT_AFTER: usize = 1024;

/// Maximum number of bytes of unused buffers that are kept for reuse.
const POOL_BYTES: usize = 256 << 20;

/// A device, its kernels and its memory.
#[derive(Debug)]
pub struct Context<D: Driver> {
    capabilities: Capabilities,
    state: Mutex<State<D>>,
    /// Unused buffers. They have their own lock, because tensors may be dropped while `state` is locked.
    unused: Mutex<Unused<D>>,
    /// Bytes of buffers dropped since the last submission. The device cannot free them before it has run the dispatches
    /// that use them.
    released: AtomicUsize,
}

#[derive(Debug)]
struct State<D: Driver> {
    driver: D,
    pipelines: Pipelines<D>,
    /// Number of dispatches that are encoded and not submitted.
    encoded: usize,
    faults: Option<D::Buffer>,
    /// Dispatches with a slot in `faults`, in the order of the slots.
    pending: Vec<Pending<D>>,
    epoch: Arc<Epoch>,
}

struct Pipelines<D: Driver>(HashMap<Kernel, Arc<D::Pipeline>>);

impl<D: Driver> fmt::Debug for Pipelines<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pipelines", self.0.len())
    }
}

#[derive(Debug)]
struct Unused<D: Driver> {
    by_size: HashMap<usize, Vec<D::Buffer>>,
    statistics: Statistics,
}

/// Memory of a device, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes of tensors.
    pub used: usize,
    /// Bytes of unused buffers that are kept.
    pub kept: usize,
    /// The largest value of `used` so far.
    pub peak: usize,
}

/// A dispatch that may have found a fault.
#[derive(Debug)]
struct Pending<D: Driver> {
    op: &'static str,
    /// The fault it may have found.
    fault: Fault<D>,
}

/// The meaning of a position that a kernel reports.
#[derive(Debug)]
pub enum Fault<D: Driver> {
    /// An index of this tensor is outside the axis of the shape.
    Index {
        /// Storage and layout of the indices.
        index: (Arc<Storage<D>>, Layout),
        /// The axis.
        axis: usize,
        /// Shape of the indexed tensor.
        shape: Shape,
    },
    /// An integer division has no quotient.
    Division(Shape),
}

/// A buffer that returns to its device when it is dropped.
#[derive(Debug)]
pub struct Storage<D: Driver> {
    buffer: Option<D::Buffer>,
    bytes: usize,
    findings: Mutex<Findings>,
}

impl<D: Driver> Storage<D> {
    /// The buffer.
    pub fn buffer(&self) -> &D::Buffer {
        self.buffer.as_ref().expect("only `drop` takes the buffer")
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<D: Driver> Drop for Storage<D> {
    fn drop(&mut self) {
        if let (Some(buffer), Ok(device)) = (self.buffer.take(), D::device()) {
            device.give(self.bytes, buffer);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Rounds up to the size of a buffer: a multiple of an eighth of the next power of two, and of 256.
fn size_class(bytes: usize) -> usize {
    let bytes = bytes.max(4);
    let step = (bytes.next_power_of_two() / 8).max(256);
    bytes.div_ceil(step) * step
}

fn failed<D: Driver>(op: &'static str, bytes: usize) -> impl Fn(Failure) -> Error {
    move |failure| match failure {
        Failure::OutOfMemory => Error::OutOfMemory { op, bytes, shape: None },
        Failure::Device(reason) => Error::Device { op, backend: D::NAME, reason },
    }
}

impl<D: Driver> Context<D> {
    /// Returns the context of a device.
    pub fn new(driver: D, capabilities: Capabilities) -> Self {
        let state = State {
            driver,
            pipelines: Pipelines(HashMap::new()),
            encoded: 0,
            faults: None,
            pending: Vec::new(),
            epoch: Arc::default(),
        };
        runtime::add_gpu(Self::info);
        let unused = Unused { by_size: HashMap::new(), statistics: Statistics::default() };
        let (state, unused) = (Mutex::new(state), Mutex::new(unused));
        Context { capabilities, state, unused, released: AtomicUsize::new(0) }
    }

    /// The device of this process, and its memory.
    fn info() -> GpuInfo {
        let (name, memory) = match D::device() {
            Ok(device) => (device.capabilities.name.clone(), device.statistics()),
            Err(error) => (error.to_string(), Statistics::default()),
        };
        let Statistics { used, kept, peak } = memory;
        GpuInfo { backend: D::NAME, name, used, peak, kept }
    }

    /// The device's capabilities.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Fails with [`Error::Unsupported`] if a thread cannot run that many rounds of loops. The op is then composed.
    pub fn check_rounds(&self, op: &'static str, rounds: usize) -> Result<()> {
        match rounds <= self.capabilities.rounds {
            true => Ok(()),
            false => Err(Error::Unsupported { op, backend: D::NAME }),
        }
    }

    /// Returns the memory in use.
    pub fn statistics(&self) -> Statistics {
        lock(&self.unused).statistics
    }

    /// Fails if a tensor has more bytes than a kernel can read.
    fn check_bytes(&self, op: &'static str, bytes: usize) -> Result<()> {
        let most = self.capabilities.max_buffer;
        if bytes <= most {
            return Ok(());
        }
        let reason = format!(
            "a tensor of {bytes} bytes is larger than the {most} that kernels of this device can read"
        );
        Err(Error::Device { op, backend: D::NAME, reason })
    }

    /// Returns a buffer of at least this size, from the unused ones if possible.
    pub fn allocate(
        &self,
        op: &'static str,
        shape: &Shape,
        bytes: usize,
    ) -> Result<Arc<Storage<D>>> {
        self.check_bytes(op, bytes)?;
        shape.validate(op)?;
        let size = size_class(bytes).min(self.capabilities.max_buffer);
        let unused = {
            let mut pool = lock(&self.unused);
            let found = pool.by_size.get_mut(&size).and_then(Vec::pop);
            if found.is_some() {
                pool.statistics.kept -= size;
            }
            found
        };
        let buffer = match unused {
            Some(buffer) => buffer,
            None => self
                .make(op, size, |driver| driver.allocate(size))
                .map_err(|error| error.of_shape(shape))?,
        };
        Ok(self.storage(buffer, size))
    }

    /// Returns a new buffer that begins with these bytes.
    pub fn upload(&self, op: &'static str, bytes: &[u8]) -> Result<Arc<Storage<D>>> {
        self.check_bytes(op, bytes.len())?;
        let size = size_class(bytes.len()).min(self.capabilities.max_buffer);
        let buffer = self.make(op, size, |driver| driver.upload(bytes, size))?;
        Ok(self.storage(buffer, size))
    }

    /// Makes a buffer of `size` bytes. If the device has no memory left, drops the unused buffers and tries again.
    fn make(
        &self,
        op: &'static str,
        size: usize,
        make: impl Fn(&mut D) -> Result<D::Buffer, Failure>,
    ) -> Result<D::Buffer> {
        self.make_room(size);
        let first = make(&mut lock(&self.state).driver);
        match first {
            Err(Failure::OutOfMemory) => {
                self.drop_unused();
                make(&mut lock(&self.state).driver)
            }
            first => first,
        }
        .map_err(failed::<D>(op, size))
    }

    fn storage(&self, buffer: D::Buffer, bytes: usize) -> Arc<Storage<D>> {
        let statistics = &mut lock(&self.unused).statistics;
        statistics.used += bytes;
        statistics.peak = statistics.peak.max(statistics.used);
        Arc::new(Storage { buffer: Some(buffer), bytes, findings: Mutex::default() })
    }

    /// Keeps an unused buffer for reuse.
    fn give(&self, bytes: usize, buffer: D::Buffer) {
        let mut pool = lock(&self.unused);
        pool.statistics.used -= bytes;
        let most =
            POOL_BYTES.min(self.capabilities.working_set.saturating_sub(pool.statistics.used));
        // Evict other buffers, the largest first: this one was used last, so its size is likely to be needed again.
        while bytes <= most && pool.statistics.kept + bytes > most {
            let Some(&size) = pool.by_size.iter().filter(|x| !x.1.is_empty()).map(|x| x.0).max()
            else {
                break;
            };
            pool.by_size.get_mut(&size).and_then(Vec::pop);
            pool.statistics.kept -= size;
            self.released.fetch_add(size, Relaxed);
        }
        if pool.statistics.kept + bytes <= most {
            pool.statistics.kept += bytes;
            pool.by_size.entry(bytes).or_default().push(buffer);
        } else {
            self.released.fetch_add(bytes, Relaxed);
        }
    }

    /// Drops the unused buffers if they and a new one would exceed the device's working set.
    fn make_room(&self, bytes: usize) {
        let Statistics { used, kept, .. } = self.statistics();
        if kept > 0 && used + kept + bytes > self.capabilities.working_set {
            self.drop_unused();
        }
    }

    fn drop_unused(&self) {
        let mut pool = lock(&self.unused);
        pool.by_size.clear();
        pool.statistics.kept = 0;
    }

    /// Encodes a dispatch that reads `operands` and writes `results`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the device lacks the kernel's types; [`Error::Device`].
    pub fn run(
        &self,
        op: &'static str,
        plan: Plan<Kernel>,
        operands: &[&Storage<D>],
        results: &[&Storage<D>],
        fault: Option<Fault<D>>,
    ) -> Result<()> {
        let Plan { kernel, mut words, grid } = plan;
        let mut state = lock(&self.state);
        let state = &mut *state;
        let pipeline = self.pipeline(state, op, kernel)?;
        if fault.is_some() && state.pending.len() == FAULTS {
            read_faults(state, None)?;
        }
        let mut findings = Findings::default();
        for storage in operands.iter().chain(results) {
            findings.add(&lock(&storage.findings));
        }
        if let Some(fault) = fault {
            if state.faults.is_none() {
                let clean = [0xff; 4 * FAULTS];
                let faults =
                    state.driver.upload(&clean, 4 * FAULTS).map_err(failed::<D>(op, 4 * FAULTS))?;
                state.faults = Some(faults);
            }
            let slot = state.pending.len();
            *words.last_mut().expect("a plan has all words") = slot as u32;
            findings.add_slot(&state.epoch, slot);
            state.pending.push(Pending { op, fault });
        }
        for storage in results {
            lock(&storage.findings).clone_from(&findings);
        }
        let faults = state.faults.as_ref();
        let mut bound: SmallVec<[&D::Buffer; 8]> =
            operands.iter().chain(results).map(|storage| storage.buffer()).collect();
        bound.extend(faults.filter(|_| kernel.has_faults()));
        state.driver.dispatch(&pipeline, &bound, &words, grid).map_err(failed::<D>(op, 0))?;
        state.encoded += 1;
        if state.encoded >= SUBMIT_AFTER || self.released.load(Relaxed) > POOL_BYTES {
            state.encoded = 0;
            self.released.store(0, Relaxed);
            state.driver.submit().map_err(failed::<D>(op, 0))?;
        }
        Ok(())
    }

    /// Returns the pipeline of a kernel. Its first call compiles it.
    fn pipeline(
        &self,
        state: &mut State<D>,
        op: &'static str,
        kernel: Kernel,
    ) -> Result<Arc<D::Pipeline>> {
        if let Some(pipeline) = state.pipelines.0.get(&kernel) {
            return Ok(Arc::clone(pipeline));
        }
        let module = kernel.module();
        let Capabilities { f16, i64, .. } = self.capabilities;
        if module.needs_f16() && !f16 || module.needs_i64() && !i64 {
            return Err(Error::Unsupported { op, backend: D::NAME });
        }
        let pipeline = Arc::new(state.driver.pipeline(&module).map_err(failed::<D>(op, 0))?);
        state.pipelines.0.insert(kernel, Arc::clone(&pipeline));
        Ok(pipeline)
    }

    /// Runs all encoded dispatches, and copies the start of a buffer to the host.
    ///
    /// # Errors
    /// The first fault found by a dispatch that these values depend on; [`Error::Device`].
    pub fn download(&self, op: &'static str, storage: &Storage<D>, to: &mut [u8]) -> Result<()> {
        let mut state = lock(&self.state);
        let mut findings = lock(&storage.findings).resolved();
        let is_open = findings.is_open();
        if is_open {
            read_faults(&mut state, Some((storage.buffer(), &mut *to)))?;
            findings = findings.resolved();
        }
        if let Some(error) = findings.error() {
            return Err(error);
        }
        match is_open {
            true => Ok(()),
            false => read(&mut state, op, &mut [(storage.buffer(), to)]),
        }
    }

    /// Runs all encoded dispatches and waits for them.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn synchronize(&self) -> Result<()> {
        // Reading the faults also releases the operands that `pending` keeps.
        let mut state = lock(&self.state);
        match state.pending.is_empty() {
            true => read(&mut state, "synchronize", &mut []),
            false => read_faults(&mut state, None),
        }
    }
}

/// A buffer, and the memory that its start is copied to.
type Read<'a, D> = (&'a <D as Driver>::Buffer, &'a mut [u8]);

/// Runs all encoded dispatches, waits for them, and copies from buffers.
fn read<D: Driver>(
    state: &mut State<D>,
    op: &'static str,
    parts: &mut [Read<'_, D>],
) -> Result<()> {
    let bytes = parts.iter().map(|(_, to)| to.len()).sum();
    state.encoded = 0;
    state.driver.download(parts).map_err(failed::<D>(op, bytes))
}

/// Reads the faults of the pending dispatches from the device, and `also` another buffer in the same transfer.
fn read_faults<D: Driver>(state: &mut State<D>, also: Option<Read<'_, D>>) -> Result<()> {
    let mut found = [0u8; 4 * FAULTS];
    let faults = state.faults.take();
    let reads = faults.as_ref().map(|faults| (faults, &mut found[..]));
    let mut reads: SmallVec<[Read<'_, D>; 2]> = reads.into_iter().chain(also).collect();
    let done = read(state, "synchronize", &mut reads);
    drop(reads);
    state.faults = faults;
    done?;
    let pending = std::mem::take(&mut state.pending);
    let positions: Vec<u32> = bytemuck::pod_collect_to_vec(&found);
    if positions.iter().any(|&position| position != u32::MAX) || pending.len() == FAULTS {
        state.faults = None;
    }
    let mut errors = Vec::new();
    for (slot, (Pending { op, fault }, position)) in pending.into_iter().zip(positions).enumerate()
    {
        if position != u32::MAX {
            errors.push((slot, error_of(state, op, fault, position as usize)));
        }
    }
    let next = Arc::new(state.epoch.next());
    std::mem::replace(&mut state.epoch, next).set_errors(errors);
    Ok(())
}

/// Returns the error of a fault at a position, or the failure to read the index that it names.
fn error_of<D: Driver>(
    state: &mut State<D>,
    op: &'static str,
    fault: Fault<D>,
    position: usize,
) -> Error {
    match fault {
        Fault::Division(shape) => Error::IntegerDivision { op, shape },
        Fault::Index { index: (storage, layout), axis, shape } => {
            let at = layout.position_of(position) * 8;
            let mut bytes = vec![0; at + 8];
            if let Err(failure) = state.driver.download(&mut [(storage.buffer(), &mut bytes)]) {
                return failed::<D>(op, at)(failure);
            }
            let index = i64::from_le_bytes(bytes[at..].try_into().expect("eight bytes"));
            Error::IndexOutOfRange { op, index, axis, shape }
        }
    }
}

//! The run-time configuration: instruction set, threads, matrix products, memory.
//!
//! Environment variables, read once: `SWATH_ISA` (`scalar`, `avx2`, `avx512`, `neon`), `SWATH_THREADS`,
//! `SWATH_SPIN_US` (how long idle threads spin before they sleep; 0 for not at all), `SWATH_POOL_BYTES`
//! (bytes kept for reuse; 0 for none), `SWATH_POOL_POISON` (1: memory is filled with NaN, integers with bytes of
//! 0xA5, whenever it is handed out, so that an element that an operation failed to write shows in its result; 0: it
//! is not. Debug builds fill it unless this is 0).

pub(crate) mod memory;
pub(crate) mod on_drop;
pub(crate) mod parallel;
pub(crate) mod recording;
pub(crate) mod shared;
pub(crate) mod workspace;

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, OnceLock, PoisonError};

pub use swath_kernels::Isa;

pub use memory::PoolStats;

use crate::blas::{self, BlasInfo};
use crate::error::{Error, Result};

/// Configuration of the CPU backend, and the GPUs in use. `Display` prints it in a few lines.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RuntimeInfo {
    /// Instruction set of the kernels.
    pub isa: Isa,
    /// Maximum number of threads of an operation.
    pub threads: usize,
    /// Provider of matrix products.
    pub blas: BlasInfo,
    /// Statistics of the memory pool.
    pub pool: PoolStats,
    /// Number of changes in place on the CPU (`+=`, [`set_slice`](crate::Tensor::set_slice), a step
    /// of an optimizer) that copied a tensor first, since a clone or a view of it was alive. A loop
    /// that copies in every step keeps one.
    pub copies: u64,
    /// The invalid setting, because of which every operation on tensors is an error; the other
    /// fields then say what would run without it.
    pub error: Option<Error>,
    /// The GPUs that this process has used.
    pub gpus: Vec<GpuInfo>,
}

/// A GPU and its memory, in bytes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GpuInfo {
    /// Name of the backend.
    pub backend: &'static str,
    /// Name of the device.
    pub name: String,
    /// Memory of tensors.
    pub used: usize,
    /// The most that tensors had.
    pub peak: usize,
    /// Memory that is kept for the next tensors.
    pub kept: usize,
}

impl fmt::Display for GpuInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GpuInfo { backend, name, used, peak, kept } = self;
        let [used, peak, kept] = [used, peak, kept].map(|bytes| *bytes as f64 / (1 << 20) as f64);
        write!(f, "{name} by {backend}, {used:.1} MiB used, {peak:.1} at most, {kept:.1} kept")
    }
}

/// What tells the state of each GPU that was opened.
static GPUS: Mutex<Vec<fn() -> GpuInfo>> = Mutex::new(Vec::new());

/// Adds a GPU to [`info`].
#[allow(dead_code, reason = "for the backend of GPUs, if it was built")]
pub(crate) fn add_gpu(state: fn() -> GpuInfo) {
    GPUS.lock().unwrap_or_else(PoisonError::into_inner).push(state);
}

impl fmt::Display for RuntimeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = &self.error {
            writeln!(f, "error    {error}")?;
        }
        writeln!(f, "kernels  {}", self.isa)?;
        writeln!(f, "threads  {}", self.threads)?;
        writeln!(f, "matmul   {}", self.blas)?;
        write!(f, "memory   {}, {} copies of shared storage", self.pool, self.copies)?;
        self.gpus.iter().try_for_each(|gpu| write!(f, "\ngpu      {gpu}"))
    }
}

/// Returns the current configuration. An invalid environment variable is its [`error`](RuntimeInfo::error), which
/// [`check`] returns too.
///
/// ```
/// println!("{}", swath::runtime::info());
/// ```
pub fn info() -> RuntimeInfo {
    let gpus = GPUS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    RuntimeInfo {
        isa: isa_or_scalar(),
        threads: parallel::threads(),
        blas: blas::info(),
        pool: memory::stats(),
        copies: memory::copies(),
        error: check().err(),
        gpus: gpus.iter().map(|state| state()).collect(),
    }
}

/// Instruction set of the kernels: the best one of the machine, or the one selected by `SWATH_ISA`.
///
/// # Panics
/// Panics if `SWATH_ISA` is invalid; operations on tensors then return [`Error::Runtime`].
pub fn isa() -> Isa {
    swath_kernels::isa()
}

/// Like [`isa`], but the scalar kernels if `SWATH_ISA` is invalid.
pub(crate) fn isa_or_scalar() -> Isa {
    if swath_kernels::try_isa().is_ok() { isa() } else { Isa::Scalar }
}

/// Sets the number of threads of operations. Operations called from inside a rayon pool use that pool
/// instead. Results do not depend on the number of threads.
///
/// ```
/// swath::runtime::set_threads(2)?;
/// assert_eq!(swath::runtime::info().threads, 2);
/// # Ok::<(), swath::Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidArgument`] for 0 or more than 1024 threads.
pub fn set_threads(threads: usize) -> Result<()> {
    parallel::set_threads(threads)
}

/// Checks the environment variables. The CPU backend does so before it allocates its first result, so that an
/// invalid setting is an error and not a panic in a kernel. Programs may call this when they start.
///
/// # Errors
/// [`Error::Runtime`] with the name of the invalid variable.
pub fn check() -> Result<()> {
    static CHECKED: OnceLock<Result<()>> = OnceLock::new();
    let check = || {
        swath_kernels::try_isa().map_err(|error| Error::Runtime(error.to_string()))?;
        parallel::default_threads().clone()?;
        parallel::spin_us().clone()?;
        memory::limit().clone()?;
        memory::set_poison()?;
        Ok(())
    };
    CHECKED.get_or_init(check).clone()
}

/// Value of an environment variable, or `default` if it is not set or empty.
///
/// # Errors
/// [`Error::Runtime`] if the value cannot be parsed or is not valid; `expected` describes valid values.
fn setting<T: FromStr>(
    name: &str,
    default: impl FnOnce() -> T,
    is_valid: impl Fn(&T) -> bool,
    expected: &str,
) -> Result<T> {
    let Some(text) = std::env::var(name).ok().filter(|text| !text.is_empty()) else {
        return Ok(default());
    };
    let value = text.parse().ok().filter(is_valid);
    value.ok_or_else(|| Error::Runtime(format!("{name}={text}: not a number of {expected}")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn info_prints_every_part() {
        let text = super::info().to_string();
        for part in ["kernels", "threads", "matmul", "memory"] {
            assert!(text.contains(part), "{text}");
        }
    }
}

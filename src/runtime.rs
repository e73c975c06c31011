//! What runs: instruction set, threads, matrix product, memory; and the one knob for threads.
//!
//! Environment variables, read once: `SWATH_ISA` (`scalar`, `avx2`, `avx512`, `neon`),
//! `SWATH_THREADS`, `SWATH_SPIN_US` (how long threads wait awake for more work; 0: not at all),
//! `SWATH_POOL_BYTES` (bytes kept for reuse, 0 for none).

pub(crate) mod memory;
pub(crate) mod parallel;
pub(crate) mod recording;
pub(crate) mod shared;
pub(crate) mod workspace;

use std::fmt;
use std::sync::OnceLock;

pub use swath_kernels::Isa;

pub use memory::PoolStats;

use crate::blas::{self, BlasInfo};
use crate::error::{Error, Result};

/// What the CPU backend runs on. `Display` prints it as a few lines.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RuntimeInfo {
    /// Instruction set of the kernels.
    pub isa: Isa,
    /// Threads that an operation may use.
    pub threads: usize,
    /// Who computes matrix products.
    pub blas: BlasInfo,
    /// What the memory pool has done and holds.
    pub pool: PoolStats,
}

impl fmt::Display for RuntimeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernels  {}", self.isa)?;
        writeln!(f, "threads  {}", self.threads)?;
        writeln!(f, "matmul   {}", self.blas)?;
        write!(f, "memory   {}", self.pool)
    }
}

/// What runs now.
///
/// ```
/// println!("{}", swath::runtime::info());
/// ```
///
/// # Panics
/// As [`isa`].
pub fn info() -> RuntimeInfo {
    RuntimeInfo {
        isa: isa(),
        threads: parallel::threads(),
        blas: blas::info(),
        pool: memory::stats(),
    }
}

/// The instruction set that kernels run on: the best of the machine, or what `SWATH_ISA` says.
///
/// # Panics
/// If `SWATH_ISA` cannot be followed. Operations on tensors return [`Error::Runtime`] then.
pub fn isa() -> Isa {
    swath_kernels::isa()
}

/// Lets operations use `threads` threads from now on. Called from inside a rayon pool, operations
/// use that pool instead. Results don't depend on the number of threads.
///
/// ```
/// swath::runtime::set_threads(2)?;
/// assert_eq!(swath::runtime::info().threads, 2);
/// # Ok::<(), swath::Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidArgument`] for no threads, or more than 1024.
pub fn set_threads(threads: usize) -> Result<()> {
    parallel::set_threads(threads)
}

/// Whether every environment variable can be followed. The CPU backend asks before it takes the
/// first memory for a result, so that a wrong setting is an error and not a panic in a kernel;
/// programs may ask when they start.
///
/// # Errors
/// [`Error::Runtime`] names the variable.
pub fn check() -> Result<()> {
    static CHECKED: OnceLock<Result<()>> = OnceLock::new();
    let check = || {
        swath_kernels::try_isa().map_err(|error| Error::Runtime(error.to_string()))?;
        parallel::default_threads().clone()?;
        parallel::spin_us().clone()?;
        memory::limit().clone()?;
        Ok(())
    };
    CHECKED.get_or_init(check).clone()
}

#[cfg(test)]
mod tests {
    #[test]
    fn info_names_every_part() {
        let text = super::info().to_string();
        for part in ["kernels", "threads", "matmul", "memory"] {
            assert!(text.contains(part), "{text}");
        }
    }
}

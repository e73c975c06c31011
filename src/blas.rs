//! Which matrix product runs: the embedded one, or a system BLAS chosen by a cargo feature.
//!
//! With the feature `openblas` the CPU backend's `f32` and `f64` products go to the system's
//! OpenBLAS. It is called single-threaded on a grid of tiles that the shapes alone decide, and the
//! tiles are shared by swath's own threads: no oversubscription, and the same bits for any number
//! of threads. Operands whose layout BLAS cannot express stay with the embedded product.

use std::fmt;

/// Who computes matrix products.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlasInfo {
    /// `"embedded"` or `"openblas"`.
    pub provider: &'static str,
    /// What the provider says of its version and configuration.
    pub config: String,
    /// The processor type whose kernels the provider has chosen.
    pub core: String,
    /// Threads of the provider's own: always 1, swath's threads call it.
    pub threads: usize,
}

impl fmt::Display for BlasInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, core {})", self.provider, self.config, self.core)
    }
}

/// Who computes matrix products in this build.
///
/// ```
/// println!("{}", swath::blas::info());
/// ```
///
/// # Panics
/// As [`runtime::isa`](crate::runtime::isa), with the embedded product.
pub fn info() -> BlasInfo {
    crate::backend::cpu::blas::info()
}

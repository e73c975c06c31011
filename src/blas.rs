//! Which matrix product runs: the embedded one, or a system BLAS chosen by a cargo feature.
//!
//! | feature | library | found |
//! |---|---|---|
//! | `accelerate` | Apple's | the framework of macOS |
//! | `mkl` | Intel oneMKL (`mkl_rt`) | as below |
//! | `openblas` | the system's OpenBLAS | by the crate `openblas-src` |
//! | `openblas-static` | OpenBLAS, built from source | by the crate `openblas-src` |
//! | `blis` | BLIS | as below |
//! | `netlib` | the reference BLAS, or whatever stands in its place | as below |
//! | `blas-dynamic` | any of them, opened at run time | `SWATH_BLAS=PATH`, else well-known names |
//!
//! "As below" is at build time: the folder `SWATH_BLAS_LIB_DIR` and nothing else if that is set, else
//! `pkg-config`, then where the linker looks. Cargo unifies features, so two at once are no error: the first one on in the order of
//! the table is the provider. `accelerate` counts on Apple's systems alone.
//!
//! Every library is called on the calling thread alone, where it can be kept to that, on a grid of tiles
//! that the shapes and the cores that the process may use decide, and the tiles are shared by swath's own
//! threads: no oversubscription, and the same bits for any number of threads. It must compute small products
//! correctly before it gets a real one; where it cannot, a line on the standard error stream says so and the
//! embedded product runs.
//! Operands whose layout BLAS cannot express, and products that are faster without it, stay with the
//! embedded product.
//!
//! The guide `docs/BLAS.md` of the repository says how to choose, and what each message means.

pub mod trace;

use std::fmt;

/// Who computes matrix products.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlasInfo {
    /// `"embedded"`, or the feature that chose the library.
    pub provider: &'static str,
    /// Who the library turned out to be: `"mkl"`, `"openblas"`, `"blis"`, `"accelerate"`, `"unknown"`
    /// where it does not say (the reference BLAS), or `"swath"`.
    pub library: &'static str,
    /// The file of the library, links resolved; elsewhere than on Linux the name that was opened.
    pub path: Option<String>,
    /// What the library says of its version and configuration; empty if it says nothing.
    pub version: String,
    /// The processor type whose kernels it has chosen; empty if it does not say.
    pub core: String,
    /// Number of threads that a call uses, as the library tells while swath keeps it to one: 1 unless it does not
    /// obey. It is assumed to be 1 for a library that swath cannot control, of which `warning` tells.
    pub threads: usize,
    /// What should be changed: a library that was not used and why, kernels that are too old for the processor, or
    /// a library that may use threads of its own.
    pub warning: Option<String>,
}

impl BlasInfo {
    pub(crate) fn embedded(warning: Option<String>) -> BlasInfo {
        BlasInfo {
            provider: "embedded",
            library: "swath",
            path: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            core: swath_kernels::isa().to_string(),
            threads: 1,
            warning,
        }
    }
}

impl fmt::Display for BlasInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.provider, self.library)?;
        let core = if self.core.is_empty() { "" } else { "core " };
        let path = self.path.as_deref().unwrap_or_default();
        for (name, value) in [("", path), ("", self.version.as_str()), (core, self.core.as_str())] {
            if !value.is_empty() {
                write!(f, ", {name}{value}")?;
            }
        }
        write!(f, ")")?;
        match &self.warning {
            Some(warning) => write!(f, "; {warning}"),
            None => Ok(()),
        }
    }
}

/// Who computes matrix products in this process. The first call, or the first product, opens and
/// tests the library.
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

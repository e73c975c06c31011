//! The provider of matrix products: the embedded product, or a BLAS library chosen by a cargo feature.
//!
//! | feature | library | found |
//! |---|---|---|
//! | `accelerate` | Apple's | the framework of macOS |
//! | `mkl` | Intel oneMKL (`mkl_rt`) | as below |
//! | `openblas` | the system's OpenBLAS | as below |
//! | `openblas-static` | OpenBLAS, built from source | by the crate `openblas-src` |
//! | `blis` | BLIS | as below |
//! | `netlib` | the reference BLAS, or the library installed in its place | as below |
//! | `blas-dynamic` | any of them, opened at run time | `SWATH_BLAS=PATH`, else well-known names |
//!
//! "As below" means at build time: in the folder `SWATH_BLAS_LIB_DIR` alone if it is set, otherwise by
//! `pkg-config`, then on the linker's path, and on macOS then among Homebrew's packages. Cargo unifies features, so two
//! at once are no error: the first enabled one in the order of the table is the provider. `accelerate` applies to
//! Apple's systems alone.
//!
//! Every library whose threads swath can control runs single-threaded: C is cut into a grid of tiles, and
//! swath's own threads share the calls. This avoids oversubscription. The grid depends only on the shapes
//! and on the number of cores available to the process, so the bits do not depend on the number of threads.
//! Before its first use a library must compute small products correctly. If it does not, swath reports that
//! on the standard error stream and uses the embedded product.
//! Operands whose layout BLAS cannot express, and products that are faster without it, are computed by the
//! embedded product.
//!
//! The guide `docs/BLAS.md` in the repository helps to choose a provider and explains each message.

pub mod trace;

use std::fmt;

use crate::runtime;

/// The provider of matrix products.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlasInfo {
    /// `"embedded"`, or the feature that chose the library.
    pub provider: &'static str,
    /// The detected library: `"mkl"`, `"openblas"`, `"blis"`, `"accelerate"`, `"unknown"` if it does not
    /// identify itself (the reference BLAS), or `"swath"`.
    pub library: &'static str,
    /// The library's file with links resolved; on systems other than Linux the name that was opened.
    pub path: Option<String>,
    /// Version and configuration as reported by the library; empty if it reports none.
    pub version: String,
    /// Processor type whose kernels the library has selected; empty if it does not report one.
    pub core: String,
    /// Number of threads of a call, as reported by the library after swath has requested one. For a library
    /// that swath cannot control it is assumed to be 1, and `warning` says so.
    pub threads: usize,
    /// A recommended change: the reason why a library was not used, or a library that may use threads of its
    /// own.
    pub warning: Option<String>,
}

impl BlasInfo {
    pub(crate) fn embedded(warning: Option<String>) -> BlasInfo {
        BlasInfo {
            provider: "embedded",
            library: "swath",
            path: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            core: runtime::isa_or_scalar().to_string(),
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

/// Returns the provider of matrix products in this process. The first call, or the first product, opens
/// and tests the library. If an environment variable of [`runtime`] is invalid, no library is opened.
///
/// ```
/// println!("{}", swath::blas::info());
/// ```
pub fn info() -> BlasInfo {
    match runtime::check() {
        Ok(()) => crate::backend::cpu::blas::info(),
        Err(error) => BlasInfo::embedded(Some(format!("{error}; every product is an error"))),
    }
}

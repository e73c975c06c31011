//! The system BLAS. The rest of the backend asks [`gemm`], which declines what the library cannot or
//! should not do.
//!
//! | file | what |
//! |---|---|
//! | `provider` | which library: linked, or opened at run time |
//! | `library` | its entry points; how it is kept to one thread |
//! | `self_test` | what it must compute before it is used |
//! | `core_type` | whether it chose kernels for an older processor |
//! | `layout` | matrices as BLAS says them |
//! | `plan` | the grid of calls |
//! | `product` | the calls of a product, shared by threads |
//! | `call` | one call, its arguments checked |
//!
//! 1. A matrix is row-major with a leading dimension, or the transpose of one; everything else is
//!    declined and goes to the embedded product.
//! 2. The library uses the calling thread alone; swath's threads share the calls.
//! 3. C is cut into tiles, one call each, unless a batch has a product for every core. The grid depends
//!    on the shapes and on the cores that the process may use, so the bits do not depend on the threads.
//! 4. Every number is checked to fit the library's integers, extents of zero never reach it, and a
//!    canary in each C tells whether a call wrote it. A library that fails is not called again.

#[cfg(any(blas, test))]
use std::io::Write;

use swath_kernels::{Float, Stored};

use super::matmul::{Finish, Matrix, Places};
use crate::blas::BlasInfo;
use crate::error::Result;

#[cfg(any(blas, test))]
mod call;
#[cfg(any(blas, test))]
mod core_type;
#[cfg(any(blas, test))]
mod layout;
#[cfg(any(blas, test))]
mod library;
#[cfg(test)]
mod mock;
#[cfg(all(blas, target_os = "linux"))]
mod object;
#[cfg(any(blas, test))]
mod plan;
#[cfg(any(blas, test))]
mod product;
#[cfg(blas)]
mod provider;
#[cfg(any(blas, test))]
mod self_test;
#[cfg(test)]
mod tests;

/// Tells the user something, once: a line on the standard error stream.
#[cfg(any(blas, test))]
fn tell(line: &str) {
    // Where it cannot be written, nobody reads it; that is no reason to end a product.
    let _ = writeln!(std::io::stderr(), "swath: {line}");
}

/// Who computes products, found once for all calls of an operation.
#[derive(Clone, Copy)]
pub(super) struct Blas {
    #[cfg(any(blas, test))]
    library: Option<&'static library::Library>,
    /// Tiles that a product is cut into at most.
    #[cfg(any(blas, test))]
    tiles: usize,
}

impl Blas {
    /// The library of this process, if the build has one and it may be used.
    ///
    /// # Errors
    /// [`Error::Runtime`](crate::error::Error::Runtime) if the user named one that cannot be used.
    pub fn current() -> Result<Blas> {
        #[cfg(any(blas, test))]
        let library = using::library()?;
        Ok(Blas {
            #[cfg(any(blas, test))]
            library,
            #[cfg(any(blas, test))]
            tiles: library.map_or(1, |library| library.tiles),
        })
    }

    /// For products of a batch: none is cut where there is one for every core.
    #[allow(unused_variables, unused_mut, reason = "without a provider no product is cut")]
    pub fn of_batch(mut self, batch: usize) -> Blas {
        #[cfg(any(blas, test))]
        if batch >= self.tiles {
            self.tiles = 1;
        }
        self
    }

    /// Whether there is a library that gets no product in parts.
    pub fn keeps_whole(self) -> bool {
        #[cfg(any(blas, test))]
        return self.library.is_some() && self.tiles == 1;
        #[cfg(not(any(blas, test)))]
        false
    }

    /// Whether there is a library, even if it declines most products.
    pub fn is_present(self) -> bool {
        #[cfg(any(blas, test))]
        return self.library.is_some();
        #[cfg(not(any(blas, test)))]
        false
    }

    /// The library, unless it has failed.
    #[cfg(any(blas, test))]
    fn usable(self) -> Option<&'static library::Library> {
        self.library.filter(|library| library.failure.get().is_none())
    }

    /// C ← A·B, and what follows. False if declined; the places then hold anything.
    #[allow(unused_variables, reason = "without a provider every product is declined")]
    pub fn gemm<E: Float + Stored>(
        self,
        a: &Matrix<'_, E>,
        b: &Matrix<'_, E>,
        finish: Finish<'_, E>,
        places: &mut Places<'_, E>,
    ) -> bool {
        #[cfg(any(blas, test))]
        if let Some(library) = self.usable() {
            let done = product::gemm(library, self.tiles, [a, b], finish, places);
            return using::done(library, done);
        }
        false
    }

    /// Whether products like A·B go to [`gemm_batch`](Blas::gemm_batch).
    #[allow(unused_variables, reason = "without a provider every product is declined")]
    pub fn takes_batch<E: Float>(self, a: &Matrix<'_, E>, b: &Matrix<'_, E>) -> bool {
        #[cfg(any(blas, test))]
        if let Some(library) = self.usable() {
            return product::takes_batch(library, self.tiles, a, b);
        }
        false
    }

    /// C ← A·B for products that [`takes_batch`](Blas::takes_batch) takes, on this thread: C is as many
    /// results one after the other, row-major without gaps.
    #[allow(unused_variables, reason = "without a provider every product is declined")]
    pub fn gemm_batch<'a, E: Float>(
        self,
        shape: [usize; 3],
        operands: impl Iterator<Item = (Matrix<'a, E>, Matrix<'a, E>)>,
        c: &mut [E],
    ) -> bool {
        #[cfg(any(blas, test))]
        if let Some(library) = self.usable() {
            return using::done(library, product::gemm_batch(library, shape, operands, c));
        }
        false
    }
}

/// Who computes products in this process.
pub(crate) fn info() -> BlasInfo {
    #[cfg(any(blas, test))]
    if let Some(info) = using::info() {
        return info;
    }
    BlasInfo::embedded(None)
}

#[cfg(any(blas, test))]
mod using {
    use super::call::Failure;
    use super::library::Library;
    use super::*;

    /// The library to call.
    pub(super) fn library() -> Result<Option<&'static Library>> {
        #[cfg(test)]
        if let Some(library) = mock::current() {
            return Ok(Some(library));
        }
        #[cfg(blas)]
        {
            let provider = provider::provider()
                .map_err(|reason| crate::error::Error::Runtime(reason.to_owned()))?;
            Ok(provider.library.as_ref())
        }
        #[cfg(not(blas))]
        Ok(None)
    }

    /// Whether a product was computed. A library that failed is not called again.
    pub(super) fn done(library: &Library, result: Result<bool, Failure>) -> bool {
        if result == Err(Failure::NotWritten) {
            library.failure.get_or_init(|| {
                let failure = format!(
                    "{} returned from a product without writing its result; the embedded product \
                     is used from now on",
                    library.vendor.name()
                );
                tell(&failure);
                failure
            });
        }
        result == Ok(true)
    }

    pub(super) fn info() -> Option<BlasInfo> {
        #[cfg(test)]
        if let Some(library) = mock::current() {
            return Some(library.info());
        }
        #[cfg(blas)]
        return Some(match provider::provider() {
            Err(reason) => BlasInfo::embedded(Some(format!("{reason}; every product is an error"))),
            Ok(provider) => match &provider.library {
                None => BlasInfo::embedded(provider.warning.clone()),
                Some(library) => {
                    let mut info = library.info();
                    info.path = provider.path.clone();
                    info.warning = info.warning.or_else(|| provider.warning.clone());
                    info
                }
            },
        });
        #[cfg(not(blas))]
        None
    }
}

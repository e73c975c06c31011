//! A build without a provider: every product is the embedded one.

use crate::backend::cpu::matmul::{Factor, Part};
use crate::blas::BlasInfo;
use crate::error::Result;

/// No provider of products: it declines them all. The methods are those of a build with one.
#[derive(Clone, Copy)]
pub(in crate::backend::cpu) struct Blas;

impl Blas {
    pub fn current() -> Result<Blas> {
        Ok(Blas)
    }

    pub fn for_batch(self, _batch: usize) -> Blas {
        self
    }

    pub fn is_uncut(self) -> bool {
        false
    }

    pub fn is_present(self) -> bool {
        false
    }

    pub fn gemm<T: Factor>(self, _part: &mut Part<'_, T>) -> bool {
        false
    }
}

/// Returns the provider of products in this process.
pub(crate) fn info() -> BlasInfo {
    BlasInfo::embedded(None)
}

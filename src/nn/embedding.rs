//! [`Embedding`].

use super::{Module, init, locate};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::dtype::DType;
use crate::error::Result;
use crate::rng::Rng;
use crate::tensor::Tensor;

/// Embedding table of `count` vectors of `width` elements: maps indices `[…]` (`I64`) to vectors
/// `[…, width]`.
///
/// The vectors are initialized from the standard normal distribution, as PyTorch's. The gradient of
/// a vector is accumulated in the order of the indices.
///
/// ```
/// use swath::nn::{Embedding, Module};
/// use swath::prelude::*;
///
/// let table = Embedding::new(10, 4, &mut Rng::seed(1))?;
/// let vectors = table.forward(&tensor![i64; [1, 2, 3], [3, 2, 1]])?;
/// assert_eq!(vectors.dims(), [2, 3, 4]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Embedding<B: Backend = CpuBackend> {
    /// The vectors, `[count, width]`.
    pub weight: Tensor<B>,
}
crate::module!(Embedding<B> { weight: parameter });

impl<B: Backend> Embedding<B> {
    /// Creates a table of dtype `F32`; [`nn::to_dtype`](super::to_dtype) converts it.
    ///
    /// # Errors
    /// Errors of tensor creation.
    pub fn new(count: usize, width: usize, rng: &mut Rng) -> Result<Self> {
        Ok(Embedding { weight: init::normal((count, width), 0.0, 1.0, DType::F32, rng)? })
    }
}

impl<B: Backend> Module<B> for Embedding<B> {
    /// Looks up the indices `x`.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange);
    /// [`Error::DTypeMismatch`](crate::Error::DTypeMismatch) unless the indices are `I64`.
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        self.weight.embedding(x).map_err(|error| locate(self, error))
    }
}

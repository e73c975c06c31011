//! [`IntoBackend`]: tensors of one backend as those of another.

use super::{Backend, TensorData};
use crate::error::Result;

/// Conversion of tensors between backends.
pub trait IntoBackend<Target: Backend>: Backend {
    /// The tensor on the other backend: another handle to its storage where both use the same kind of tensor, else a
    /// copy. A contiguous tensor of the CPU backend is copied once, into the other's memory.
    ///
    /// # Errors
    /// Those of [`Backend::to_host`] and [`Backend::from_host`].
    fn convert(x: &Self::Tensor) -> Result<Target::Tensor>;
}

impl<Source: Backend, Target: Backend> IntoBackend<Target> for Source {
    fn convert(x: &Self::Tensor) -> Result<Target::Tensor> {
        match Target::adopt(Source::shared(x)) {
            Some(x) => Ok(x),
            None => copy::<Source, Target>(x),
        }
    }
}

/// Copies a tensor to another backend, once where the host reads its memory.
pub(super) fn copy<Source: Backend, Target: Backend>(x: &Source::Tensor) -> Result<Target::Tensor> {
    match Source::host_bytes(x) {
        Some(bytes) => Target::from_bytes(*x.shape(), x.dtype(), bytes),
        None => Target::from_host(Source::to_host(x)?, *x.shape()),
    }
}

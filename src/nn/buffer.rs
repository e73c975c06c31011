//! [`Buffer`].

use std::sync::{Mutex, PoisonError};

use super::{Kind, Visit, Visitor, VisitorMut};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::tensor::Tensor;

/// A tensor that a layer may replace while it computes, through a shared reference: a running mean, a counter.
/// As a part of a model it is a tensor of [`Kind::Buffer`].
///
/// The lock around the tensor is held only while the tensor is cloned or replaced: of two threads that both
/// `get` and then `set`, one may overwrite the other's update.
///
/// ```
/// use swath::nn::{self, Buffer, Kind};
/// use swath::prelude::*;
///
/// struct Counter<B: Backend> {
///     calls: Buffer<B>,
/// }
/// swath::module!(Counter<B> { calls });
///
/// let counter = Counter { calls: Buffer::new(tensor![i64; 0]) };
/// counter.calls.set(counter.calls.get().add_scalar(1)?);
/// nn::for_each_tensor(&counter, |path, x, kind| {
///     assert_eq!((path, kind, x.to_vec::<i64>().ok()), ("calls", Kind::Buffer, Some(vec![1])));
/// });
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Buffer<B: Backend = CpuBackend>(Mutex<Tensor<B>>);

impl<B: Backend> Buffer<B> {
    /// Holds the values of a tensor, untracked.
    pub fn new(tensor: Tensor<B>) -> Self {
        Buffer(Mutex::new(tensor.detach()))
    }

    /// Returns the tensor.
    pub fn get(&self) -> Tensor<B> {
        // The tensor is replaced as a whole, so that a panic leaves it valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the tensor by the values of another one, untracked.
    pub fn set(&self, tensor: Tensor<B>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = tensor.detach();
    }
}

impl<B: Backend> Visit<B> for Buffer<B> {
    fn visit(&self, visitor: &mut dyn Visitor<B>) {
        visitor.tensor(&self.get(), Kind::Buffer);
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<B>) {
        visitor.tensor(self.0.get_mut().unwrap_or_else(PoisonError::into_inner), Kind::Buffer);
    }
}

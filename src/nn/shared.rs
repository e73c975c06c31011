//! [`Shared`]: one part at several places of a model.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{Module, Visit, Visitor, VisitorMut};
use crate::backend::Backend;
use crate::error::Result;
use crate::ops::Activation;
use crate::tensor::Tensor;

/// A part that stands at several places of a model: a clone is another handle on the same part. Its
/// parameters are trained once, by the sum of the gradients of all places.
///
/// To tie single tensors, put clones of one tensor at their places.
///
/// ```
/// use swath::nn::{self, Activation, Linear, Sequential, Shared};
/// use swath::prelude::*;
///
/// let layer = Shared::new(Linear::new(4, 4, &mut Rng::seed(1))?);
/// let model: Sequential =
///     Sequential::new().push(layer.clone()).push(Activation::Tanh).push(layer.clone());
/// assert_eq!(nn::summary(&model).parameters(), 20);
/// assert_eq!(layer.read().weight.dims(), [4, 4]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Shared<M>(Arc<RwLock<M>>);

impl<M> Clone for Shared<M> {
    fn clone(&self) -> Self {
        Shared(Arc::clone(&self.0))
    }
}

impl<M> Shared<M> {
    /// The first handle.
    pub fn new(part: M) -> Self {
        Shared(Arc::new(RwLock::new(part)))
    }

    /// The part, to look at. It cannot be changed meanwhile: drop the guard before a step.
    pub fn read(&self) -> RwLockReadGuard<'_, M> {
        // A panic while the part was changed leaves tensors that are each whole.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part, to change.
    pub fn write(&self) -> RwLockWriteGuard<'_, M> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B: Backend, M: Visit<B>> Visit<B> for Shared<M> {
    fn visit(&self, visitor: &mut dyn Visitor<B>) {
        self.read().visit(visitor);
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<B>) {
        self.write().visit_mut(visitor);
    }
}

impl<B: Backend, M: Module<B>> Module<B> for Shared<M> {
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        self.read().forward(x)
    }

    fn forward_then(&self, x: &Tensor<B>, activation: Activation) -> Result<Tensor<B>> {
        self.read().forward_then(x, activation)
    }

    fn as_activation(&self) -> Option<Activation> {
        self.read().as_activation()
    }
}

//! [`Shared`]: one part at several places of a model.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
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

    /// The part, to look at. It cannot be changed while the guard is there: a step of an optimizer is an
    /// error on this thread then, and waits on any other.
    pub fn read(&self) -> SharedRef<'_, M> {
        // A panic while the part was changed leaves tensors that are each whole.
        let guard = self.0.read().unwrap_or_else(PoisonError::into_inner);
        SharedGuard { guard, _held: Held::new(self.key()) }
    }

    /// The part, to change. Not on a thread that has another guard of it, which would wait for itself.
    pub fn write(&self) -> SharedMut<'_, M> {
        let guard = self.0.write().unwrap_or_else(PoisonError::into_inner);
        SharedGuard { guard, _held: Held::new(self.key()) }
    }

    /// The address of the part, which tells it from all others.
    fn key(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

thread_local! {
    /// The parts of which this thread has guards.
    static HELD: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// An entry of [`HELD`], for as long as a guard lives. The guard beside it keeps it on its thread.
#[derive(Debug)]
struct Held(usize);

impl Held {
    fn new(key: usize) -> Self {
        HELD.with_borrow_mut(|held| held.push(key));
        Held(key)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Where the thread's values are gone already, nothing can look at the list either.
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            if let Some(i) = held.iter().rposition(|&key| key == self.0) {
                held.swap_remove(i);
            }
        });
    }
}

/// Guard of a [`Shared`] part, which keeps others from changing it, or from looking at it.
#[derive(Debug)]
pub struct SharedGuard<G> {
    guard: G,
    _held: Held,
}

/// Guard of [`Shared::read`].
pub type SharedRef<'a, M> = SharedGuard<RwLockReadGuard<'a, M>>;

/// Guard of [`Shared::write`].
pub type SharedMut<'a, M> = SharedGuard<RwLockWriteGuard<'a, M>>;

impl<G: Deref> Deref for SharedGuard<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for SharedGuard<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

impl<B: Backend, M: Visit<B>> Visit<B> for Shared<M> {
    fn visit(&self, visitor: &mut dyn Visitor<B>) {
        self.read().visit(visitor);
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<B>) {
        if HELD.with_borrow(|held| held.contains(&self.key())) {
            return visitor
                .locked("has a guard on this thread: drop what Shared::read or Shared::write returned first");
        }
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

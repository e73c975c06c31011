//! [`Shared`]: one part used at several places of a model.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{Module, Visit, Visitor, VisitorMut};
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::ops::Activation;
use crate::tensor::Tensor;

/// A part that is used at several places of a model. Clones are handles to the same part. Its
/// parameters are trained once, by the sum of the gradients of all places.
///
/// To tie single tensors, use clones of one tensor instead.
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
    /// Wraps a part.
    pub fn new(part: M) -> Self {
        Shared(Arc::new(RwLock::new(part)))
    }

    /// Borrows the part for reading. While the guard lives the part cannot be changed: a step of an
    /// optimizer is an error on this thread and blocks on any other.
    ///
    /// # Panics
    /// If this thread has a guard from [`write`](Shared::write) of the same part.
    #[track_caller]
    pub fn read(&self) -> SharedRef<'_, M> {
        self.try_read().unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_read(&self) -> Result<SharedRef<'_, M>> {
        if self.is_held(&[true]) {
            let reason = format!("the part {GUARDED}");
            return Err(Error::InvalidArgument { op: "Shared::read", reason });
        }
        // A panic during a change leaves every tensor valid.
        let guard = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Ok(SharedGuard { guard, _held: Held::new(self.key(), false) })
    }

    /// Borrows the part for writing. Blocks until the guards of other threads are dropped. While the
    /// guard lives, using the part on this thread is an error where there is a `Result`, such as of
    /// [`Module::forward`], and else a panic.
    ///
    /// # Panics
    /// If this thread has another guard of the same part.
    #[track_caller]
    pub fn write(&self) -> SharedMut<'_, M> {
        assert!(!self.is_held(&[false, true]), "Shared::write: the part {GUARDED}");
        let guard = self.0.write().unwrap_or_else(PoisonError::into_inner);
        SharedGuard { guard, _held: Held::new(self.key(), true) }
    }

    /// True if this thread has a guard of the part for reading (`false` in the list) or writing
    /// (`true`).
    fn is_held(&self, writing: &[bool]) -> bool {
        let is_this = |&(key, write): &(usize, bool)| key == self.key() && writing.contains(&write);
        HELD.with_borrow(|held| held.iter().any(is_this))
    }

    /// The address of the part, as its identity.
    fn key(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

/// The error of access that would wait for its own thread.
const GUARDED: &str =
    "has a guard on this thread: drop what Shared::read or Shared::write returned first";

thread_local! {
    /// The parts that this thread has guards of, and whether for writing.
    static HELD: RefCell<Vec<(usize, bool)>> = const { RefCell::new(Vec::new()) };
}

/// An entry of [`HELD`] that lives as long as a guard. The guard beside it is not `Send`, which
/// keeps the entry on its thread.
#[derive(Debug)]
struct Held(usize, bool);

impl Held {
    fn new(key: usize, write: bool) -> Self {
        HELD.with_borrow_mut(|held| held.push((key, write)));
        Held(key, write)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Once the thread-local list is destroyed, nothing reads it any more.
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            if let Some(i) = held.iter().rposition(|&guard| guard == (self.0, self.1)) {
                held.swap_remove(i);
            }
        });
    }
}

/// Guard of a [`Shared`] part, which is locked as long as the guard lives.
#[derive(Debug)]
pub struct SharedGuard<G> {
    guard: G,
    _held: Held,
}

/// Guard returned by [`Shared::read`].
pub type SharedRef<'a, M> = SharedGuard<RwLockReadGuard<'a, M>>;

/// Guard returned by [`Shared::write`].
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
        match self.try_read() {
            Ok(part) => part.visit(visitor),
            Err(_) => visitor.locked(GUARDED),
        }
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<B>) {
        match self.is_held(&[false, true]) {
            true => visitor.locked(GUARDED),
            false => self.write().visit_mut(visitor),
        }
    }
}

impl<B: Backend, M: Module<B>> Module<B> for Shared<M> {
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        self.try_read()?.forward(x)
    }

    fn forward_then(&self, x: &Tensor<B>, activation: Activation) -> Result<Tensor<B>> {
        self.try_read()?.forward_then(x, activation)
    }

    fn as_activation(&self) -> Option<Activation> {
        self.try_read().ok()?.as_activation()
    }
}

//! Visiting the tensors of a model by path.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use super::{PartId, locate};

use crate::autodiff::CheckpointLayer;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::ops::Activation;
use crate::tensor::Tensor;

/// The role of a tensor in its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Trained by an optimizer, which expects a tracked leaf, or frozen by [`freeze`](super::freeze).
    Parameter,
    /// Saved with the model but not trained: running statistics, counters.
    Buffer,
}

/// Visits the tensors of a model. [`for_each_tensor`] is a simpler way for most uses.
pub trait Visitor<B: Backend> {
    /// Begins a part of this name, the next step of the path.
    fn enter(&mut self, name: &str);
    /// Ends the part.
    fn leave(&mut self);
    /// Visits a tensor. Its name is the last step entered.
    fn tensor(&mut self, tensor: &Tensor<B>, kind: Kind);
    /// Visits a counter, a seed or the like, a buffer that a file of the model may lack. Calls
    /// [`tensor`](Visitor::tensor) with [`Kind::Buffer`] by default.
    fn counter(&mut self, tensor: &Tensor<B>) {
        self.tensor(tensor, Kind::Buffer);
    }
    /// Called with the identity of a part, before its tensors. Parts that do not call it are not found by
    /// [`locate`].
    fn part(&mut self, _id: PartId) {}
    /// Called with the training flag of a layer. The flag can be set through a shared reference, so
    /// that parts held by an [`Arc`] can be switched too.
    fn training(&mut self, _flag: &AtomicBool) {}
    /// Called for a part that cannot be read, with the reason: this thread has a guard that
    /// [`Shared::write`](super::Shared::write) returned. Panics by default.
    fn locked(&mut self, reason: &'static str) {
        panic!("a part of the model {reason}");
    }
}

/// Like [`Visitor`], with mutable access to the tensors.
pub trait VisitorMut<B: Backend> {
    /// Begins a part of this name, the next step of the path.
    fn enter(&mut self, name: &str);
    /// Ends the part.
    fn leave(&mut self);
    /// Visits a tensor. Its name is the last step entered.
    fn tensor(&mut self, tensor: &mut Tensor<B>, kind: Kind);
    /// Visits a counter like [`Visitor::counter`].
    fn counter(&mut self, tensor: &mut Tensor<B>) {
        self.tensor(tensor, Kind::Buffer);
    }
    /// Called for a part that cannot be changed, with the reason: more than one [`Arc`] holds it,
    /// or this thread has a guard of a [`Shared`](super::Shared). The name of the part is the last
    /// step entered.
    fn locked(&mut self, _reason: &'static str) {}
}

/// A tree of tensors: a layer, a model, or a part of one. The macro [`module!`](crate::module)
/// implements it for a struct.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tree of tensors of backend `{B}`",
    label = "not a part of a model",
    note = "`swath::module!` implements `Visit` for a struct; tensors, layers and `Option`, `Vec`, arrays, `Box` and `Arc` of them have it"
)]
pub trait Visit<B: Backend> {
    /// Passes every tensor to the visitor, always in the same order.
    fn visit(&self, visitor: &mut dyn Visitor<B>);
    /// Like [`Visit::visit`], with mutable access.
    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<B>);
}

/// A layer or model with one input.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a layer or model of backend `{B}`",
    label = "not a `Module`",
    note = "implement `Module` for a struct whose `Visit` `swath::module!` writes; closures are no modules"
)]
pub trait Module<B: Backend>: Visit<B> + Send + Sync {
    /// Computes the output for the input `x`.
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>>;

    /// Computes [`forward`](Module::forward). An error begins with the path of the layer that failed.
    ///
    /// ```
    /// use swath::nn::{Linear, Module};
    /// use swath::prelude::*;
    ///
    /// struct Net {
    ///     hidden: Linear,
    ///     head: Linear,
    /// }
    /// swath::module!(Net: CpuBackend { hidden, head });
    ///
    /// impl Module<CpuBackend> for Net {
    ///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
    ///         self.head.forward(&self.hidden.forward(x)?.relu()?)
    ///     }
    /// }
    ///
    /// let mut rng = Rng::seed(1);
    /// let net = Net { hidden: Linear::new(4, 8, &mut rng)?, head: Linear::new(9, 1, &mut rng)? };
    /// let error = net.call(&Tensor::zeros((1, 4), DType::F32)?).unwrap_err();
    /// assert_eq!(error.to_string(), "in `head`: linear: 9 inputs expected, found 8, for shapes [1, 8] and [1, 9]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// Layers of this crate need nothing more. A layer of one's own is found if it is called by `call`
    /// too.
    fn call(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        self.forward(x).map_err(|error| locate(self, error))
    }

    /// Computes the output followed by an activation. A module that ends in a matrix product, such
    /// as [`Linear`](super::Linear), applies the activation while the product is in the cache.
    fn forward_then(&self, x: &Tensor<B>, activation: Activation) -> Result<Tensor<B>> {
        Module::forward(&activation, &self.forward(x)?)
    }

    /// The activation, if the module is one: [`Sequential`](super::Sequential) passes it to
    /// [`Module::forward_then`] of the module before.
    fn as_activation(&self) -> Option<Activation> {
        None
    }

    /// Switches all parts to training or evaluation mode.
    fn set_training(&mut self, training: bool) {
        struct Set(bool);
        impl<B: Backend> Visitor<B> for Set {
            fn enter(&mut self, _name: &str) {}
            fn leave(&mut self) {}
            fn tensor(&mut self, _tensor: &Tensor<B>, _kind: Kind) {}
            fn training(&mut self, flag: &AtomicBool) {
                flag.store(self.0, Ordering::Relaxed);
            }
        }
        self.visit(&mut Set(training));
    }
}

/// A tracked or frozen tensor is a parameter; another one is a buffer, unless
/// [`module!`](crate::module) declares its field a parameter.
impl<B: Backend> Visit<B> for Tensor<B> {
    fn visit(&self, visitor: &mut dyn Visitor<B>) {
        visitor.tensor(self, kind_of(self));
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<B>) {
        visitor.tensor(self, kind_of(self));
    }
}

fn kind_of<B: Backend>(x: &Tensor<B>) -> Kind {
    if x.is_tracked() || x.is_frozen() { Kind::Parameter } else { Kind::Buffer }
}

/// The training flag of a layer, which holds no tensor.
impl<B: Backend> Visit<B> for AtomicBool {
    fn visit(&self, visitor: &mut dyn Visitor<B>) {
        visitor.training(self);
    }

    fn visit_mut(&mut self, _visitor: &mut dyn VisitorMut<B>) {}
}

impl<B: Backend, T: Visit<B>> Visit<B> for Option<T> {
    fn visit(&self, visitor: &mut dyn Visitor<B>) {
        if let Some(part) = self {
            part.visit(visitor);
        }
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<B>) {
        if let Some(part) = self {
            part.visit_mut(visitor);
        }
    }
}

/// The name of a part is its index.
impl<B: Backend, T: Visit<B>> Visit<B> for [T] {
    fn visit(&self, visitor: &mut dyn Visitor<B>) {
        for (i, part) in self.iter().enumerate() {
            with_number(i, |name| visitor.enter(name));
            part.visit(visitor);
            visitor.leave();
        }
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<B>) {
        for (i, part) in self.iter_mut().enumerate() {
            with_number(i, |name| visitor.enter(name));
            part.visit_mut(visitor);
            visitor.leave();
        }
    }
}

macro_rules! visit_as_slice {
    ($([$($generics:tt)*] $List:ty)*) => {$(
        impl<B: Backend, $($generics)*> Visit<B> for $List {
            fn visit(&self, visitor: &mut dyn Visitor<B>) {
                self.as_slice().visit(visitor);
            }

            fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<B>) {
                self.as_mut_slice().visit_mut(visitor);
            }
        }
    )*};
}
visit_as_slice!([T: Visit<B>] Vec<T> [T: Visit<B>, const N: usize] [T; N]);

/// Calls `f` with the decimal digits of a number, without an allocation.
pub(super) fn with_number<Y>(number: usize, f: impl FnOnce(&str) -> Y) -> Y {
    use std::io::Write as _;
    let mut digits = [0u8; 20];
    let mut rest = &mut digits[..];
    write!(rest, "{number}").expect("20 digits hold every number");
    let len = 20 - rest.len();
    f(std::str::from_utf8(&digits[..len]).expect("digits are ASCII"))
}

impl<B: Backend, T: Visit<B> + ?Sized> Visit<B> for Box<T> {
    fn visit(&self, visitor: &mut dyn Visitor<B>) {
        (**self).visit(visitor);
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<B>) {
        (**self).visit_mut(visitor);
    }
}

/// A part held by more than one `Arc` can be visited but not changed, which is reported by
/// [`VisitorMut::locked`]. To use one part at several places of a model, use
/// [`Shared`](super::Shared).
impl<B: Backend, T: Visit<B> + ?Sized> Visit<B> for Arc<T> {
    fn visit(&self, visitor: &mut dyn Visitor<B>) {
        (**self).visit(visitor);
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<B>) {
        match Arc::get_mut(self) {
            Some(part) => part.visit_mut(visitor),
            None => visitor.locked(
                "is held by more than one Arc and cannot be changed; nn::Shared can, and so can clones \
                 of its tensors",
            ),
        }
    }
}

macro_rules! module_within {
    ($($holder:ident)*) => {$(
        impl<B: Backend, T: Module<B> + ?Sized> Module<B> for $holder<T> {
            fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
                (**self).forward(x)
            }

            fn call(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
                (**self).call(x)
            }

            fn forward_then(&self, x: &Tensor<B>, activation: Activation) -> Result<Tensor<B>> {
                (**self).forward_then(x, activation)
            }

            fn as_activation(&self) -> Option<Activation> {
                (**self).as_activation()
            }
        }
    )*};
}
module_within!(Box Arc);

impl<B: Backend> CheckpointLayer<B> for Arc<dyn Module<B>> {
    fn run(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        self.call(x)
    }
}

/// The steps of a path, joined by dots. Usual lengths need no allocation.
#[derive(Default)]
pub(super) struct Path {
    text: SmallVec<[u8; 128]>,
    /// Length of the text before each step.
    lengths: SmallVec<[usize; 16]>,
}

impl Path {
    pub fn enter(&mut self, name: &str) {
        self.lengths.push(self.text.len());
        if !self.text.is_empty() {
            self.text.push(b'.');
        }
        self.text.extend_from_slice(name.as_bytes());
    }

    pub fn leave(&mut self) {
        self.text.truncate(self.lengths.pop().unwrap_or(0));
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text).expect("made of whole names")
    }
}

/// Calls `f(path, tensor, kind)` for every tensor of a model; paths look like
/// `blocks.0.norm.weight`.
///
/// # Panics
/// If this thread has a guard that [`Shared::write`](super::Shared::write) returned for a part.
pub fn for_each_tensor<B: Backend>(
    model: &(impl Visit<B> + ?Sized),
    f: impl FnMut(&str, &Tensor<B>, Kind),
) {
    struct Each<F>(Path, F);
    impl<B: Backend, F: FnMut(&str, &Tensor<B>, Kind)> Visitor<B> for Each<F> {
        fn enter(&mut self, name: &str) {
            self.0.enter(name);
        }
        fn leave(&mut self) {
            self.0.leave();
        }
        fn tensor(&mut self, tensor: &Tensor<B>, kind: Kind) {
            (self.1)(self.0.as_str(), tensor, kind);
        }
    }
    model.visit(&mut Each(Path::default(), f));
}

/// Like [`for_each_tensor`], with mutable access; stops at the first error of `f`.
///
/// A parameter at several paths is visited at each of them. For its handles to stay tied, `f` must
/// give them the same value.
///
/// # Errors
/// [`Error::InvalidArgument`] names a part that cannot be changed because more than one [`Arc`]
/// holds it or because this thread has a guard of a [`Shared`](super::Shared); `f` is not called
/// then. Errors of `f`.
pub fn for_each_tensor_mut<B: Backend>(
    model: &mut (impl Visit<B> + ?Sized),
    mut f: impl FnMut(&str, &mut Tensor<B>, Kind) -> Result<()>,
) -> Result<()> {
    let mut each =
        Each { path: Path::default(), f: |_: &str, _: &mut Tensor<B>, _| Ok(()), result: Ok(()) };
    model.visit_mut(&mut each);
    each.result?;
    let mut each = Each { path: Path::default(), f: &mut f, result: Ok(()) };
    model.visit_mut(&mut each);
    each.result
}

/// Calls `f(path)` for every counter of a model, a seed or the like, which a file of the model may lack.
///
/// # Panics
/// As [`for_each_tensor`].
pub fn for_each_counter<B: Backend>(model: &(impl Visit<B> + ?Sized), f: impl FnMut(&str)) {
    struct Counters<F>(Path, F);
    impl<B: Backend, F: FnMut(&str)> Visitor<B> for Counters<F> {
        fn enter(&mut self, name: &str) {
            self.0.enter(name);
        }
        fn leave(&mut self) {
            self.0.leave();
        }
        fn tensor(&mut self, _tensor: &Tensor<B>, _kind: Kind) {}
        fn counter(&mut self, _tensor: &Tensor<B>) {
            (self.1)(self.0.as_str());
        }
    }
    model.visit(&mut Counters(Path::default(), f));
}

struct Each<F> {
    path: Path,
    f: F,
    result: Result<()>,
}

impl<B: Backend, F: FnMut(&str, &mut Tensor<B>, Kind) -> Result<()>> VisitorMut<B> for Each<F> {
    fn enter(&mut self, name: &str) {
        self.path.enter(name);
    }

    fn leave(&mut self) {
        self.path.leave();
    }

    fn tensor(&mut self, tensor: &mut Tensor<B>, kind: Kind) {
        if self.result.is_ok() {
            self.result = (self.f)(self.path.as_str(), tensor, kind);
        }
    }

    fn locked(&mut self, reason: &'static str) {
        if self.result.is_ok() {
            let reason = format!("`{}` {reason}", self.path.as_str());
            self.result = Err(Error::InvalidArgument { op: "visit_mut", reason });
        }
    }
}

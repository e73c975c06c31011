//! [`Sequential`], and functions as modules.

use super::locate::is_of_activation_after;
use super::visit::with_number;
use super::{Module, PartId, Visit, Visitor, VisitorMut, locate};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::error::{Error, Result};
use crate::ops::Activation;
use crate::tensor::Tensor;

/// A chain of modules. The name of a module in a path is its index.
///
/// An error begins with the index of the layer, and the path in it: ``in `2.norm1`: …``.
///
/// An [`Activation`] after a [`Linear`](super::Linear) is computed together with it by
/// [`linear_activation`](Tensor::linear_activation): 16-bit floats are then rounded once for both.
///
/// ```
/// use swath::nn::{Activation, Func, Linear, Module, Sequential};
/// use swath::prelude::*;
///
/// let mut rng = Rng::seed(1);
/// let model: Sequential = Sequential::new()
///     .push(Linear::new(2, 16, &mut rng)?)
///     .push(Activation::Relu)
///     .push(Linear::new(16, 1, &mut rng)?)
///     .push(Func::new(|x: &Tensor| x.tanh()));
/// assert_eq!(model.forward(&tensor![[0.0, 1.0]])?.dims(), [1, 1]);
/// # Ok::<(), Error>(())
/// ```
pub struct Sequential<B: Backend = CpuBackend> {
    /// The modules, in order.
    pub layers: Vec<Box<dyn Module<B>>>,
}

impl<B: Backend> Default for Sequential<B> {
    fn default() -> Self {
        Sequential { layers: Vec::new() }
    }
}

impl<B: Backend> Sequential<B> {
    /// Creates an empty chain, which returns its input.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a module.
    #[must_use]
    pub fn push(mut self, layer: impl Module<B> + 'static) -> Self {
        self.layers.push(Box::new(layer));
        self
    }

    /// Runs all layers, then `activation`. An activation is passed to the layer before it.
    fn run(&self, x: &Tensor<B>, activation: Option<Activation>) -> Result<Tensor<B>> {
        let (mut x, mut left, mut last) = (x.clone(), &self.layers[..], activation);
        while let Some((layer, rest)) = left.split_first() {
            let (next, after) = match rest.split_first() {
                Some((next, after)) => (next.as_activation(), after),
                None => (last.take(), rest),
            };
            let index = self.layers.len() - left.len();
            let (y, after) = match next {
                Some(activation) => (layer.forward_then(&x, activation), after),
                None => (layer.forward(&x), rest),
            };
            let within =
                |index, error: Error| locate(self, with_number(index, |name| error.within(name)));
            let located = |error| match next.is_some() && is_of_activation_after(&**layer, &error) {
                false => within(index, locate(&**layer, error)),
                true if after.len() < rest.len() => within(index + 1, error),
                // That of the caller.
                true => error,
            };
            (x, left) = (y.map_err(located)?, after);
        }
        match last {
            Some(activation) => activation.forward(&x),
            None => Ok(x),
        }
    }
}

impl<B: Backend> Visit<B> for Sequential<B> {
    fn visit(&self, visitor: &mut dyn Visitor<B>) {
        visitor.part(PartId::of(self));
        self.layers.visit(visitor);
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<B>) {
        self.layers.visit_mut(visitor);
    }
}

impl<B: Backend> Module<B> for Sequential<B> {
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        self.run(x, None)
    }

    fn forward_then(&self, x: &Tensor<B>, activation: Activation) -> Result<Tensor<B>> {
        self.run(x, Some(activation))
    }
}

/// A function of one tensor as a module without parameters.
///
/// ```
/// use swath::nn::{Func, Module};
/// use swath::prelude::*;
/// let flatten = Func::new(|x: &Tensor| x.flatten(1, -1));
/// let x = Tensor::zeros((2, 3, 4), DType::F32)?;
/// assert_eq!(flatten.forward(&x)?.dims(), [2, 12]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Func<F>(F);

impl<F> Func<F> {
    /// Wraps a function.
    pub fn new<B: Backend>(f: F) -> Self
    where
        F: Fn(&Tensor<B>) -> Result<Tensor<B>>,
    {
        Func(f)
    }
}

impl<B: Backend, F> Visit<B> for Func<F> {
    fn visit(&self, visitor: &mut dyn Visitor<B>) {
        visitor.part(PartId::of(self));
    }
    fn visit_mut(&mut self, _visitor: &mut dyn VisitorMut<B>) {}
}

impl<B: Backend, F> Module<B> for Func<F>
where
    F: Fn(&Tensor<B>) -> Result<Tensor<B>> + Send + Sync,
{
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        (self.0)(x).map_err(|error| locate::<B>(self, error))
    }
}

impl<B: Backend> Visit<B> for Activation {
    fn visit(&self, visitor: &mut dyn Visitor<B>) {
        visitor.part(PartId::of(self));
    }
    fn visit_mut(&mut self, _visitor: &mut dyn VisitorMut<B>) {}
}

impl<B: Backend> Module<B> for Activation {
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        x.activation(*self).map_err(|error| locate::<B>(self, error))
    }

    fn as_activation(&self) -> Option<Activation> {
        Some(*self)
    }
}

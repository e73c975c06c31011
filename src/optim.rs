//! Optimizers, learning rate schedules, gradient clipping.

use crate::autodiff::Gradients;
use crate::backend::Backend;
use crate::error::Result;
use crate::nn::Visit;
use crate::tensor::Tensor;

/// Changes a model's parameters by their gradients.
pub trait Optimizer<B: Backend> {
    /// One step of every parameter that has a gradient, in place where nothing shares its storage.
    ///
    /// # Errors
    /// [`Error::NoGradient`](crate::Error::NoGradient) if a parameter has none; nothing has changed
    /// then.
    fn step(&mut self, model: &mut dyn Visit<B>, grads: &Gradients<B>) -> Result<()>;

    /// The learning rate of the next step.
    fn learning_rate(&self) -> f64;

    /// Sets the learning rate of the steps to come.
    fn set_learning_rate(&mut self, rate: f64);

    /// All that later steps depend on, by name: counters, and per parameter path what is remembered.
    /// To be saved beside the model.
    ///
    /// # Errors
    /// Those of making a tensor.
    fn state(&self) -> Result<Vec<(String, Tensor<B>)>>;

    /// Goes on from a saved [`state`](Optimizer::state).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) names what is missing, unknown or of
    /// another type; nothing has changed then.
    fn load_state(&mut self, state: Vec<(String, Tensor<B>)>) -> Result<()>;
}

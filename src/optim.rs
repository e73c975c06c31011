//! Optimizers, learning rate schedules, gradient clipping.
//!
//! ```
//! use swath::nn::{Linear, Module, loss};
//! use swath::optim::{AdamW, AdamWOptions, CosineSchedule, Optimizer, Schedule, WarmupSchedule};
//! use swath::prelude::*;
//!
//! let mut rng = Rng::seed(1);
//! let mut model: Linear = Linear::new(3, 1, &mut rng)?;
//! let x = Tensor::randn((16, 3), &mut rng)?;
//! let y = x.matmul(&tensor![[1.0], [-2.0], [0.5]])?;
//!
//! let schedule = WarmupSchedule {
//!     warmup: 10,
//!     then: CosineSchedule { peak: 0.1, floor: 0.001, steps: 190 },
//! };
//! let mut optimizer = AdamW::new(AdamWOptions { weight_decay: 0.0, ..Default::default() })?;
//! for step in 0..200 {
//!     optimizer.set_learning_rate(schedule.rate(step));
//!     let loss = loss::mse(&model.forward(&x)?, &y)?;
//!     let mut grads = loss.backward()?;
//!     optim::clip_grad_norm(&model, &mut grads, 1.0)?;
//!     optimizer.step(&mut model, &grads)?;
//! }
//! assert!(loss::mse(&model.forward(&x)?, &y)?.item::<f32>()? < 1e-4);
//! # Ok::<(), Error>(())
//! ```
//!
//! Batches too large for memory are cut: [`Gradients::merge`] adds the parts' gradients, and
//! [`Gradients::scale`] makes a mean of them.
//!
//! | file | what |
//! |---|---|
//! | `sgd.rs` `adam.rs` | the optimizers |
//! | `memory.rs` | what they remember, by path; the step over a model |
//! | `schedule.rs` | learning rates by step |
//! | `clip.rs` | clipping by the global norm |

mod adam;
mod clip;
mod memory;
mod schedule;
mod sgd;

pub use adam::{Adam, AdamOptions, AdamW, AdamWOptions};
pub use clip::clip_grad_norm;
pub use schedule::{CosineSchedule, Schedule, StepSchedule, WarmupSchedule};
pub use sgd::{Sgd, SgdOptions};

use crate::autodiff::Gradients;
use crate::backend::Backend;
use crate::error::Result;
use crate::nn::Visit;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Chooses, by path and shape, the parameters that weight decay pulls towards 0.
pub type Decays = fn(path: &str, shape: &Shape) -> bool;

/// A choice for [`Decays`]: parameters of at least two axes decay, biases and the weights of
/// normalisations do not.
pub fn matrices(_path: &str, shape: &Shape) -> bool {
    shape.ndim() >= 2
}

/// A choice for [`Decays`], the default: every parameter decays.
pub fn all(_path: &str, _shape: &Shape) -> bool {
    true
}

/// Changes a model's parameters by their gradients.
pub trait Optimizer<B: Backend> {
    /// One step of every parameter, in place where nothing shares its storage. A parameter found at
    /// several paths takes one step and stays one.
    ///
    /// # Errors
    /// [`Error::NoGradient`](crate::Error::NoGradient) names a parameter without a gradient,
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) a part that more than one
    /// [`Arc`](std::sync::Arc) holds, a parameter that is no leaf, or one of another shape or dtype
    /// than what is remembered of it. Nothing has changed then.
    fn step(&mut self, model: &mut dyn Visit<B>, grads: &Gradients<B>) -> Result<()>;

    /// The learning rate of the next step.
    fn learning_rate(&self) -> f64;

    /// Sets the learning rate of the steps to come.
    fn set_learning_rate(&mut self, rate: f64);

    /// All that later steps depend on beside the options, by name: `learning_rate`, and for each
    /// parameter what is remembered, as `blocks.0.weight.exp_avg`. The names are PyTorch's. To be saved
    /// beside the model.
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

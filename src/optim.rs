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
//! A custom optimizer consists of its options and an [`Update`], the formula in tensor operations:
//!
//! ```
//! use swath::optim::{Optimizer, PerParameter, Step, Update};
//! use swath::prelude::*;
//!
//! /// Moves every element by the learning rate against the sign of its gradient.
//! struct SignSgd {
//!     learning_rate: f64,
//! }
//!
//! impl<B: Backend> Update<B> for SignSgd {
//!     fn name(&self) -> &'static str {
//!         "sign_sgd"
//!     }
//!     fn learning_rate(&mut self) -> &mut f64 {
//!         &mut self.learning_rate
//!     }
//!     fn is_elementwise(&self) -> bool {
//!         true
//!     }
//!     fn update(
//!         &self,
//!         parameter: &Tensor<B>,
//!         gradient: &Tensor<B>,
//!         _state: &mut [Tensor<B>],
//!         _step: &Step<'_>,
//!     ) -> Result<Tensor<B>> {
//!         parameter.sub(&gradient.sign()?.mul_scalar(self.learning_rate)?)
//!     }
//! }
//!
//! let mut optimizer = PerParameter::new(SignSgd { learning_rate: 0.5 })?;
//! let mut w = tensor![1.0, -1.0].requires_grad();
//! let grads = w.square()?.sum(None, false)?.backward()?;
//! optimizer.step(&mut w, &grads)?;
//! assert_eq!(w.to_vec::<f32>()?, [0.5, -0.5]);
//! # Ok::<(), Error>(())
//! ```
//!
//! A batch too large for memory can be split: [`Gradients::merge`] sums the gradients of the parts,
//! and [`Gradients::scale`] turns the sum into a mean.
//!
//! | file | what |
//! |---|---|
//! | `sgd.rs` `adam.rs` `rms_prop.rs` `adagrad.rs` `lion.rs` | the optimizers, one file each: options and formula |
//! | `per_parameter.rs` | the step over a model, and the state of each parameter |
//! | `schedule.rs` | learning rates by step |
//! | `clip.rs` | clipping by the global norm |

mod adagrad;
mod adam;
mod clip;
mod lion;
mod per_parameter;
mod rms_prop;
mod schedule;
mod sgd;

pub use adagrad::{Adagrad, AdagradOptions};
pub use adam::{Adam, AdamOptions, AdamW, AdamWOptions};
pub use clip::{ClipOptions, clip_grad_norm, clip_grad_norm_with};
pub use lion::{Lion, LionOptions};
pub use per_parameter::PerParameter;
pub(crate) use per_parameter::Slots;
pub use rms_prop::{RmsProp, RmsPropOptions};
pub use schedule::{CosineSchedule, Schedule, StepSchedule, WarmupSchedule};
pub use sgd::{Sgd, SgdOptions};

use crate::autodiff::Gradients;
use crate::backend::Backend;
use crate::error::{Error, Result, check_options};
use crate::nn::Visit;
use crate::ops::UpdateOp;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Selects, by path and shape, the parameters that have weight decay.
pub type Decays = fn(path: &str, shape: &Shape) -> bool;

/// For [`Decays`]: parameters with at least two axes decay; biases and the weights of
/// normalizations do not.
pub fn matrices(_path: &str, shape: &Shape) -> bool {
    shape.ndim() >= 2
}

/// For [`Decays`], the default: every parameter decays.
pub fn all(_path: &str, _shape: &Shape) -> bool {
    true
}

/// Updates the parameters of a model by their gradients.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an optimizer of backend `{B}`",
    label = "not an `Optimizer`",
    note = "optimizers are in `swath::optim`: `Sgd`, `Adam`, `AdamW`, ..."
)]
pub trait Optimizer<B: Backend> {
    /// Takes one step with every parameter, in place if nothing else shares its storage. A
    /// parameter at several paths takes a single step and stays tied.
    ///
    /// If a parameter is held elsewhere during a step (by a clone, or by a graph without its
    /// backward pass), that handle keeps the old values and the model's parameter becomes a new
    /// leaf. Gradients of the old leaf are refused by the next step. The parameter is then copied,
    /// as is one of which a view is alive; [`runtime::info`](crate::runtime::info) counts such
    /// copies.
    ///
    /// # Errors
    /// [`Error::NoGradient`] names a parameter without a gradient. [`Error::InvalidArgument`] names
    /// a parameter that is neither tracked nor [frozen](crate::nn::freeze), an invalid learning
    /// rate, a part that more than one [`Arc`](std::sync::Arc) holds or that this thread has a
    /// guard of, a parameter that is not a leaf, or one whose optimizer state has another shape or
    /// dtype. In all these cases the model is unchanged.
    ///
    /// Errors of the computation: of an [`Update`], or [`Error::OutOfMemory`]. The parameters before
    /// the one that failed have then taken the step, with their state, and it and the later ones
    /// have not.
    fn step(&mut self, model: &mut dyn Visit<B>, grads: &Gradients<B>) -> Result<()>;

    /// The learning rate of the next step.
    fn learning_rate(&self) -> f64;

    /// Sets the learning rate of the steps to come. If it is not finite or negative, the next step is
    /// an error.
    fn set_learning_rate(&mut self, rate: f64);

    /// Returns the state that later steps depend on, besides the options, by name: `learning_rate`,
    /// and for each parameter entries such as `blocks.0.weight.exp_avg`. The names are PyTorch's.
    /// Save it together with the model.
    ///
    /// # Errors
    /// Errors of tensor creation.
    fn state(&self) -> Result<Vec<(String, Tensor<B>)>>;

    /// Restores a saved [`state`](Optimizer::state).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] names an entry that is missing, unknown, duplicated, of another type or out of
    /// range; the optimizer is then unchanged.
    fn load_state(&mut self, state: Vec<(String, Tensor<B>)>) -> Result<()>;
}

/// The parameter and step number that an [`Update`] is called for.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The parameter's path in the model.
    pub path: &'a str,
    /// The parameter's shape.
    pub shape: &'a Shape,
    /// The number of the parameter's step, from 1.
    pub number: u64,
}

impl Step<'_> {
    /// The weight decay of this parameter: `weight_decay`, or 0 if it does not decay.
    fn decay(&self, weight_decay: f64, decays: Decays) -> f64 {
        if decays(self.path, self.shape) { weight_decay } else { 0.0 }
    }
}

/// The formula of an optimizer: one step of one parameter. [`PerParameter`] makes an [`Optimizer`]
/// of it.
pub trait Update<B: Backend> {
    /// The name of the optimizer, for error messages.
    fn name(&self) -> &'static str;

    /// The learning rate, for reading and writing.
    fn learning_rate(&mut self) -> &mut f64;

    /// Checks the options: when the optimizer is made, and before each step because the learning rate may have
    /// changed.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an invalid option.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Names of the state tensors of each parameter, which have its shape and dtype.
    fn state(&self) -> &'static [&'static str] {
        &[]
    }

    /// The initial value of all elements of the state tensors.
    fn initial_state(&self) -> f64 {
        0.0
    }

    /// Computes the new values of the parameter and replaces the state tensors, which are in the
    /// order of [`Update::state`]. For 16-bit parameters all tensors are `F32` here and are rounded
    /// afterwards. Nothing is recorded.
    ///
    /// # Errors
    /// Errors of the operations. Results of another shape than the parameter give
    /// [`Error::ShapeMismatch`].
    fn update(
        &self,
        parameter: &Tensor<B>,
        gradient: &Tensor<B>,
        state: &mut [Tensor<B>],
        step: &Step<'_>,
    ) -> Result<Tensor<B>>;

    /// True if an element's new value depends only on that element, its gradient and its state, so that ranks can share
    /// out a parameter ([`ShardedOptimizer`](crate::distributed::ShardedOptimizer)).
    fn is_elementwise(&self) -> bool;

    /// Returns the same step as an op, for backends that have a kernel for it.
    fn kernel(&self, _step: &Step<'_>) -> Option<UpdateOp> {
        None
    }
}

/// The gradient plus the weight decay times the parameter.
fn decayed<B: Backend>(
    gradient: &Tensor<B>,
    parameter: &Tensor<B>,
    weight_decay: f64,
) -> Result<Tensor<B>> {
    match weight_decay {
        0.0 => Ok(gradient.clone()),
        _ => gradient.add(&parameter.mul_scalar(weight_decay)?),
    }
}

/// Updates an exponential moving average: `share · x + (1 - share) · y`.
fn mixed<B: Backend>(x: &Tensor<B>, share: f64, y: &Tensor<B>) -> Result<Tensor<B>> {
    x.mul_scalar(share)?.add(&y.mul_scalar(1.0 - share)?)
}

/// Fails unless all of the named decay rates are at least 0 and below 1.
fn check_shares(op: &'static str, shares: &[(&str, f64)]) -> Result<()> {
    check_options(op, shares)?;
    match shares.iter().find(|(_, share)| *share >= 1.0) {
        Some((name, share)) => {
            let reason = format!("{name} must be below 1, got {share}");
            Err(Error::InvalidArgument { op, reason })
        }
        None => Ok(()),
    }
}

//! [`Sgd`].

use super::memory::{Memory, check_options, keeping_methods};
use super::{Decays, Optimizer, all};
use crate::autodiff::Gradients;
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::error::{Error, Result};
use crate::nn::Visit;
use crate::ops::UpdateOp;
use crate::tensor::Tensor;

/// Stochastic gradient descent, with momentum if asked for, as PyTorch's:
/// [`UpdateOp::Sgd`] is the formula.
///
/// ```
/// use swath::nn::{Linear, Module};
/// use swath::optim::{Optimizer, Sgd, SgdOptions};
/// use swath::prelude::*;
///
/// let mut layer: Linear = Linear::new(2, 1, &mut Rng::seed(1))?;
/// let options = SgdOptions { learning_rate: 0.1, momentum: 0.9, ..Default::default() };
/// let mut optimizer = Sgd::new(options)?;
/// let x = tensor![[1.0, 2.0]];
/// let before = layer.forward(&x)?.item::<f32>()?;
/// let grads = layer.forward(&x)?.backward()?;
/// optimizer.step(&mut layer, &grads)?;
/// assert!(layer.forward(&x)?.item::<f32>()? < before);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Sgd<B: Backend = CpuBackend> {
    options: SgdOptions,
    memory: Memory<B>,
}

/// Options of [`Sgd::new`].
#[derive(Clone, Copy, Debug)]
pub struct SgdOptions {
    /// Learning rate; 1e-3 by default.
    pub learning_rate: f64,
    /// What of the running sum of gradients is kept at each step; 0, the default: there is no sum.
    pub momentum: f64,
    /// What a new gradient loses before it is added to the sum; 0 by default.
    pub dampening: f64,
    /// Looks one step of the momentum ahead; off by default.
    pub nesterov: bool,
    /// Pull towards 0, added to the gradient; 0 by default.
    pub weight_decay: f64,
    /// The parameters that it pulls; by default [`all`].
    pub decays: Decays,
}

impl Default for SgdOptions {
    fn default() -> Self {
        SgdOptions {
            learning_rate: 1e-3,
            momentum: 0.0,
            dampening: 0.0,
            nesterov: false,
            weight_decay: 0.0,
            decays: all,
        }
    }
}

impl<B: Backend> Sgd<B> {
    /// With nothing remembered yet.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a number that is negative or not finite, and for Nesterov's
    /// momentum without momentum or with dampening.
    pub fn new(options: SgdOptions) -> Result<Self> {
        let op = "sgd";
        check_options(
            op,
            &[
                ("learning_rate", options.learning_rate),
                ("momentum", options.momentum),
                ("dampening", options.dampening),
                ("weight_decay", options.weight_decay),
            ],
        )?;
        if options.nesterov && (options.momentum == 0.0 || options.dampening != 0.0) {
            let reason = "nesterov needs momentum above 0 and dampening 0".to_owned();
            return Err(Error::InvalidArgument { op, reason });
        }
        let names: &[&str] = if options.momentum == 0.0 { &[] } else { &["momentum_buffer"] };
        Ok(Sgd { options, memory: Memory::new(op, names) })
    }
}

impl<B: Backend> Optimizer<B> for Sgd<B> {
    fn step(&mut self, model: &mut dyn Visit<B>, grads: &Gradients<B>) -> Result<()> {
        let options = self.options;
        self.memory.step(model, grads, |path, shape, t| UpdateOp::Sgd {
            rate: options.learning_rate,
            momentum: options.momentum,
            dampening: options.dampening,
            weight_decay: if (options.decays)(path, shape) { options.weight_decay } else { 0.0 },
            nesterov: options.nesterov,
            first: t == 1,
        })
    }

    keeping_methods!();
}

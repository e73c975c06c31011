//! [`Lion`].

use super::{Decays, PerParameter, Step, Update, all, check_options, check_shares, mixed};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::error::Result;
use crate::tensor::Tensor;

/// Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023):
///
/// ```text
/// p *= 1 - rate weight_decay
/// p -= rate sign(β₁ m + (1 - β₁) g)
/// m = β₂ m + (1 - β₂) g                  exp_avg
/// ```
///
/// Every element moves by the learning rate, which is therefore 3 to 10 times smaller than for
/// AdamW, with a weight decay that is larger by the same factor.
///
/// ```
/// use swath::optim::{Lion, LionOptions, Optimizer};
/// use swath::prelude::*;
/// let mut optimizer = Lion::new(LionOptions { learning_rate: 0.25, ..Default::default() })?;
/// let mut w = tensor![1.0, -100.0].requires_grad();
/// let grads = w.square()?.sum(None, false)?.backward()?;
/// optimizer.step(&mut w, &grads)?;
/// assert_eq!(w.to_vec::<f32>()?, [0.75, -99.75]);
/// # Ok::<(), Error>(())
/// ```
pub type Lion<B = CpuBackend> = PerParameter<LionOptions, B>;

/// Options of [`Lion`].
#[derive(Clone, Copy, Debug)]
pub struct LionOptions {
    /// Learning rate; 1e-4 by default.
    pub learning_rate: f64,
    /// Decay rates of the moving average of gradients, in the direction of a step and after it,
    /// below 1; 0.9 and 0.99 by default.
    pub betas: [f64; 2],
    /// Decoupled weight decay: a step takes away this share times the learning rate; 0 by default.
    pub weight_decay: f64,
    /// The parameters that decay; by default [`all`].
    pub decays: Decays,
}

impl Default for LionOptions {
    fn default() -> Self {
        LionOptions { learning_rate: 1e-4, betas: [0.9, 0.99], weight_decay: 0.0, decays: all }
    }
}

impl<B: Backend> Update<B> for LionOptions {
    fn name(&self) -> &'static str {
        "lion"
    }

    fn learning_rate(&mut self) -> &mut f64 {
        &mut self.learning_rate
    }

    fn check(&self) -> Result<()> {
        let [beta1, beta2] = self.betas;
        let numbers = [("learning_rate", self.learning_rate), ("weight_decay", self.weight_decay)];
        check_options("lion", &numbers)?;
        check_shares("lion", &[("betas[0]", beta1), ("betas[1]", beta2)])
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn state(&self) -> &'static [&'static str] {
        &["exp_avg"]
    }

    fn update(
        &self,
        parameter: &Tensor<B>,
        gradient: &Tensor<B>,
        state: &mut [Tensor<B>],
        step: &Step<'_>,
    ) -> Result<Tensor<B>> {
        let ([beta1, beta2], rate) = (self.betas, self.learning_rate);
        let [mean] = state else { return Ok(parameter.clone()) };
        let direction = mixed(mean, beta1, gradient)?.sign()?;
        *mean = mixed(mean, beta2, gradient)?;
        let decay = step.decay(self.weight_decay, self.decays);
        parameter.mul_scalar(1.0 - rate * decay)?.sub(&direction.mul_scalar(rate)?)
    }
}

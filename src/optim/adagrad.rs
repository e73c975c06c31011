//! [`Adagrad`].

use super::{Decays, PerParameter, Step, Update, all, check_options, decayed};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::error::Result;
use crate::tensor::Tensor;

/// Adagrad (Duchi, Hazan and Singer, 2011) as PyTorch's, for step t from 1:
///
/// ```text
/// g += weight_decay p
/// s += g²                                sum, initial_accumulator at first
/// p -= rate / (1 + (t - 1) rate_decay) · g / (√s + eps)
/// ```
///
/// On 16-bit parameters see [`PerParameter`].
///
/// ```
/// use swath::optim::{Adagrad, AdagradOptions, Optimizer};
/// use swath::prelude::*;
/// let mut optimizer = Adagrad::new(AdagradOptions { learning_rate: 0.5, ..Default::default() })?;
/// let mut w = tensor![1.0, -100.0].requires_grad();
/// let grads = w.square()?.sum(None, false)?.backward()?;
/// optimizer.step(&mut w, &grads)?;
/// assert_eq!(w.to_vec::<f32>()?, [0.5, -99.5]);
/// # Ok::<(), Error>(())
/// ```
pub type Adagrad<B = CpuBackend> = PerParameter<AdagradOptions, B>;

/// Options of [`Adagrad`].
#[derive(Clone, Copy, Debug)]
pub struct AdagradOptions {
    /// Learning rate; 0.01 by default.
    pub learning_rate: f64,
    /// Decay of the learning rate, which is divided by `1 + (t - 1) rate_decay`; 0 by default.
    pub rate_decay: f64,
    /// Initial value of the sum of squares; 0 by default.
    pub initial_accumulator: f64,
    /// Added to the square root of the sum, against division by 0; 1e-10 by default.
    pub eps: f64,
    /// Weight decay, added to the gradient; 0 by default.
    pub weight_decay: f64,
    /// The parameters that decay; by default [`all`].
    pub decays: Decays,
}

impl Default for AdagradOptions {
    fn default() -> Self {
        AdagradOptions {
            learning_rate: 0.01,
            rate_decay: 0.0,
            initial_accumulator: 0.0,
            eps: 1e-10,
            weight_decay: 0.0,
            decays: all,
        }
    }
}

impl<B: Backend> Update<B> for AdagradOptions {
    fn name(&self) -> &'static str {
        "adagrad"
    }

    fn learning_rate(&mut self) -> &mut f64 {
        &mut self.learning_rate
    }

    fn check(&self) -> Result<()> {
        let numbers = [
            ("learning_rate", self.learning_rate),
            ("rate_decay", self.rate_decay),
            ("initial_accumulator", self.initial_accumulator),
            ("eps", self.eps),
            ("weight_decay", self.weight_decay),
        ];
        check_options("adagrad", &numbers)
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn state(&self) -> &'static [&'static str] {
        &["sum"]
    }

    fn initial_state(&self) -> f64 {
        self.initial_accumulator
    }

    fn update(
        &self,
        parameter: &Tensor<B>,
        gradient: &Tensor<B>,
        state: &mut [Tensor<B>],
        step: &Step<'_>,
    ) -> Result<Tensor<B>> {
        let g = decayed(gradient, parameter, step.decay(self.weight_decay, self.decays))?;
        let [sum] = state else { return Ok(parameter.clone()) };
        *sum = sum.add(&g.square()?)?;
        let rate = self.learning_rate / (1.0 + (step.number - 1) as f64 * self.rate_decay);
        parameter.sub(&g.div(&sum.sqrt()?.add_scalar(self.eps)?)?.mul_scalar(rate)?)
    }
}

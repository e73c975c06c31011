//! [`Sgd`].

use super::{Decays, PerParameter, Step, Update, all, check_options, decayed};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::error::{Error, Result};
use crate::ops::UpdateOp;
use crate::tensor::Tensor;

/// Stochastic gradient descent, optionally with momentum, as PyTorch's. The formula is that of
/// [`UpdateOp::Sgd`].
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
pub type Sgd<B = CpuBackend> = PerParameter<SgdOptions, B>;

/// Options of [`Sgd`].
#[derive(Clone, Copy, Debug)]
pub struct SgdOptions {
    /// Learning rate; 1e-3 by default.
    pub learning_rate: f64,
    /// Momentum, the decay rate of the accumulated gradients; 0, the default, disables it.
    pub momentum: f64,
    /// Dampening: a new gradient is multiplied by `1 - dampening` before it is accumulated; 0 by
    /// default.
    pub dampening: f64,
    /// Nesterov's momentum, which needs momentum and no dampening; off by default.
    pub nesterov: bool,
    /// Weight decay, added to the gradient; 0 by default.
    pub weight_decay: f64,
    /// The parameters that decay; by default [`all`].
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

impl<B: Backend> Update<B> for SgdOptions {
    fn name(&self) -> &'static str {
        "sgd"
    }

    fn learning_rate(&mut self) -> &mut f64 {
        &mut self.learning_rate
    }

    fn check(&self) -> Result<()> {
        let op = "sgd";
        check_options(
            op,
            &[
                ("learning_rate", self.learning_rate),
                ("momentum", self.momentum),
                ("dampening", self.dampening),
                ("weight_decay", self.weight_decay),
            ],
        )?;
        if self.nesterov && (self.momentum == 0.0 || self.dampening != 0.0) {
            let reason = format!(
                "nesterov needs momentum above 0 and dampening 0, got {} and {}",
                self.momentum, self.dampening
            );
            return Err(Error::InvalidArgument { op, reason });
        }
        Ok(())
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn state(&self) -> &'static [&'static str] {
        if self.momentum == 0.0 { &[] } else { &["momentum_buffer"] }
    }

    fn update(
        &self,
        parameter: &Tensor<B>,
        gradient: &Tensor<B>,
        state: &mut [Tensor<B>],
        step: &Step<'_>,
    ) -> Result<Tensor<B>> {
        let &SgdOptions { learning_rate, momentum, dampening, .. } = self;
        let decay = step.decay(self.weight_decay, self.decays);
        let mut direction = decayed(gradient, parameter, decay)?;
        if let [buffer] = state {
            *buffer = match step.number {
                1 => direction.clone(),
                _ => {
                    let kept = buffer.mul_scalar(momentum)?;
                    kept.add(&direction.mul_scalar(1.0 - dampening)?)?
                }
            };
            direction = match self.nesterov {
                true => direction.add(&buffer.mul_scalar(momentum)?)?,
                false => buffer.clone(),
            };
        }
        parameter.sub(&direction.mul_scalar(learning_rate)?)
    }

    fn kernel(&self, step: &Step<'_>) -> Option<UpdateOp> {
        Some(UpdateOp::Sgd {
            rate: self.learning_rate,
            momentum: self.momentum,
            dampening: self.dampening,
            weight_decay: step.decay(self.weight_decay, self.decays),
            nesterov: self.nesterov,
            first: step.number == 1,
        })
    }
}

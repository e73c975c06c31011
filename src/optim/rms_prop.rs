//! [`RmsProp`].

use super::{Decays, PerParameter, Step, Update, all, check_options, check_shares, decayed, mixed};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::error::Result;
use crate::tensor::Tensor;

/// RMSprop (Tieleman and Hinton, 2012; centered: Graves, 2013) as PyTorch's:
///
/// ```text
/// g += weight_decay p
/// s = alpha s + (1 - alpha) g²           square_avg
/// a = alpha a + (1 - alpha) g            grad_avg, if centered; else 0
/// d = g / (√(s - a²) + eps)
/// b = momentum b + d                     momentum_buffer, if there is momentum; else d
/// p -= rate b
/// ```
///
/// On 16-bit parameters see [`PerParameter`].
///
/// ```
/// use swath::optim::{Optimizer, RmsProp, RmsPropOptions};
/// use swath::prelude::*;
/// let options = RmsPropOptions { learning_rate: 0.25, alpha: 0.75, ..Default::default() };
/// let mut optimizer = RmsProp::new(options)?;
/// let mut w = tensor![1.0, -100.0].requires_grad();
/// let grads = w.square()?.sum(None, false)?.backward()?;
/// optimizer.step(&mut w, &grads)?;
/// // The first step is rate / √(1 - alpha) for gradients of any magnitude.
/// assert_eq!(w.to_vec::<f32>()?, [0.5, -99.5]);
/// # Ok::<(), Error>(())
/// ```
pub type RmsProp<B = CpuBackend> = PerParameter<RmsPropOptions, B>;

/// Options of [`RmsProp`].
#[derive(Clone, Copy, Debug)]
pub struct RmsPropOptions {
    /// Learning rate; 0.01 by default.
    pub learning_rate: f64,
    /// Decay rate of the moving averages, below 1; 0.99 by default.
    pub alpha: f64,
    /// Added to the root mean square, against division by 0; 1e-8 by default.
    pub eps: f64,
    /// Momentum, the decay rate of the accumulated steps; 0, the default, disables it.
    pub momentum: f64,
    /// Divides by the standard deviation of the gradients instead of their root mean square; off by
    /// default. While a gradient hardly changes, `s - a²` tends to 0 and the steps grow; as in
    /// PyTorch, the parameter becomes NaN once rounding makes the difference negative (`f32`, alpha
    /// 0.99, gradient 0.1: at step 1201).
    pub centered: bool,
    /// Weight decay, added to the gradient; 0 by default.
    pub weight_decay: f64,
    /// The parameters that decay; by default [`all`].
    pub decays: Decays,
}

impl Default for RmsPropOptions {
    fn default() -> Self {
        RmsPropOptions {
            learning_rate: 0.01,
            alpha: 0.99,
            eps: 1e-8,
            momentum: 0.0,
            centered: false,
            weight_decay: 0.0,
            decays: all,
        }
    }
}

impl<B: Backend> Update<B> for RmsPropOptions {
    fn name(&self) -> &'static str {
        "rms_prop"
    }

    fn learning_rate(&mut self) -> &mut f64 {
        &mut self.learning_rate
    }

    fn check(&self) -> Result<()> {
        let op = "rms_prop";
        check_options(
            op,
            &[
                ("learning_rate", self.learning_rate),
                ("eps", self.eps),
                ("momentum", self.momentum),
                ("weight_decay", self.weight_decay),
            ],
        )?;
        check_shares(op, &[("alpha", self.alpha)])
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn state(&self) -> &'static [&'static str] {
        match (self.momentum != 0.0, self.centered) {
            (false, false) => &["square_avg"],
            (true, false) => &["square_avg", "momentum_buffer"],
            (false, true) => &["square_avg", "grad_avg"],
            (true, true) => &["square_avg", "momentum_buffer", "grad_avg"],
        }
    }

    fn update(
        &self,
        parameter: &Tensor<B>,
        gradient: &Tensor<B>,
        state: &mut [Tensor<B>],
        step: &Step<'_>,
    ) -> Result<Tensor<B>> {
        let g = decayed(gradient, parameter, step.decay(self.weight_decay, self.decays))?;
        let [squares, others @ ..] = state else { return Ok(parameter.clone()) };
        *squares = mixed(squares, self.alpha, &g.square()?)?;
        let mut variance = squares.clone();
        if let (true, Some(mean)) = (self.centered, others.last_mut()) {
            *mean = mixed(mean, self.alpha, &g)?;
            variance = squares.sub(&mean.square()?)?;
        }
        let mut direction = g.div(&variance.sqrt()?.add_scalar(self.eps)?)?;
        if let (true, Some(buffer)) = (self.momentum != 0.0, others.first_mut()) {
            *buffer = buffer.mul_scalar(self.momentum)?.add(&direction)?;
            direction = buffer.clone();
        }
        parameter.sub(&direction.mul_scalar(self.learning_rate)?)
    }
}

//! [`Adam`] and [`AdamW`].

use swath_kernels::power;

use super::{Decays, PerParameter, Step, Update, all, check_options, check_shares, decayed, mixed};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::error::Result;
use crate::ops::UpdateOp;
use crate::tensor::Tensor;

/// Adam (Kingma and Ba, 2015) as PyTorch's. The formula is that of [`UpdateOp::Adam`]. Weight decay
/// is added to the gradient, unlike in [`AdamW`]. On 16-bit parameters see [`PerParameter`].
pub type Adam<B = CpuBackend> = PerParameter<AdamOptions, B>;

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019) as PyTorch's. The formula is that
/// of [`UpdateOp::Adam`]. On 16-bit parameters see [`PerParameter`].
///
/// ```
/// use swath::optim::{self, AdamW, AdamWOptions};
/// use swath::prelude::*;
///
/// // Usual options for a GPT: biases and normalizations do not decay.
/// let optimizer: AdamW = AdamW::new(AdamWOptions {
///     learning_rate: 3e-3,
///     betas: [0.9, 0.95],
///     weight_decay: 0.1,
///     decays: optim::matrices,
///     ..Default::default()
/// })?;
/// # Ok::<(), Error>(())
/// ```
pub type AdamW<B = CpuBackend> = PerParameter<AdamWOptions, B>;

macro_rules! options {
    ($(#[$doc:meta])* $Options:ident, $name:literal, decoupled $decoupled:literal,
        $decay:literal, $(#[$decay_doc:meta])*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $Options {
            /// Learning rate; 1e-3 by default.
            pub learning_rate: f64,
            /// Decay rates of the moving averages of gradients and of their squares, below 1; 0.9
            /// and 0.999 by default.
            pub betas: [f64; 2],
            /// Added to the root mean square, against division by 0; 1e-8 by default.
            pub eps: f64,
            $(#[$decay_doc])*
            pub weight_decay: f64,
            /// The parameters that decay; by default [`all`].
            pub decays: Decays,
        }

        impl Default for $Options {
            fn default() -> Self {
                $Options {
                    learning_rate: 1e-3,
                    betas: [0.9, 0.999],
                    eps: 1e-8,
                    weight_decay: $decay,
                    decays: all,
                }
            }
        }

        impl<B: Backend> Update<B> for $Options {
            fn name(&self) -> &'static str {
                $name
            }

            fn learning_rate(&mut self) -> &mut f64 {
                &mut self.learning_rate
            }

            fn check(&self) -> Result<()> {
                let &$Options { learning_rate, betas: [beta1, beta2], eps, weight_decay, .. } = self;
                let numbers =
                    [("learning_rate", learning_rate), ("eps", eps), ("weight_decay", weight_decay)];
                check_options($name, &numbers)?;
                check_shares($name, &[("betas[0]", beta1), ("betas[1]", beta2)])
            }

            fn is_elementwise(&self) -> bool {
                true
            }

            fn state(&self) -> &'static [&'static str] {
                &["exp_avg", "exp_avg_sq"]
            }

            fn update(
                &self,
                parameter: &Tensor<B>,
                gradient: &Tensor<B>,
                state: &mut [Tensor<B>],
                step: &Step<'_>,
            ) -> Result<Tensor<B>> {
                let &$Options { learning_rate, betas: [beta1, beta2], eps, .. } = self;
                let decay = step.decay(self.weight_decay, self.decays);
                let [m, v] = state else { return Ok(parameter.clone()) };
                let (parameter, gradient) = match $decoupled {
                    true => (parameter.mul_scalar(1.0 - learning_rate * decay)?, gradient.clone()),
                    false => (parameter.clone(), decayed(gradient, parameter, decay)?),
                };
                *m = mixed(m, beta1, &gradient)?;
                *v = mixed(v, beta2, &gradient.square()?)?;
                let bias = |beta: f64| 1.0 - power(beta, step.number);
                let root = v.sqrt()?.mul_scalar(1.0 / bias(beta2).sqrt())?.add_scalar(eps)?;
                parameter.sub(&m.mul_scalar(learning_rate / bias(beta1))?.div(&root)?)
            }

            fn kernel(&self, step: &Step<'_>) -> Option<UpdateOp> {
                Some(UpdateOp::Adam {
                    rate: self.learning_rate,
                    betas: self.betas,
                    eps: self.eps,
                    weight_decay: step.decay(self.weight_decay, self.decays),
                    decoupled: $decoupled,
                    step: step.number,
                })
            }
        }
    };
}

options! {
    /// Options of [`Adam`].
    AdamOptions, "adam", decoupled false, 0.0,
    /// Weight decay, added to the gradient; 0 by default.
}

options! {
    /// Options of [`AdamW`].
    AdamWOptions, "adamw", decoupled true, 0.01,
    /// Decoupled weight decay: a step takes away this share times the learning rate; 0.01 by
    /// default.
}

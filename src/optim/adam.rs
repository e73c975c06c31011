//! [`Adam`] and [`AdamW`].

use super::memory::{Memory, check_options, keeping_methods};
use super::{Decays, Optimizer, all};
use crate::autodiff::Gradients;
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::error::{Error, Result};
use crate::nn::Visit;
use crate::ops::UpdateOp;
use crate::tensor::Tensor;

const STATE: &[&str] = &["exp_avg", "exp_avg_sq"];

/// Adam (Kingma and Ba, 2015) as PyTorch's: [`UpdateOp::Adam`] is the formula. Its weight decay is added
/// to the gradient; [`AdamW`]'s is not.
///
/// The averages have the parameter's dtype: of 16-bit parameters small squares of gradients round to zero.
#[derive(Debug)]
pub struct Adam<B: Backend = CpuBackend> {
    options: AdamOptions,
    memory: Memory<B>,
}

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019) as PyTorch's: [`UpdateOp::Adam`] is the
/// formula.
///
/// ```
/// use swath::optim::{self, AdamW, AdamWOptions};
/// use swath::prelude::*;
///
/// // As GPTs are trained: biases and normalisations do not decay.
/// let optimizer: AdamW = AdamW::new(AdamWOptions {
///     learning_rate: 3e-3,
///     betas: [0.9, 0.95],
///     weight_decay: 0.1,
///     decays: optim::matrices,
///     ..Default::default()
/// })?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct AdamW<B: Backend = CpuBackend> {
    options: AdamWOptions,
    memory: Memory<B>,
}

macro_rules! options {
    ($(#[$doc:meta])* $Options:ident, $decay:literal, $(#[$decay_doc:meta])*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $Options {
            /// Learning rate; 1e-3 by default.
            pub learning_rate: f64,
            /// What is kept at each step of the running means of gradients and of their squares;
            /// 0.9 and 0.999 by default.
            pub betas: [f64; 2],
            /// Added to the root of the mean square; 1e-8 by default.
            pub eps: f64,
            $(#[$decay_doc])*
            pub weight_decay: f64,
            /// The parameters that it pulls; by default [`all`].
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
    };
}

options! {
    /// Options of [`Adam::new`].
    AdamOptions, 0.0,
    /// Pull towards 0, added to the gradient; 0 by default.
}

options! {
    /// Options of [`AdamW::new`].
    AdamWOptions, 0.01,
    /// Pull towards 0: a step takes away this share times the learning rate; 0.01 by default.
}

macro_rules! optimizer {
    ($Adam:ident, $Options:ident, $op:literal, $decoupled:literal) => {
        impl<B: Backend> $Adam<B> {
            /// With nothing remembered yet.
            ///
            /// # Errors
            /// [`Error::InvalidArgument`] for a number that is negative or not finite, and for a beta
            /// that is not below 1.
            pub fn new(options: $Options) -> Result<Self> {
                let $Options { learning_rate, betas, eps, weight_decay, .. } = options;
                check($op, learning_rate, betas, eps, weight_decay)?;
                Ok($Adam { options, memory: Memory::new($op, STATE) })
            }
        }

        impl<B: Backend> Optimizer<B> for $Adam<B> {
            fn step(&mut self, model: &mut dyn Visit<B>, grads: &Gradients<B>) -> Result<()> {
                let $Options { learning_rate, betas, eps, weight_decay, decays } = self.options;
                self.memory.step(model, grads, |path, shape, t| UpdateOp::Adam {
                    rate: learning_rate,
                    betas,
                    eps,
                    weight_decay: if decays(path, shape) { weight_decay } else { 0.0 },
                    decoupled: $decoupled,
                    step: t,
                })
            }

            keeping_methods!();
        }
    };
}

optimizer!(Adam, AdamOptions, "adam", false);
optimizer!(AdamW, AdamWOptions, "adamw", true);

fn check(op: &'static str, rate: f64, betas: [f64; 2], eps: f64, decay: f64) -> Result<()> {
    let [beta1, beta2] = betas;
    let numbers = [("learning_rate", rate), ("eps", eps), ("weight_decay", decay)];
    check_options(op, &numbers)?;
    check_options(op, &[("betas[0]", beta1), ("betas[1]", beta2)])?;
    if beta1 >= 1.0 || beta2 >= 1.0 {
        let reason = format!("betas are {beta1} and {beta2}, not below 1");
        return Err(Error::InvalidArgument { op, reason });
    }
    Ok(())
}

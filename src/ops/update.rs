//! Steps of optimizers in one pass, as data.

/// One step of an optimizer for a parameter p with gradient g, in one pass over memory.
///
/// The formulas are PyTorch's. State tensors have the shape and dtype of the parameter and are
/// initially zeros.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum UpdateOp {
    /// `g += weight_decay p`; with momentum `b = momentum b + (1 - dampening) g` (the first step:
    /// `b = g`) and `g = b`, or `g += momentum b` with Nesterov; `p -= rate g`.
    /// State: b if `momentum` is not 0, else none.
    Sgd {
        /// Learning rate.
        rate: f64,
        /// Momentum, the decay rate of the accumulated gradients; 0 disables it.
        momentum: f64,
        /// Dampening: a new gradient is multiplied by `1 - dampening` before it is accumulated.
        dampening: f64,
        /// Weight decay, added to the gradient.
        weight_decay: f64,
        /// Nesterov's momentum.
        nesterov: bool,
        /// True for the first step, for which b is not initialized.
        first: bool,
    },
    /// `m = β₁ m + (1 - β₁) g`, `v = β₂ v + (1 - β₂) g²`,
    /// `p -= rate / (1 - β₁ᵗ) · m / (√v / √(1 - β₂ᵗ) + ε)`. State: m, v.
    Adam {
        /// Learning rate.
        rate: f64,
        /// β₁ and β₂.
        betas: [f64; 2],
        /// ε.
        eps: f64,
        /// Weight decay: added to the gradient, or, if decoupled, applied first as
        /// `p *= 1 - rate weight_decay`.
        weight_decay: f64,
        /// True for AdamW's decoupled decay, false for Adam's.
        decoupled: bool,
        /// t, the number of this step, from 1.
        step: u64,
    },
}

impl UpdateOp {
    /// The name of the optimizer, for error messages.
    pub const fn name(&self) -> &'static str {
        match self {
            UpdateOp::Sgd { .. } => "sgd",
            UpdateOp::Adam { decoupled: false, .. } => "adam",
            UpdateOp::Adam { decoupled: true, .. } => "adamw",
        }
    }

    /// Number of state tensors.
    pub const fn states(&self) -> usize {
        match self {
            UpdateOp::Sgd { momentum, .. } => (*momentum != 0.0) as usize,
            UpdateOp::Adam { .. } => 2,
        }
    }
}

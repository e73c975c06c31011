//! Ops that make one pass of what would be many: what they compute, as data.
//!
//! Each has a definition in simpler ops (`tensor/fused/`), which the reference backend's own and the
//! second-order derivatives come from; what a backend does in one pass must agree with it.

use super::{UnaryOp, Window};

/// The function after a bias in [`FusedOp::BiasActivation`] and [`FusedOp::LinearActivation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// `max(z, 0)`.
    Relu,
    /// `z Φ(z)`, Φ the normal distribution function.
    Gelu,
    /// `z Φ(z)` by its tanh form.
    GeluTanh,
    /// `z σ(z)`.
    Silu,
    /// `σ(z)`.
    Sigmoid,
    /// `tanh(z)`.
    Tanh,
}

impl Activation {
    /// Every function.
    pub const ALL: [Activation; 6] = [
        Activation::Relu,
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::Silu,
        Activation::Sigmoid,
        Activation::Tanh,
    ];

    /// Its row of the op table.
    pub const fn op(self) -> UnaryOp {
        match self {
            Activation::Relu => UnaryOp::Relu,
            Activation::Gelu => UnaryOp::Gelu,
            Activation::GeluTanh => UnaryOp::GeluTanh,
            Activation::Silu => UnaryOp::Silu,
            Activation::Sigmoid => UnaryOp::Sigmoid,
            Activation::Tanh => UnaryOp::Tanh,
        }
    }
}

/// Which elements a dropout zeroes: element i where word i of the generator with this seed and
/// stream is below `p · 2³²`. Nothing is stored, the mask is computed again where it is needed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DropoutMask {
    /// Probability of a zero, in `[0, 1)`.
    pub p: f64,
    /// Seed of the generator.
    pub seed: u64,
    /// Stream of the generator: another one for each mask.
    pub stream: u64,
}

/// Scaled dot-product attention, apart from its tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionParameters {
    /// Factor of `q·kᵀ`.
    pub scale: f64,
    /// Position i sees positions `0..=i + (s - t)` of `s` keys for `t` queries, and no later ones.
    pub causal: bool,
    /// Dropout of the weights, whose row-major index `[…, t, s]` counts the elements.
    pub dropout: Option<DropoutMask>,
}

/// An op of several operands or results, or of several passes in one. Most are of whole rows: a row is
/// the last axis, of extent `n`.
///
/// | op | operands | results |
/// |---|---|---|
/// | `Softmax`, `LogSoftmax` | x `[…, n]` | y `[…, n]` |
/// | `SoftmaxGrad`, `LogSoftmaxGrad` | g, y `[…, n]` | gradient of x |
/// | `CrossEntropy` | logits `[r, n]`, targets `[r]` (`I64`) | losses, largest logits, Σ e^(logit - largest) - 1, all `[r]` |
/// | `CrossEntropyGrad` | g `[r]`, logits, targets, largest logits, Σ e^(logit - largest) - 1 | gradient of logits |
/// | `LayerNorm` | x `[…, n]`, weight? `[n]`, bias? `[n]` | y, mean `[…, 1]`, 1/deviation `[…, 1]` |
/// | `LayerNormGrad` | g, x, weight?, 1/deviation | gradients of x, weight `[n]`, bias `[n]` |
/// | `RmsNorm` | x `[…, n]`, weight? `[n]` | y, 1/rms `[…, 1]` |
/// | `RmsNormGrad` | g, x, weight?, 1/rms | gradients of x, weight `[n]` |
/// | `BiasActivation` | x `[…, n]`, bias `[n]` | f(x + bias) |
/// | `BiasActivationGrad` | g, x `[…, n]`, bias `[n]` | gradient of x + bias |
/// | `Dropout` | x | x / (1 - p) where kept, else 0 · x |
/// | `Attention` | q `[…, t, d]`, k `[…, s, d]`, v `[…, s, e]`, mask? `[…, t, s]` | y `[…, t, e]`, largest scores m and 1/Σ e^(score - m) `[…, t]`, y in the statistics' dtype |
/// | `AttentionGrad` | g, q, k, v, mask?, y in the statistics' dtype, m, 1/Σ e^(score - m) | gradients of q, k, v |
/// | `Linear` | x `[…, k]`, weight `[n, k]`, bias? `[n]` | x·weightᵀ + bias `[…, n]` |
/// | `LinearActivation` | as of `Linear` | f(z) `[…, n]`, and, if kept, z = x·weightᵀ + bias |
/// | `SinCos` | x of any shape | sine, cosine |
/// | `Im2col` | images `[n, c, h, w]` | columns `[n, c · kh · kw, oh · ow]` |
/// | `Col2im` | columns | images |
/// | `Dot` | a `[…, n]`, b `[…, n]` | `Σ a b` of each row `[…]` |
///
/// Operands with `?` may be absent. Floats of one op have one dtype; means and other statistics of
/// 16-bit floats are `F32`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum FusedOp {
    /// `e^(x - max) / Σ e^(x - max)`.
    Softmax,
    /// `y (g - Σ g y)`.
    SoftmaxGrad,
    /// `x - max - log Σ e^(x - max)`.
    LogSoftmax,
    /// `g - e^y Σ g`.
    LogSoftmaxGrad,
    /// `log Σ e^x - (1 - ε) x[target] - ε mean(x)` with label smoothing ε; 0 where the target is
    /// `ignore_index`.
    CrossEntropy {
        /// The target that counts for nothing.
        ignore_index: Option<i64>,
        /// ε: how much of the target's probability is spread over all classes.
        label_smoothing: f64,
    },
    /// `g (softmax(x) - (1 - ε) onehot(target) - ε/n)`; 0 where ignored.
    CrossEntropyGrad {
        /// As in [`FusedOp::CrossEntropy`].
        ignore_index: Option<i64>,
        /// As in [`FusedOp::CrossEntropy`].
        label_smoothing: f64,
    },
    /// `(x - mean) / √(variance + ε) · weight + bias`.
    LayerNorm {
        /// ε.
        eps: f64,
    },
    /// The three gradients of [`FusedOp::LayerNorm`].
    LayerNormGrad,
    /// `x / √(mean(x²) + ε) · weight`.
    RmsNorm {
        /// ε.
        eps: f64,
    },
    /// The two gradients of [`FusedOp::RmsNorm`].
    RmsNormGrad,
    /// `f(x + bias)`.
    BiasActivation(Activation),
    /// `g f′(x + bias)`.
    BiasActivationGrad(Activation),
    /// Zeroes elements at random and scales the others up.
    Dropout(DropoutMask),
    /// `softmax(scale q·kᵀ + mask)·v`.
    Attention(AttentionParameters),
    /// The three gradients of [`FusedOp::Attention`].
    AttentionGrad(AttentionParameters),
    /// A product with a transposed matrix, and a bias.
    Linear,
    /// [`FusedOp::Linear`] and a function of its elements.
    LinearActivation {
        /// f.
        activation: Activation,
        /// Whether z is a second result.
        keep_sums: bool,
    },
    /// Sine and cosine of every element.
    SinCos,
    /// The windows of images as columns; zeros outside. Of any dtype.
    Im2col(Window),
    /// Every element of an image the sum of those that [`FusedOp::Im2col`] takes from it.
    Col2im {
        /// Height and width of the images.
        image: [usize; 2],
        /// The windows.
        window: Window,
    },
    /// The sums of the products of two rows' elements.
    Dot,
}

impl FusedOp {
    /// The method's name, which errors give.
    pub const fn name(&self) -> &'static str {
        match self {
            FusedOp::Softmax => "softmax",
            FusedOp::SoftmaxGrad => "softmax_grad",
            FusedOp::LogSoftmax => "log_softmax",
            FusedOp::LogSoftmaxGrad => "log_softmax_grad",
            FusedOp::CrossEntropy { .. } => "cross_entropy",
            FusedOp::CrossEntropyGrad { .. } => "cross_entropy_grad",
            FusedOp::LayerNorm { .. } => "layer_norm",
            FusedOp::LayerNormGrad => "layer_norm_grad",
            FusedOp::RmsNorm { .. } => "rms_norm",
            FusedOp::RmsNormGrad => "rms_norm_grad",
            FusedOp::BiasActivation(_) => "bias_activation",
            FusedOp::BiasActivationGrad(_) => "bias_activation_grad",
            FusedOp::Dropout(_) => "dropout",
            FusedOp::Attention(_) => "scaled_dot_product_attention",
            FusedOp::AttentionGrad(_) => "scaled_dot_product_attention_grad",
            FusedOp::Linear => "linear",
            FusedOp::LinearActivation { .. } => "linear_activation",
            FusedOp::SinCos => "sincos",
            FusedOp::Im2col(_) => "im2col",
            FusedOp::Col2im { .. } => "col2im",
            FusedOp::Dot => "dot",
        }
    }
}

/// A step of an optimizer on one parameter p with gradient g, in one pass over memory.
///
/// The formulas are PyTorch's. State tensors have the parameter's shape and dtype and begin as zeros.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum UpdateOp {
    /// `g += weight_decay p`; with momentum `b = momentum b + (1 - dampening) g` (the first step:
    /// `b = g`) and `g = b`, or `g += momentum b` with Nesterov; `p -= rate g`.
    /// State: b if `momentum` is not 0, else none.
    Sgd {
        /// Learning rate.
        rate: f64,
        /// Decay of the running sum of gradients; 0: no sum.
        momentum: f64,
        /// What a new gradient loses before it is added to the sum.
        dampening: f64,
        /// Pull towards 0, added to the gradient.
        weight_decay: f64,
        /// Looks one step of the momentum ahead.
        nesterov: bool,
        /// True for the first step, when b holds nothing yet.
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
        /// Pull towards 0: added to the gradient, or, decoupled, `p *= 1 - rate weight_decay` first.
        weight_decay: f64,
        /// AdamW's decay instead of Adam's.
        decoupled: bool,
        /// t, the number of this step, from 1.
        step: u64,
    },
}

impl UpdateOp {
    /// The optimizer's name, which errors give.
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

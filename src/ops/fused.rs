//! Ops that make one pass of what would be many: what they compute, as data.
//!
//! Each is defined once as a composite of simpler ops (`tensor/fused/`): a backend without a kernel
//! runs that, second-order derivatives differentiate it, and a kernel must agree with it.

use super::{Convolution, Pooling, UnaryOp, Window};

/// The function after a bias in [`FusedOp::BiasActivation`] and [`FusedOp::Linear`].
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

/// An op of several operands or results, or of several passes in one, with its operands: what a
/// [`Backend`](crate::Backend) may compute by a kernel of its own. Most are of whole rows: a row is the
/// last axis, of extent `n`.
///
/// Operands have any layout. Floats of one op have one dtype; statistics (largest, mean, 1/deviation
/// and their kin) of 16-bit floats are `F32`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FusedOp<'a, T> {
    /// `e^(x - max) / Σ e^(x - max)`, or its logarithm `x - max - log Σ e^(x - max)`. Result: y `[…, n]`.
    Softmax {
        /// `[…, n]`.
        x: &'a T,
        /// True for the logarithm.
        log: bool,
    },
    /// `y (g - Σ g y)`; of the logarithm `g - e^y Σ g`. Result: gradient of x.
    SoftmaxGrad {
        /// Upstream gradient `[…, n]`.
        g: &'a T,
        /// The result of [`FusedOp::Softmax`].
        y: &'a T,
        /// As in [`FusedOp::Softmax`].
        log: bool,
    },
    /// `log Σ e^x - (1 - ε) x[target] - ε mean(x)` with label smoothing ε; 0 where the target is
    /// `ignore_index`. Results, all `[r]`: losses, largest logits, `Σ e^(logit - largest) - 1`.
    CrossEntropy {
        /// `[r, n]`.
        logits: &'a T,
        /// `[r]`, of dtype `I64`.
        targets: &'a T,
        /// Rows with this target have loss 0.
        ignore_index: Option<i64>,
        /// ε: how much of the target's probability is spread over all classes.
        label_smoothing: f64,
    },
    /// `g (softmax(x) - (1 - ε) onehot(target) - ε/n)`; 0 where ignored. Result: gradient of the logits.
    CrossEntropyGrad {
        /// Upstream gradient `[r]`.
        g: &'a T,
        /// As in [`FusedOp::CrossEntropy`].
        logits: &'a T,
        /// As in [`FusedOp::CrossEntropy`].
        targets: &'a T,
        /// Second result of [`FusedOp::CrossEntropy`].
        largest: &'a T,
        /// Third result of [`FusedOp::CrossEntropy`].
        rest: &'a T,
        /// As in [`FusedOp::CrossEntropy`].
        ignore_index: Option<i64>,
        /// As in [`FusedOp::CrossEntropy`].
        label_smoothing: f64,
    },
    /// `(x - mean) / √(variance + ε) · weight + bias`. Results: y `[…, n]`, mean `[…, 1]`, 1/deviation
    /// `[…, 1]`.
    LayerNorm {
        /// `[…, n]`.
        x: &'a T,
        /// `[n]`.
        weight: Option<&'a T>,
        /// `[n]`.
        bias: Option<&'a T>,
        /// ε.
        eps: f64,
    },
    /// Gradients of [`FusedOp::LayerNorm`]. Results: of x, of weight `[n]`, of bias `[n]`.
    LayerNormGrad {
        /// Upstream gradient `[…, n]`.
        g: &'a T,
        /// `[…, n]`.
        x: &'a T,
        /// `[n]`.
        weight: Option<&'a T>,
        /// Third result of [`FusedOp::LayerNorm`].
        reciprocal_deviation: &'a T,
    },
    /// `x / √(mean(x²) + ε) · weight`. Results: y `[…, n]`, 1/rms `[…, 1]`.
    RmsNorm {
        /// `[…, n]`.
        x: &'a T,
        /// `[n]`.
        weight: Option<&'a T>,
        /// ε.
        eps: f64,
    },
    /// Gradients of [`FusedOp::RmsNorm`]. Results: of x, of weight `[n]`.
    RmsNormGrad {
        /// Upstream gradient `[…, n]`.
        g: &'a T,
        /// `[…, n]`.
        x: &'a T,
        /// `[n]`.
        weight: Option<&'a T>,
        /// Second result of [`FusedOp::RmsNorm`].
        reciprocal_rms: &'a T,
    },
    /// `f(x + bias)`. Result: `[…, n]`.
    BiasActivation {
        /// `[…, n]`.
        x: &'a T,
        /// `[n]`.
        bias: &'a T,
        /// f.
        activation: Activation,
    },
    /// `g f′(x + bias)`. Result: gradient of x + bias `[…, n]`.
    BiasActivationGrad {
        /// Upstream gradient `[…, n]`.
        g: &'a T,
        /// As in [`FusedOp::BiasActivation`].
        x: &'a T,
        /// As in [`FusedOp::BiasActivation`].
        bias: &'a T,
        /// f.
        activation: Activation,
    },
    /// `x / (1 - p)` where the mask keeps an element, else `0 · x`. Result: of x's shape.
    Dropout {
        /// Of any shape.
        x: &'a T,
        /// Which elements are kept.
        mask: DropoutMask,
    },
    /// `softmax(scale q·kᵀ + mask)·v`. Results: y `[…, t, e]`, largest scores m `[…, t]`,
    /// `1/Σ e^(score - m)` `[…, t]`, y in the statistics' dtype.
    Attention {
        /// Queries `[…, t, d]`.
        q: &'a T,
        /// Keys `[…, s, d]`.
        k: &'a T,
        /// Values `[…, s, e]`.
        v: &'a T,
        /// `[…, t, s]`, `Bool` or of the queries' dtype.
        mask: Option<&'a T>,
        /// Scale, causality, dropout.
        parameters: AttentionParameters,
    },
    /// Gradients of [`FusedOp::Attention`]. Results: of q, k, v.
    AttentionGrad {
        /// Upstream gradient `[…, t, e]`.
        g: &'a T,
        /// As in [`FusedOp::Attention`].
        q: &'a T,
        /// As in [`FusedOp::Attention`].
        k: &'a T,
        /// As in [`FusedOp::Attention`].
        v: &'a T,
        /// As in [`FusedOp::Attention`].
        mask: Option<&'a T>,
        /// Second result of [`FusedOp::Attention`].
        largest: &'a T,
        /// Third result of [`FusedOp::Attention`].
        inverse: &'a T,
        /// Fourth result of [`FusedOp::Attention`].
        y: &'a T,
        /// As in [`FusedOp::Attention`].
        parameters: AttentionParameters,
    },
    /// `f(z)` of z = x·weightᵀ + bias `[…, n]`. Results: f(z), or z without an activation; then z, if
    /// `keep_sums`.
    Linear {
        /// `[…, k]`.
        x: &'a T,
        /// `[n, k]`.
        weight: &'a T,
        /// `[n]`.
        bias: Option<&'a T>,
        /// f.
        activation: Option<Activation>,
        /// True if z is a second result.
        keep_sums: bool,
    },
    /// Results: sine and cosine of every element.
    SinCos {
        /// Of any shape.
        x: &'a T,
    },
    /// The windows of images as columns, zeros outside; of any dtype. Result: columns
    /// `[n, c · kh · kw, oh · ow]`.
    Im2col {
        /// Images `[n, c, h, w]`.
        x: &'a T,
        /// The windows.
        window: Window,
    },
    /// Columns added up to images: every element is the sum of those that [`FusedOp::Im2col`] takes from
    /// it. Result: images `[n, c, h, w]`.
    Col2im {
        /// Columns `[n, c · kh · kw, oh · ow]`.
        x: &'a T,
        /// Height and width of the images.
        image: [usize; 2],
        /// The windows.
        window: Window,
    },
    /// The convolution of images with filters, `f(weight · windows(x) + bias)`. Images have one to three
    /// axes `…`. Result: `[n, o, …]`.
    Conv {
        /// Images `[n, c, …]`.
        x: &'a T,
        /// Filters `[o, c / groups, …]`.
        weight: &'a T,
        /// `[o]`.
        bias: Option<&'a T>,
        /// f.
        activation: Option<Activation>,
        /// How windows slide.
        convolution: Convolution,
    },
    /// The gradient of the images of [`FusedOp::Conv`], the transposed convolution. Result: `[n, c, …]`.
    ConvTranspose {
        /// Upstream gradient `[n, o, …]`.
        g: &'a T,
        /// As in [`FusedOp::Conv`].
        weight: &'a T,
        /// Extents of the images.
        image: [usize; 3],
        /// As in [`FusedOp::Conv`].
        convolution: Convolution,
    },
    /// The gradient of the filters of [`FusedOp::Conv`]. Result: `[o, c / groups, …]`.
    ConvWeightGrad {
        /// Upstream gradient `[n, o, …]`.
        g: &'a T,
        /// As in [`FusedOp::Conv`].
        x: &'a T,
        /// Extents of the filters.
        kernel: [usize; 3],
        /// As in [`FusedOp::Conv`].
        convolution: Convolution,
    },
    /// The largest pixel of each window, the first of equal ones; NaN if there is one. Results: `[n, c, …]`,
    /// positions of these pixels in their images, of dtype `I64`.
    MaxPool {
        /// Images `[n, c, …]`.
        x: &'a T,
        /// The windows.
        pooling: Pooling,
    },
    /// The mean of each window. Result: `[n, c, …]`.
    AvgPool {
        /// Images `[n, c, …]`.
        x: &'a T,
        /// The windows.
        pooling: Pooling,
    },
    /// The gradient of the images of [`FusedOp::AvgPool`]. Result: `[n, c, …]`.
    AvgPoolGrad {
        /// Upstream gradient `[n, c, …]`.
        g: &'a T,
        /// Extents of the images.
        image: [usize; 3],
        /// The windows.
        pooling: Pooling,
    },
    /// `Σ a b` of each row. Result: `[…]`.
    Dot {
        /// `[…, n]`.
        a: &'a T,
        /// `[…, n]`.
        b: &'a T,
    },
}

impl<T> FusedOp<'_, T> {
    /// The method's name, which errors give.
    pub const fn name(&self) -> &'static str {
        match self {
            FusedOp::Softmax { log: false, .. } => "softmax",
            FusedOp::Softmax { log: true, .. } => "log_softmax",
            FusedOp::SoftmaxGrad { log: false, .. } => "softmax_grad",
            FusedOp::SoftmaxGrad { log: true, .. } => "log_softmax_grad",
            FusedOp::CrossEntropy { .. } => "cross_entropy",
            FusedOp::CrossEntropyGrad { .. } => "cross_entropy_grad",
            FusedOp::LayerNorm { .. } => "layer_norm",
            FusedOp::LayerNormGrad { .. } => "layer_norm_grad",
            FusedOp::RmsNorm { .. } => "rms_norm",
            FusedOp::RmsNormGrad { .. } => "rms_norm_grad",
            FusedOp::BiasActivation { .. } => "bias_activation",
            FusedOp::BiasActivationGrad { .. } => "bias_activation_grad",
            FusedOp::Dropout { .. } => "dropout",
            FusedOp::Attention { .. } => "scaled_dot_product_attention",
            FusedOp::AttentionGrad { .. } => "scaled_dot_product_attention_grad",
            FusedOp::Linear { activation: None, .. } => "linear",
            FusedOp::Linear { activation: Some(_), .. } => "linear_activation",
            FusedOp::SinCos { .. } => "sincos",
            FusedOp::Im2col { .. } => "im2col",
            FusedOp::Col2im { .. } => "col2im",
            FusedOp::Conv { .. } => "conv",
            FusedOp::ConvTranspose { .. } => "conv_transpose",
            FusedOp::ConvWeightGrad { .. } => "conv_weight_grad",
            FusedOp::MaxPool { .. } => "max_pool",
            FusedOp::AvgPool { .. } => "avg_pool",
            FusedOp::AvgPoolGrad { .. } => "avg_pool_grad",
            FusedOp::Dot { .. } => "dot",
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

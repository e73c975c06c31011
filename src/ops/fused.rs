//! Fused ops, which replace several passes over memory by one, as data.
//!
//! Each is defined by a composite of simpler ops (`tensor/fused/`), which runs on backends without
//! a kernel and is differentiated for second derivatives. Kernels must agree with it.

use super::{Geometry, UnaryOp};

/// An activation function.
///
/// Those with an [`op`](Activation::op) can be part of a fused op, such as [`FusedOp::Linear`]. The others are
/// computed after it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Activation {
    /// `max(z, 0)`.
    Relu,
    /// `z Φ(z)`, where Φ is the normal cumulative distribution function.
    Gelu,
    /// `z Φ(z)` in its tanh approximation.
    GeluTanh,
    /// `z σ(z)`.
    Silu,
    /// `σ(z)`.
    Sigmoid,
    /// `tanh(z)`.
    Tanh,
    /// `min(max(z, 0), 6)`.
    Relu6,
    /// `λ z` where `z ≥ 0`, else `λ α (e^z - 1)`, with the constants of [`UnaryOp::Selu`].
    Selu,
    /// `z tanh(softplus(z))`.
    Mish,
    /// `ln(1 + e^z)`.
    Softplus,
    /// `ln σ(z)`.
    LogSigmoid,
    /// `min(max(z + 3, 0), 6) / 6`.
    Hardsigmoid,
    /// `z min(max(z + 3, 0), 6) / 6`.
    Hardswish,
    /// `z` where `z ≥ 0`, else `a z` with this slope a.
    LeakyRelu(f64),
    /// `z` where `z ≥ 0`, else `a (e^z - 1)` with this scale a.
    Elu(f64),
}

impl Activation {
    /// Every activation, those with a parameter once.
    pub const ALL: [Activation; 15] = [
        Activation::Relu,
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::Silu,
        Activation::Sigmoid,
        Activation::Tanh,
        Activation::Relu6,
        Activation::Selu,
        Activation::Mish,
        Activation::Softplus,
        Activation::LogSigmoid,
        Activation::Hardsigmoid,
        Activation::Hardswish,
        Activation::LeakyRelu(0.01),
        Activation::Elu(1.0),
    ];

    /// The unary op of the activation; `None` if it has a parameter.
    pub const fn op(self) -> Option<UnaryOp> {
        Some(match self {
            Activation::Relu => UnaryOp::Relu,
            Activation::Gelu => UnaryOp::Gelu,
            Activation::GeluTanh => UnaryOp::GeluTanh,
            Activation::Silu => UnaryOp::Silu,
            Activation::Sigmoid => UnaryOp::Sigmoid,
            Activation::Tanh => UnaryOp::Tanh,
            Activation::Relu6 => UnaryOp::Relu6,
            Activation::Selu => UnaryOp::Selu,
            Activation::Mish => UnaryOp::Mish,
            Activation::Softplus => UnaryOp::Softplus,
            Activation::LogSigmoid => UnaryOp::LogSigmoid,
            Activation::Hardsigmoid => UnaryOp::Hardsigmoid,
            Activation::Hardswish => UnaryOp::Hardswish,
            Activation::LeakyRelu(_) | Activation::Elu(_) => return None,
        })
    }
}

/// The mask of a dropout: element i is zeroed if word i of the generator with this seed and stream
/// is below `p · 2³²`. The mask is not stored but recomputed when needed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DropoutMask {
    /// Probability of a zero, in `[0, 1)`.
    pub p: f64,
    /// Seed of the random number generator.
    pub seed: u64,
    /// Stream of the generator, different for each mask.
    pub stream: u64,
}

/// The parameters of scaled dot-product attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionParameters {
    /// Factor of `q·kᵀ`.
    pub scale: f64,
    /// If true, query i of t attends to keys `0..=i + (s - t)` of s only.
    pub causal: bool,
    /// Dropout of the attention weights, with elements numbered in row-major order of `[…, t, s]`.
    pub dropout: Option<DropoutMask>,
}

/// An op with several operands or results, or of several passes in one, with its operands: an op
/// that a [`Backend`](crate::Backend) may have a kernel for. Most work on rows: a row is the last
/// axis, of extent `n`.
///
/// Operands have any layout. The floats of one op have the same dtype; the statistics (maximum,
/// mean, 1/deviation and similar) of 16-bit floats are `F32`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FusedOp<'a, T> {
    /// Softmax, `e^(x - max) / Σ e^(x - max)`, or its logarithm, `x - max - log Σ e^(x - max)`.
    /// Result: y `[…, n]`.
    Softmax {
        /// `[…, n]`.
        x: &'a T,
        /// True for the logarithm.
        log: bool,
    },
    /// Gradient of softmax, `y (g - Σ g y)`, or of its logarithm, `g - e^y Σ g`. Result: gradient
    /// of x.
    SoftmaxGrad {
        /// Upstream gradient `[…, n]`.
        g: &'a T,
        /// The result of [`FusedOp::Softmax`].
        y: &'a T,
        /// As in [`FusedOp::Softmax`].
        log: bool,
    },
    /// Cross-entropy with label smoothing ε, `log Σ e^x - (1 - ε) x[target] - ε mean(x)`; 0 where
    /// the target is `ignore_index`. Results, all `[…]`: losses, maximum logits,
    /// `Σ e^(logit - maximum) - 1`.
    CrossEntropy {
        /// `[…, n]`.
        logits: &'a T,
        /// `[…]`, of dtype `I64`.
        targets: &'a T,
        /// Rows with this target have loss 0.
        ignore_index: Option<i64>,
        /// ε, the part of the target's probability that is spread evenly over all classes.
        label_smoothing: f64,
    },
    /// Gradient of cross-entropy, `g (softmax(x) - (1 - ε) onehot(target) - ε/n)`; 0 for ignored
    /// rows. Result: gradient of the logits.
    CrossEntropyGrad {
        /// Upstream gradient `[…]`.
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
    /// Layer normalization, `(x - mean) / √(variance + ε) · weight + bias`. Results: y `[…, n]`,
    /// mean `[…, 1]`, 1/deviation `[…, 1]`.
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
    /// Gradients of [`FusedOp::LayerNorm`]. Results: gradients of x, of weight `[n]`, of bias
    /// `[n]`.
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
    /// Root-mean-square normalization, `x / √(mean(x²) + ε) · weight`. Results: y `[…, n]`, 1/rms
    /// `[…, 1]`.
    RmsNorm {
        /// `[…, n]`.
        x: &'a T,
        /// `[n]`.
        weight: Option<&'a T>,
        /// ε.
        eps: f64,
    },
    /// Gradients of [`FusedOp::RmsNorm`]. Results: gradients of x, of weight `[n]`.
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
    /// Activation of a sum, `f(x + bias)`. Result: `[…, n]`.
    BiasActivation {
        /// `[…, n]`.
        x: &'a T,
        /// `[n]`.
        bias: &'a T,
        /// f, one with an [`Activation::op`].
        activation: Activation,
    },
    /// Gradient of [`FusedOp::BiasActivation`], `g f′(x + bias)`. Result: gradient of x + bias
    /// `[…, n]`.
    BiasActivationGrad {
        /// Upstream gradient `[…, n]`.
        g: &'a T,
        /// As in [`FusedOp::BiasActivation`].
        x: &'a T,
        /// As in [`FusedOp::BiasActivation`].
        bias: &'a T,
        /// f, one with an [`Activation::op`].
        activation: Activation,
    },
    /// Dropout: `x / (1 - p)` where the mask keeps an element, else `0 · x`. Result: of the shape
    /// of x.
    Dropout {
        /// A tensor of any shape.
        x: &'a T,
        /// The mask.
        mask: DropoutMask,
    },
    /// Attention, `softmax(scale q·kᵀ + mask)·v`. Results: y `[…, t, e]`, maximum scores m
    /// `[…, t]`, `1/Σ e^(score - m)` `[…, t]`, and y in the dtype of the statistics.
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
    /// Gradients of [`FusedOp::Attention`]. Results: gradients of q, k, v.
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
    /// Linear layer: `f(z)` of `z = x·weightᵀ + bias` `[…, n]`. Results: f(z), or z without an
    /// activation; then z, if `keep_sums`.
    Linear {
        /// `[…, k]`.
        x: &'a T,
        /// `[n, k]`.
        weight: &'a T,
        /// `[n]`.
        bias: Option<&'a T>,
        /// f, one with an [`Activation::op`].
        activation: Option<Activation>,
        /// True if z is a second result.
        keep_sums: bool,
    },
    /// Sine and cosine. Results: sine and cosine of every element.
    SinCos {
        /// A tensor of any shape.
        x: &'a T,
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
        /// f, one with an [`Activation::op`].
        activation: Option<Activation>,
        /// The windows, of which the result has all.
        geometry: Geometry,
        /// Number of groups of channels: each group of output channels reads its own group of input channels. Not 0.
        groups: usize,
    },
    /// The gradient of the images of [`FusedOp::Conv`], the transposed convolution. Result: `[n, c, …]`.
    ConvTranspose {
        /// Upstream gradient `[n, o, …]`.
        g: &'a T,
        /// As in [`FusedOp::Conv`].
        weight: &'a T,
        /// As in [`FusedOp::Conv`].
        geometry: Geometry,
        /// As in [`FusedOp::Conv`].
        groups: usize,
    },
    /// The gradient of the filters of [`FusedOp::Conv`]. Result: `[o, c / groups, …]`.
    ConvWeightGrad {
        /// Upstream gradient `[n, o, …]`.
        g: &'a T,
        /// As in [`FusedOp::Conv`].
        x: &'a T,
        /// As in [`FusedOp::Conv`].
        geometry: Geometry,
        /// As in [`FusedOp::Conv`].
        groups: usize,
    },
    /// The largest pixel of each window, the first of equal ones; NaN if there is one. Results: `[n, c, …]`
    /// and, if wanted, positions of these pixels in their images, of dtype `I64`.
    MaxPool {
        /// Images `[n, c, …]`.
        x: &'a T,
        /// The windows, each with a pixel of the image.
        geometry: Geometry,
        /// True if positions are wanted.
        with_positions: bool,
    },
    /// The mean of each window. Result: `[n, c, …]`.
    AvgPool {
        /// Images `[n, c, …]`.
        x: &'a T,
        /// The windows.
        geometry: Geometry,
        /// True if padding counts in the divisor.
        count_include_pad: bool,
    },
    /// The gradient of the images of [`FusedOp::AvgPool`]. Result: `[n, c, …]`.
    AvgPoolGrad {
        /// Upstream gradient `[n, c, …]`.
        g: &'a T,
        /// As in [`FusedOp::AvgPool`].
        geometry: Geometry,
        /// As in [`FusedOp::AvgPool`].
        count_include_pad: bool,
    },
    /// Inner product `Σ a b` of each row. Result: `[…]`.
    Dot {
        /// `[…, n]`.
        a: &'a T,
        /// `[…, n]`.
        b: &'a T,
    },
}

impl<T> FusedOp<'_, T> {
    /// The name of the method, for error messages.
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

/// Evaluates an expression for each kind of field of every op: `operand` and `optional` are functions of an operand,
/// all other fields are copied.
macro_rules! map_fields {
    ($op:expr, $f:ident; $($Variant:ident {
        $($operand:ident),*; $($optional:ident),*; $($other:ident),*
    })*) => {
        match $op {
            $(FusedOp::$Variant { $($operand,)* $($optional,)* $($other),* } => FusedOp::$Variant {
                $($operand: $f(*$operand)?,)*
                $($optional: (*$optional).map(&mut $f).transpose()?,)*
                $($other: *$other),*
            },)*
        }
    };
}

impl<'a, T> FusedOp<'a, T> {
    /// The same op on other operands: for backends that forward it to another one.
    ///
    /// # Errors
    /// The first error of `f`.
    pub fn try_map<'b, U, E>(
        &self,
        mut f: impl FnMut(&'a T) -> Result<&'b U, E>,
    ) -> Result<FusedOp<'b, U>, E> {
        Ok(map_fields! { self, f;
            Softmax { x; ; log }
            SoftmaxGrad { g, y; ; log }
            CrossEntropy { logits, targets; ; ignore_index, label_smoothing }
            CrossEntropyGrad { g, logits, targets, largest, rest; ; ignore_index, label_smoothing }
            LayerNorm { x; weight, bias; eps }
            LayerNormGrad { g, x, reciprocal_deviation; weight;  }
            RmsNorm { x; weight; eps }
            RmsNormGrad { g, x, reciprocal_rms; weight;  }
            BiasActivation { x, bias; ; activation }
            BiasActivationGrad { g, x, bias; ; activation }
            Dropout { x; ; mask }
            Attention { q, k, v; mask; parameters }
            AttentionGrad { g, q, k, v, largest, inverse, y; mask; parameters }
            Linear { x, weight; bias; activation, keep_sums }
            SinCos { x; ;  }
            Conv { x, weight; bias; activation, geometry, groups }
            ConvTranspose { g, weight; ; geometry, groups }
            ConvWeightGrad { g, x; ; geometry, groups }
            MaxPool { x; ; geometry, with_positions }
            AvgPool { x; ; geometry, count_include_pad }
            AvgPoolGrad { g; ; geometry, count_include_pad }
            Dot { a, b; ;  }
        })
    }

    /// The operands, in the order of the fields, tensors that may be absent last.
    pub fn operands(&self) -> smallvec::SmallVec<[&'a T; 8]> {
        let mut operands = smallvec::SmallVec::new();
        let noted = self.try_map::<T, std::convert::Infallible>(|x| {
            operands.push(x);
            Ok(x)
        });
        let Ok(_) = noted;
        operands
    }
}

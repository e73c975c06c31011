//! [`TransformerBlock`].

use super::{
    Dropout, LayerNorm, LayerNormOptions, Linear, LinearOptions, Module, MultiHeadAttention,
    MultiHeadAttentionOptions, locate,
};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::Activation;
use crate::options::setters;
use crate::rng::Rng;
use crate::tensor::Tensor;

/// A transformer block that normalizes before each part (pre-norm), `[…, t, width]` to the same
/// shape:
///
/// ```text
/// x = x + dropout1(self_attn(norm1(x)))
/// x = x + dropout2(linear2(activation(linear1(norm2(x)))))
/// ```
///
/// The parts have the names of PyTorch's `TransformerEncoderLayer(norm_first=True)`, which has one
/// more dropout, after the activation.
///
/// ```
/// use swath::nn::{Module, TransformerBlock, TransformerBlockOptions};
/// use swath::prelude::*;
///
/// let mut rng = Rng::seed(1);
/// let options = TransformerBlockOptions::new().causal(true).dropout(0.1);
/// let block = TransformerBlock::with_options(8, 2, options, &mut rng)?;
/// let x = Tensor::<CpuBackend>::randn((1, 5, 8), &mut rng)?;
/// assert_eq!(block.forward(&x)?.dims(), [1, 5, 8]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct TransformerBlock<B: Backend = CpuBackend> {
    /// Normalization before the attention.
    pub norm1: LayerNorm<B>,
    /// Self-attention.
    pub self_attn: MultiHeadAttention<B>,
    /// Dropout of the output of the attention.
    pub dropout1: Dropout,
    /// Normalization before the feed-forward network.
    pub norm2: LayerNorm<B>,
    /// First layer of the feed-forward network, `[width]` to `[hidden]`.
    pub linear1: Linear<B>,
    /// Activation of the feed-forward network.
    pub activation: Activation,
    /// Second layer of the feed-forward network, `[hidden]` to `[width]`.
    pub linear2: Linear<B>,
    /// Dropout of the output of the feed-forward network.
    pub dropout2: Dropout,
}
crate::module!(TransformerBlock<B> {
    norm1, self_attn, dropout1, norm2, linear1, linear2, dropout2;
    skip activation
});

/// Options of [`TransformerBlock::with_options`].
#[derive(Clone, Copy, Debug)]
pub struct TransformerBlockOptions {
    /// Width of the hidden layer of the feed-forward network; four times the block's if `None`, the
    /// default.
    pub hidden: Option<usize>,
    /// Activation of the feed-forward network; [`Activation::GeluTanh`] by default.
    pub activation: Activation,
    /// True if a position attends to no later one; false by default.
    pub causal: bool,
    /// Dropout probability, of the attention weights and of the output of each part, in training; 0
    /// by default.
    pub dropout: f64,
    /// Added to the variance in the normalizations; 1e-5 by default.
    pub eps: f64,
    /// True, the default, for biases.
    pub bias: bool,
    /// dtype of the parameters; `F32` by default.
    pub dtype: DType,
}

impl Default for TransformerBlockOptions {
    fn default() -> Self {
        TransformerBlockOptions {
            hidden: None,
            activation: Activation::GeluTanh,
            causal: false,
            dropout: 0.0,
            eps: 1e-5,
            bias: true,
            dtype: DType::F32,
        }
    }
}

setters! {
    [] TransformerBlockOptions {
        @new;
        hidden: impl Into<Option<usize>>, into;
        activation: Activation;
        causal: bool;
        dropout: f64;
        eps: f64;
        bias: bool;
        dtype: DType;
    }
}

impl<B: Backend> TransformerBlock<B> {
    /// Creates a block with default options.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless `heads` divides `width`.
    pub fn new(width: usize, heads: usize, rng: &mut Rng) -> Result<Self> {
        TransformerBlock::with_options(width, heads, TransformerBlockOptions::default(), rng)
    }

    /// Creates a block with options.
    ///
    /// # Errors
    /// As for [`TransformerBlock::new`]; [`Error::InvalidArgument`] unless `0 <= dropout < 1`, and `eps` is finite and
    /// at least 0, and if the number of the activation is NaN.
    pub fn with_options(
        width: usize,
        heads: usize,
        options: TransformerBlockOptions,
        rng: &mut Rng,
    ) -> Result<Self> {
        let TransformerBlockOptions { hidden, activation, causal, dropout, eps, bias, dtype } =
            options;
        if let Activation::LeakyRelu(a) | Activation::Elu(a) = activation
            && a.is_nan()
        {
            let reason = format!("the number of an activation must not be NaN, got {activation:?}");
            return Err(Error::InvalidArgument { op: "transformer_block", reason });
        }
        let hidden = hidden.unwrap_or(width.saturating_mul(4));
        let attention = MultiHeadAttentionOptions { causal, dropout, bias, dtype };
        let norm = LayerNormOptions { weight: true, bias, eps, dtype };
        let linear = LinearOptions { bias, dtype };
        Ok(TransformerBlock {
            norm1: LayerNorm::with_options(width, norm)?,
            self_attn: MultiHeadAttention::with_options(width, heads, attention, rng)?,
            dropout1: Dropout::new(dropout, rng)?,
            norm2: LayerNorm::with_options(width, norm)?,
            linear1: Linear::with_options(width, hidden, linear, rng)?,
            activation,
            linear2: Linear::with_options(hidden, width, linear, rng)?,
            dropout2: Dropout::new(dropout, rng)?,
        })
    }

    /// Computes the output under an attention mask; see [`MultiHeadAttention::forward_masked`].
    ///
    /// # Errors
    /// Errors of the parts.
    pub fn forward_masked(&self, x: &Tensor<B>, mask: Option<&Tensor<B>>) -> Result<Tensor<B>> {
        let run = || {
            let mixed = self.self_attn.forward_masked(&self.norm1.forward(x)?, mask)?;
            let x = x.add(&self.dropout1.forward(&mixed)?)?;
            let hidden = self.linear1.forward_then(&self.norm2.forward(&x)?, self.activation)?;
            x.add(&self.dropout2.forward(&self.linear2.forward(&hidden)?)?)
        };
        run().map_err(|error| locate(self, error))
    }
}

impl<B: Backend> Module<B> for TransformerBlock<B> {
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        self.forward_masked(x, None)
    }
}

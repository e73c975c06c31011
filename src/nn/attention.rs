//! [`MultiHeadAttention`].

use super::{Dropout, Linear, LinearOptions, Module, init};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::rng::Rng;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor::fused::attention::Attention;

/// Scaled dot-product attention of several heads, between a projection of the inputs to queries, keys
/// and values and one of the heads' results: `[…, t, width]` to the same shape.
///
/// Parameters are named and begin as PyTorch's: the in-projection by [`init::xavier_uniform`] as one
/// matrix, the out-projection uniform in `±1/√width`, biases 0.
///
/// ```
/// use swath::nn::{Module, MultiHeadAttention, MultiHeadAttentionOptions};
/// use swath::prelude::*;
///
/// let mut rng = Rng::seed(1);
/// let options = MultiHeadAttentionOptions { causal: true, ..Default::default() };
/// let attention = MultiHeadAttention::with_options(8, 2, options, &mut rng)?;
/// let x = Tensor::<CpuBackend>::randn((1, 5, 8), &mut rng)?;
/// assert_eq!(attention.forward(&x)?.dims(), [1, 5, 8]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct MultiHeadAttention<B: Backend = CpuBackend> {
    /// `[3 width, width]`: the weights of queries, keys and values, one below the other.
    pub in_proj_weight: Tensor<B>,
    /// `[3 width]`.
    pub in_proj_bias: Option<Tensor<B>>,
    /// `[width]` to `[width]`.
    pub out_proj: Linear<B>,
    /// Dropout of the attention weights.
    pub dropout: Dropout,
    /// Number of heads, which divides the width.
    pub heads: usize,
    /// Whether a position sees none after it.
    pub causal: bool,
}
crate::module!(MultiHeadAttention<B> {
    in_proj_weight, in_proj_bias, out_proj, dropout;
    skip heads, causal
});

/// Options of [`MultiHeadAttention::with_options`].
#[derive(Clone, Copy, Debug)]
pub struct MultiHeadAttentionOptions {
    /// Whether a position sees none after it; by default it sees all.
    pub causal: bool,
    /// Probability with which an attention weight is zeroed in training; 0 by default.
    pub dropout: f64,
    /// Whether there are biases; by default there are.
    pub bias: bool,
    /// Type of the parameters; `F32` by default.
    pub dtype: DType,
}

impl Default for MultiHeadAttentionOptions {
    fn default() -> Self {
        MultiHeadAttentionOptions { causal: false, dropout: 0.0, bias: true, dtype: DType::F32 }
    }
}

impl<B: Backend> MultiHeadAttention<B> {
    /// Not causal, without dropout, with biases, of `F32`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless `heads` divides `width`.
    pub fn new(width: usize, heads: usize, rng: &mut Rng) -> Result<Self> {
        MultiHeadAttention::with_options(width, heads, MultiHeadAttentionOptions::default(), rng)
    }

    /// As [`MultiHeadAttention::new`], with options.
    ///
    /// # Errors
    /// As [`MultiHeadAttention::new`]; [`Error::InvalidArgument`] unless `0 <= dropout < 1`.
    pub fn with_options(
        width: usize,
        heads: usize,
        options: MultiHeadAttentionOptions,
        rng: &mut Rng,
    ) -> Result<Self> {
        let MultiHeadAttentionOptions { causal, dropout, bias, dtype } = options;
        check_heads(width, heads)?;
        let mut out_proj = Linear::with_options(width, width, LinearOptions { bias, dtype }, rng)?;
        if bias {
            out_proj.bias = Some(init::zeros(width, dtype)?);
        }
        Ok(MultiHeadAttention {
            in_proj_weight: init::xavier_uniform((3 * width, width), 1.0, dtype, rng)?,
            in_proj_bias: bias.then(|| init::zeros(3 * width, dtype)).transpose()?,
            out_proj,
            dropout: Dropout::new(dropout, rng)?,
            heads,
            causal,
        })
    }

    /// Self-attention under a mask that broadcasts to `[…, heads, t, t]`; what it holds is said at
    /// [`Attention::mask`].
    ///
    /// # Errors
    /// Those of [`Tensor::linear`] and [`Tensor::scaled_dot_product_attention`].
    pub fn forward_masked(&self, x: &Tensor<B>, mask: Option<&Tensor<B>>) -> Result<Tensor<B>> {
        self.forward_cross(x, x, mask)
    }

    /// Attention of `x` `[…, t, width]` to `memory` `[…, s, width]`; the mask broadcasts to
    /// `[…, heads, t, s]`.
    ///
    /// # Errors
    /// As [`forward_masked`](MultiHeadAttention::forward_masked).
    pub fn forward_cross(
        &self,
        x: &Tensor<B>,
        memory: &Tensor<B>,
        mask: Option<&Tensor<B>>,
    ) -> Result<Tensor<B>> {
        let width = self.width()?;
        let (q, k, v) = (
            self.project(x, 0, width)?,
            self.project(memory, 1, width)?,
            self.project(memory, 2, width)?,
        );
        let dropout = self.dropout.next_mask();
        let options = Attention { mask, causal: self.causal, scale: None, dropout };
        let y = q.scaled_dot_product_attention(&k, &v, options)?.swap_axes(-3, -2)?;
        self.out_proj.forward(&y.flatten(-2, -1)?)
    }

    /// Queries (0), keys (1) or values (2) of `x`, `[…, heads, t, width / heads]`.
    ///
    /// The weight is read as a view. Views of one product with all three would be as good forward, but
    /// their gradients are each as large as that product and have to be added up.
    fn project(&self, x: &Tensor<B>, part: usize, width: usize) -> Result<Tensor<B>> {
        let rows = |p: &Tensor<B>| p.narrow(0, part * width, width);
        let bias = self.in_proj_bias.as_ref().map(rows).transpose()?;
        let y = x.linear(&rows(&self.in_proj_weight)?, bias.as_ref())?;
        let lead = y.dims()[..y.rank() - 1].iter().copied();
        let shape: Shape = lead.chain([self.heads, width / self.heads]).collect();
        y.reshape(shape)?.swap_axes(-3, -2)
    }

    /// The width, by which the weights' first axis is divided; fields may have been changed.
    fn width(&self) -> Result<usize> {
        let width = self.in_proj_weight.dims().last().copied().unwrap_or(0);
        check_heads(width, self.heads)?;
        if self.in_proj_weight.dims() != [3 * width, width] {
            let (op, shape) = ("multi_head_attention", *self.in_proj_weight.shape());
            let reason = "in_proj_weight is not [3 width, width]";
            return Err(Error::InvalidShape { op, shape, reason });
        }
        Ok(width)
    }
}

impl<B: Backend> Module<B> for MultiHeadAttention<B> {
    /// Self-attention.
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        self.forward_masked(x, None)
    }
}

fn check_heads(width: usize, heads: usize) -> Result<()> {
    if heads == 0 || !width.is_multiple_of(heads) {
        let reason = format!("{heads} heads do not divide a width of {width}");
        return Err(Error::InvalidArgument { op: "multi_head_attention", reason });
    }
    Ok(())
}

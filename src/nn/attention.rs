//! [`MultiHeadAttention`].

use super::{Dropout, Linear, LinearOptions, Module, init, locate};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::options::setters;
use crate::rng::Rng;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor::fused::attention::Attention;

/// Multi-head attention, `[…, t, width]` to the same shape: a projection to queries, keys and
/// values, scaled dot-product attention of each head, and a projection of the heads' results.
///
/// Parameters are named and initialized as PyTorch's: the in-projection by [`init::xavier_uniform`]
/// as one matrix, the out-projection uniformly in `±1/√width`, biases with 0.
///
/// ```
/// use swath::nn::{Module, MultiHeadAttention, MultiHeadAttentionOptions};
/// use swath::prelude::*;
///
/// let mut rng = Rng::seed(1);
/// let options = MultiHeadAttentionOptions::new().causal(true);
/// let attention = MultiHeadAttention::with_options(8, 2, options, &mut rng)?;
/// let x = Tensor::<CpuBackend>::randn((1, 5, 8), &mut rng)?;
/// assert_eq!(attention.forward(&x)?.dims(), [1, 5, 8]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct MultiHeadAttention<B: Backend = CpuBackend> {
    /// The weights of queries, keys and values, stacked: `[3 width, width]`.
    pub in_proj_weight: Tensor<B>,
    /// The biases of queries, keys and values: `[3 width]`.
    pub in_proj_bias: Option<Tensor<B>>,
    /// The projection of the result, `[width]` to `[width]`.
    pub out_proj: Linear<B>,
    /// Dropout of the attention weights.
    pub dropout: Dropout,
    /// Number of heads. It must divide the width.
    pub heads: usize,
    /// True if a position attends to no later one.
    pub causal: bool,
}
crate::module!(MultiHeadAttention<B> {
    in_proj_weight: parameter, in_proj_bias: parameter, out_proj, dropout;
    skip heads, causal
});

/// Options of [`MultiHeadAttention::with_options`].
#[derive(Clone, Copy, Debug)]
pub struct MultiHeadAttentionOptions {
    /// True if a position attends to no later one; false by default.
    pub causal: bool,
    /// Dropout probability of the attention weights in training; 0 by default.
    pub dropout: f64,
    /// True, the default, for biases.
    pub bias: bool,
    /// dtype of the parameters; `F32` by default.
    pub dtype: DType,
}

impl Default for MultiHeadAttentionOptions {
    fn default() -> Self {
        MultiHeadAttentionOptions { causal: false, dropout: 0.0, bias: true, dtype: DType::F32 }
    }
}

setters! {
    [] MultiHeadAttentionOptions {
        @new;
        causal: bool;
        dropout: f64;
        bias: bool;
        dtype: DType;
    }
}

impl<B: Backend> MultiHeadAttention<B> {
    /// Creates a layer that is not causal, without dropout, with biases, of dtype `F32`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless `heads` divides `width`.
    pub fn new(width: usize, heads: usize, rng: &mut Rng) -> Result<Self> {
        MultiHeadAttention::with_options(width, heads, MultiHeadAttentionOptions::default(), rng)
    }

    /// Creates a layer with options.
    ///
    /// # Errors
    /// As for [`MultiHeadAttention::new`]; [`Error::InvalidArgument`] unless `0 <= dropout < 1`.
    pub fn with_options(
        width: usize,
        heads: usize,
        options: MultiHeadAttentionOptions,
        rng: &mut Rng,
    ) -> Result<Self> {
        let MultiHeadAttentionOptions { causal, dropout, bias, dtype } = options;
        check_heads(width, heads)?;
        let stacked = width.saturating_mul(3);
        let mut out_proj = Linear::with_options(width, width, LinearOptions { bias, dtype }, rng)?;
        if bias {
            out_proj.bias = Some(init::zeros(width, dtype)?);
        }
        Ok(MultiHeadAttention {
            in_proj_weight: init::xavier_uniform((stacked, width), 1.0, dtype, rng)?,
            in_proj_bias: bias.then(|| init::zeros(stacked, dtype)).transpose()?,
            out_proj,
            dropout: Dropout::new(dropout, rng)?,
            heads,
            causal,
        })
    }

    /// Computes self-attention under a mask that broadcasts to `[…, heads, t, t]`; see
    /// [`Attention::mask`].
    ///
    /// # Errors
    /// Errors of [`Tensor::linear`] and [`Tensor::scaled_dot_product_attention`].
    pub fn forward_masked(&self, x: &Tensor<B>, mask: Option<&Tensor<B>>) -> Result<Tensor<B>> {
        self.forward_cross(x, x, mask)
    }

    /// Computes attention of `x` `[…, t, width]` to `memory` `[…, s, width]`. The mask broadcasts
    /// to `[…, heads, t, s]`.
    ///
    /// # Errors
    /// As for [`forward_masked`](MultiHeadAttention::forward_masked).
    pub fn forward_cross(
        &self,
        x: &Tensor<B>,
        memory: &Tensor<B>,
        mask: Option<&Tensor<B>>,
    ) -> Result<Tensor<B>> {
        let attend = || {
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
        };
        attend().map_err(|error| locate(self, error))
    }

    /// Queries (part 0), keys (1) or values (2) of `x`, as `[…, heads, t, width / heads]`.
    ///
    /// The weight is read as a view. One product with all three parts would be as fast in the
    /// forward pass, but each gradient of its views is as large as the whole product and they have
    /// to be added up.
    fn project(&self, x: &Tensor<B>, part: usize, width: usize) -> Result<Tensor<B>> {
        let rows = |p: &Tensor<B>| p.narrow(0, part * width, width);
        let bias = self.in_proj_bias.as_ref().map(rows).transpose()?;
        let y = x.linear(&rows(&self.in_proj_weight)?, bias.as_ref())?;
        let lead = y.dims()[..y.rank() - 1].iter().copied();
        let shape: Shape = lead.chain([self.heads, width / self.heads]).collect();
        y.reshape(shape)?.swap_axes(-3, -2)
    }

    /// Checks the fields, which may have been changed, and returns the width.
    fn width(&self) -> Result<usize> {
        let width = self.in_proj_weight.dims().last().copied().unwrap_or(0);
        check_heads(width, self.heads)?;
        if self.in_proj_weight.dims() != [3 * width, width] {
            let (op, shape) = ("multi_head_attention", *self.in_proj_weight.shape());
            let reason = "expected in_proj_weight of shape [3 width, width]";
            return Err(Error::InvalidShape { op, shape, reason });
        }
        Ok(width)
    }
}

impl<B: Backend> Module<B> for MultiHeadAttention<B> {
    /// Computes self-attention without a mask.
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        self.forward_masked(x, None)
    }
}

fn check_heads(width: usize, heads: usize) -> Result<()> {
    if heads == 0 || !width.is_multiple_of(heads) {
        let reason = format!("expected a number of heads that divides width {width}, got {heads}");
        return Err(Error::InvalidArgument { op: "multi_head_attention", reason });
    }
    Ok(())
}

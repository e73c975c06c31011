//! [`LayerNorm`].

use super::{Module, init, locate};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::dtype::DType;
use crate::error::{Result, check_options};
use crate::options::setters;
use crate::tensor::Tensor;

/// Layer normalization: `(x - mean) / √(variance + eps) · weight + bias` over the last axis, of
/// extent `width`.
///
/// ```
/// use swath::nn::{LayerNorm, Module};
/// use swath::prelude::*;
///
/// let norm = LayerNorm::new(2)?;
/// let y = norm.forward(&tensor![[1.0, 3.0]])?.to_vec::<f32>()?;
/// assert!((y[0] + 1.0).abs() < 1e-4 && (y[1] - 1.0).abs() < 1e-4);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct LayerNorm<B: Backend = CpuBackend> {
    /// Scale, `[width]`; initially ones.
    pub weight: Option<Tensor<B>>,
    /// Shift, `[width]`; initially zeros.
    pub bias: Option<Tensor<B>>,
    /// Added to the variance.
    pub eps: f64,
}
crate::module!(LayerNorm<B> { weight: parameter, bias: parameter; skip eps });

/// Options of [`LayerNorm::with_options`].
#[derive(Clone, Copy, Debug)]
pub struct LayerNormOptions {
    /// True, the default, for a learned scale.
    pub weight: bool,
    /// True, the default, for a learned shift.
    pub bias: bool,
    /// Added to the variance; 1e-5 by default.
    pub eps: f64,
    /// dtype of the parameters; `F32` by default.
    pub dtype: DType,
}

impl Default for LayerNormOptions {
    fn default() -> Self {
        LayerNormOptions { weight: true, bias: true, eps: 1e-5, dtype: DType::F32 }
    }
}

setters! {
    [] LayerNormOptions {
        @new;
        weight: bool;
        bias: bool;
        eps: f64;
        dtype: DType;
    }
}

impl<B: Backend> LayerNorm<B> {
    /// Creates a layer with weight and bias, of dtype `F32`.
    ///
    /// # Errors
    /// Errors of tensor creation.
    pub fn new(width: usize) -> Result<Self> {
        LayerNorm::with_options(width, LayerNormOptions::default())
    }

    /// Creates a layer with options.
    ///
    /// # Errors
    /// Errors of tensor creation; [`Error::InvalidArgument`](crate::Error::InvalidArgument) unless
    /// `eps` is finite and at least 0.
    pub fn with_options(width: usize, options: LayerNormOptions) -> Result<Self> {
        let LayerNormOptions { weight, bias, eps, dtype } = options;
        check_options("layer_norm", &[("eps", eps)])?;
        Ok(LayerNorm {
            weight: weight.then(|| init::ones(width, dtype)).transpose()?,
            bias: bias.then(|| init::zeros(width, dtype)).transpose()?,
            eps,
        })
    }
}

impl<B: Backend> Module<B> for LayerNorm<B> {
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        x.layer_norm(self.weight.as_ref(), self.bias.as_ref(), self.eps)
            .map_err(|error| locate(self, error))
    }
}

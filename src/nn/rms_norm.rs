//! [`RmsNorm`].

use super::{Module, init, locate};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::dtype::DType;
use crate::error::{Result, check_options};
use crate::options::setters;
use crate::tensor::Tensor;

/// Root-mean-square normalization: `x / √(mean(x²) + eps) · weight` over the last axis, of extent
/// `width`.
///
/// ```
/// use swath::nn::{Module, RmsNorm};
/// use swath::prelude::*;
///
/// let norm = RmsNorm::new(2)?;
/// let y = norm.forward(&tensor![[1.0, 7.0]])?.to_vec::<f32>()?;
/// assert!((y[0] - 0.2).abs() < 1e-4 && (y[1] - 1.4).abs() < 1e-4);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct RmsNorm<B: Backend = CpuBackend> {
    /// Scale, `[width]`; initially ones.
    pub weight: Option<Tensor<B>>,
    /// Added to the mean of the squares.
    pub eps: f64,
}
crate::module!(RmsNorm<B> { weight: parameter; skip eps });

/// Options of [`RmsNorm::with_options`].
#[derive(Clone, Copy, Debug)]
pub struct RmsNormOptions {
    /// True, the default, for a learned scale.
    pub weight: bool,
    /// Added to the mean of the squares; 1e-5 by default.
    pub eps: f64,
    /// dtype of the weight; `F32` by default.
    pub dtype: DType,
}

impl Default for RmsNormOptions {
    fn default() -> Self {
        RmsNormOptions { weight: true, eps: 1e-5, dtype: DType::F32 }
    }
}

setters! {
    [] RmsNormOptions {
        @new;
        weight: bool;
        eps: f64;
        dtype: DType;
    }
}

impl<B: Backend> RmsNorm<B> {
    /// Creates a layer with a weight, of dtype `F32`.
    ///
    /// # Errors
    /// Errors of tensor creation.
    pub fn new(width: usize) -> Result<Self> {
        RmsNorm::with_options(width, RmsNormOptions::default())
    }

    /// Creates a layer with options.
    ///
    /// # Errors
    /// Errors of tensor creation; [`Error::InvalidArgument`](crate::Error::InvalidArgument) unless
    /// `eps` is finite and at least 0.
    pub fn with_options(width: usize, options: RmsNormOptions) -> Result<Self> {
        let RmsNormOptions { weight, eps, dtype } = options;
        check_options("rms_norm", &[("eps", eps)])?;
        Ok(RmsNorm { weight: weight.then(|| init::ones(width, dtype)).transpose()?, eps })
    }
}

impl<B: Backend> Module<B> for RmsNorm<B> {
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        x.rms_norm(self.weight.as_ref(), self.eps).map_err(|error| locate(self, error))
    }
}

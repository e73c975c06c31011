//! [`GroupNorm`].

use super::{Module, init, locate};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::dtype::DType;
use crate::error::{Error, Result, check_options};
use crate::options::setters;
use crate::tensor::Tensor;

/// Group normalization (Wu and He, 2018) of `[n, channels, …]`: `(x - mean) / √(variance + eps) · weight + bias`
/// with a mean and a variance of each group of neighbouring channels of each image.
///
/// ```
/// use swath::nn::{GroupNorm, Module};
/// use swath::prelude::*;
///
/// let norm = GroupNorm::new(2, 4)?;
/// let y = norm.forward(&tensor![[1.0, 3.0, 10.0, 30.0]])?.to_vec::<f32>()?;
/// assert!((y[0] + 1.0).abs() < 1e-4 && (y[3] - 1.0).abs() < 1e-4);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct GroupNorm<B: Backend = CpuBackend> {
    /// Scale, `[channels]`; initially ones.
    pub weight: Option<Tensor<B>>,
    /// Shift, `[channels]`; initially zeros.
    pub bias: Option<Tensor<B>>,
    /// Number of groups. It must divide the channels.
    pub groups: usize,
    /// Added to the variance.
    pub eps: f64,
}
crate::module!(GroupNorm<B> { weight: parameter, bias: parameter; skip groups, eps });

/// Options of [`GroupNorm::with_options`].
#[derive(Clone, Copy, Debug)]
pub struct GroupNormOptions {
    /// True, the default, for a learned scale and shift.
    pub affine: bool,
    /// Added to the variance; 1e-5 by default.
    pub eps: f64,
    /// dtype of the parameters; `F32` by default.
    pub dtype: DType,
}

impl Default for GroupNormOptions {
    fn default() -> Self {
        GroupNormOptions { affine: true, eps: 1e-5, dtype: DType::F32 }
    }
}

setters! {
    [] GroupNormOptions {
        @new;
        affine: bool;
        eps: f64;
        dtype: DType;
    }
}

impl<B: Backend> GroupNorm<B> {
    /// Creates a layer with weight and bias, of dtype `F32`.
    ///
    /// # Errors
    /// Errors of tensor creation.
    pub fn new(groups: usize, channels: usize) -> Result<Self> {
        GroupNorm::with_options(groups, channels, GroupNormOptions::default())
    }

    /// Creates a layer with options.
    ///
    /// # Errors
    /// Errors of tensor creation; [`Error::InvalidArgument`] if the groups do not divide the
    /// channels, and unless `eps` is finite and at least 0.
    pub fn with_options(groups: usize, channels: usize, options: GroupNormOptions) -> Result<Self> {
        let GroupNormOptions { affine, eps, dtype } = options;
        check_options("group_norm", &[("eps", eps)])?;
        if groups == 0 || !channels.is_multiple_of(groups) {
            let reason = format!("{groups} groups do not divide {channels} channels");
            return Err(Error::InvalidArgument { op: "group_norm", reason });
        }
        Ok(GroupNorm {
            weight: affine.then(|| init::ones(channels, dtype)).transpose()?,
            bias: affine.then(|| init::zeros(channels, dtype)).transpose()?,
            groups,
            eps,
        })
    }
}

impl<B: Backend> Module<B> for GroupNorm<B> {
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        x.group_norm(self.groups, self.weight.as_ref(), self.bias.as_ref(), self.eps)
            .map_err(|error| locate(self, error))
    }
}

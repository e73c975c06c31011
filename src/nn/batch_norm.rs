//! [`BatchNorm1d`], [`BatchNorm2d`].

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Buffer, Module, init, locate};
use crate::autodiff::{is_recomputing, replayed};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::dtype::DType;
use crate::error::{Error, Result, check_options};
use crate::options::setters;
use crate::tensor::Tensor;

/// Options of [`BatchNorm1d::with_options`] and [`BatchNorm2d::with_options`].
#[derive(Clone, Copy, Debug)]
pub struct BatchNormOptions {
    /// True, the default, for a learned scale and shift.
    pub affine: bool,
    /// Added to the variance; 1e-5 by default.
    pub eps: f64,
    /// Weight of a batch's statistics in the running ones, in `[0, 1]`; 0.1 by default.
    pub momentum: f64,
    /// dtype of parameters and running statistics; `F32` by default.
    pub dtype: DType,
}

impl Default for BatchNormOptions {
    fn default() -> Self {
        BatchNormOptions { affine: true, eps: 1e-5, momentum: 0.1, dtype: DType::F32 }
    }
}

setters! {
    [] BatchNormOptions {
        @new;
        affine: bool;
        eps: f64;
        momentum: f64;
        dtype: DType;
    }
}

macro_rules! batch_norms {
    ($($(#[$doc:meta])* $Layer:ident $ranks:pat, $expected:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// In training the mean and variance are those of the batch, and the running ones move towards them by
        /// `momentum`, the variance as the estimate from a sample. In evaluation the running ones are used. A new
        /// layer is in training mode. Parameters and buffers are named and initialized as PyTorch's.
        #[derive(Debug)]
        pub struct $Layer<B: Backend = CpuBackend> {
            /// Scale, `[channels]`; initially ones.
            pub weight: Option<Tensor<B>>,
            /// Shift, `[channels]`; initially zeros.
            pub bias: Option<Tensor<B>>,
            /// Mean that evaluation uses, `[channels]`; initially zeros.
            pub running_mean: Buffer<B>,
            /// Variance that evaluation uses, `[channels]`; initially ones.
            pub running_var: Buffer<B>,
            /// Number of batches in the running statistics: `I64`, without axes.
            pub num_batches_tracked: Buffer<B>,
            /// Added to the variance.
            pub eps: f64,
            /// Weight of a batch's statistics in the running ones.
            pub momentum: f64,
            training: AtomicBool,
        }
        crate::module!($Layer<B> {
            weight: parameter, bias: parameter, running_mean, running_var,
            num_batches_tracked: counter, training;
            skip eps, momentum
        });

        impl<B: Backend> $Layer<B> {
            /// Creates a layer with weight and bias, of dtype `F32`.
            ///
            /// # Errors
            /// Errors of tensor creation.
            pub fn new(channels: usize) -> Result<Self> {
                $Layer::with_options(channels, BatchNormOptions::default())
            }

            /// Creates a layer with options.
            ///
            /// # Errors
            /// Errors of tensor creation; [`Error::InvalidArgument`] unless `eps` is finite and at
            /// least 0, and `momentum` is in `[0, 1]`.
            pub fn with_options(channels: usize, options: BatchNormOptions) -> Result<Self> {
                let BatchNormOptions { affine, eps, momentum, dtype } = options;
                check_options("batch_norm", &[("eps", eps)])?;
                if !(0.0..=1.0).contains(&momentum) {
                    let reason = format!("momentum must be in [0, 1], got {momentum}");
                    return Err(Error::InvalidArgument { op: "batch_norm", reason });
                }
                Ok($Layer {
                    weight: affine.then(|| init::ones(channels, dtype)).transpose()?,
                    bias: affine.then(|| init::zeros(channels, dtype)).transpose()?,
                    running_mean: Buffer::new(Tensor::zeros(channels, dtype)?),
                    running_var: Buffer::new(Tensor::ones(channels, dtype)?),
                    num_batches_tracked: Buffer::new(Tensor::zeros((), DType::I64)?),
                    eps,
                    momentum,
                    training: AtomicBool::new(true),
                })
            }

            /// True in training mode.
            pub fn is_training(&self) -> bool {
                self.training.load(Ordering::Relaxed)
            }

            /// Takes the mean and the variance of a batch into the running statistics, of which `count` values
            /// of each channel were taken.
            fn update_statistics(
                &self,
                mean: &Tensor<B>,
                variance: &Tensor<B>,
                count: usize,
            ) -> Result<()> {
                let of_sample = variance.mul_scalar(count as f64 / (count as f64 - 1.0))?;
                for (running, batch) in
                    [(&self.running_mean, mean), (&self.running_var, &of_sample)]
                {
                    let old = running.get();
                    let moved = old.to_dtype(batch.dtype())?.lerp(batch, self.momentum)?;
                    running.set(moved.to_dtype(old.dtype())?);
                }
                let tracked = self.num_batches_tracked.get().add_scalar(1)?;
                self.num_batches_tracked.set(tracked);
                Ok(())
            }
        }

        impl<B: Backend> Module<B> for $Layer<B> {
            /// Normalizes `x`.
            ///
            /// # Errors
            /// Those of [`Tensor::batch_norm`]; [`Error::InvalidShape`] for other axes, and in training unless
            /// there is more than one value of each channel.
            fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
                self.normalized(x).map_err(|error| locate(self, error))
            }
        }

        impl<B: Backend> $Layer<B> {
            fn normalized(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
                let (weight, bias) = (self.weight.as_ref(), self.bias.as_ref());
                let invalid =
                    |reason| Error::InvalidShape { op: "batch_norm", shape: *x.shape(), reason };
                if !matches!(x.rank(), $ranks) {
                    return Err(invalid($expected));
                }
                if !replayed(|| self.is_training()) {
                    let [mean, variance] = [&self.running_mean, &self.running_var].map(Buffer::get);
                    return x.batch_norm(&mean, &variance, weight, bias, self.eps);
                }
                let count = x.dims()[0] * x.dims()[2..].iter().product::<usize>();
                if count < 2 {
                    return Err(invalid("training needs more than one value of each channel"));
                }
                let (y, mean, variance) = x.batch_norm_training(weight, bias, self.eps)?;
                if !is_recomputing() {
                    self.update_statistics(&mean, &variance, count)?;
                }
                Ok(y)
            }
        }
    )*};
}

batch_norms! {
    /// Batch normalization (Ioffe and Szegedy, 2015) of vectors `[n, channels]` or signals `[n, channels, l]`:
    /// `(x - mean) / √(variance + eps) · weight + bias` with a mean and a variance of each channel.
    BatchNorm1d 2 | 3, "expected 2 or 3 axes: [n, channels] or [n, channels, length]";
    /// Batch normalization (Ioffe and Szegedy, 2015) of images `[n, channels, h, w]`:
    /// `(x - mean) / √(variance + eps) · weight + bias` with a mean and a variance of each channel.
    ///
    /// ```
    /// use swath::nn::{BatchNorm2d, Module};
    /// use swath::prelude::*;
    ///
    /// let mut norm = BatchNorm2d::new(1)?;
    /// let x = tensor![3.0, 5.0].reshape((1, 1, 1, 2))?;
    /// norm.forward(&x)?;
    /// assert_eq!(norm.running_mean.get().to_vec::<f32>()?, [0.4]);
    /// norm.set_training(false);
    /// let y = norm.forward(&x)?.to_vec::<f32>()?;
    /// assert!((y[0] - 2.6 / 1.1f32.sqrt()).abs() < 1e-4);
    /// # Ok::<(), Error>(())
    /// ```
    BatchNorm2d 4, "expected 4 axes: [n, channels, height, width]";
    /// Batch normalization (Ioffe and Szegedy, 2015) of volumes `[n, channels, d, h, w]`:
    /// `(x - mean) / √(variance + eps) · weight + bias` with a mean and a variance of each channel.
    BatchNorm3d 5, "expected 5 axes: [n, channels, depth, height, width]";
}

//! `layer_norm` and `rms_norm`: rows normalized by their standard deviation or root mean square.

use smallvec::SmallVec;

use crate::autodiff::graph::{SharedRule, Upstream, bytes_of, bytes_of_kept, record, rule_keeping};
use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::FusedOp;
use crate::shape::Shape;

use super::{gradients, kernel};
use crate::tensor::base::Tensor;

/// # Normalization of rows
impl<B: Backend> Tensor<B> {
    /// `(x - mean) / √(variance + eps) · weight + bias` over the last axis: x is `[…, n]`, `weight`
    /// and `bias` are `[n]`. The variance is that of the population (divided by n).
    ///
    /// Squares are accumulated in `f64`: `f64` elements beyond 1e154 give zeros, or NaN if their
    /// sum exceeds 1.8e308. `f32` rows with an element further than 3.4e38 from the mean, or with
    /// `1 / √(variance + eps)` beyond that, give ∞ or NaN.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let y = tensor![[1.0, 3.0], [10.0, 30.0]].layer_norm(None, None, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for integers;
    /// [`Error::InvalidShape`] without an axis; [`Error::InvalidArgument`] if `eps` is below zero or NaN.
    pub fn layer_norm(
        &self,
        weight: Option<&Tensor<B>>,
        bias: Option<&Tensor<B>>,
        eps: f64,
    ) -> Result<Self> {
        B::engine_layer_norm(self, weight, bias, eps)
    }

    /// [`layer_norm`](Tensor::layer_norm) with the mean and `1 / √(variance + eps)` of each row, `[…, 1]`, in `F32` for
    /// 16-bit floats. All three have gradients. ONNX's `LayerNormalization`, PyTorch's `native_layer_norm`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (y, mean, scale) = tensor![[1.0, 5.0]].layer_norm_with_statistics(None, None, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0]);
    /// assert_eq!((mean.item::<f32>()?, scale.item::<f32>()?), (3.0, 0.5));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`layer_norm`](Tensor::layer_norm).
    pub fn layer_norm_with_statistics(
        &self,
        weight: Option<&Tensor<B>>,
        bias: Option<&Tensor<B>>,
        eps: f64,
    ) -> Result<(Self, Self, Self)> {
        let op = "layer_norm_with_statistics";
        let y = self.layer_norm(weight, bias, eps).map_err(|error| error.named(op))?;
        let x = self.widened()?;
        let variance = x.variance_axis(-1, true, 0)?;
        Ok((y, x.mean_axis(-1, true)?, variance.add_scalar(eps)?.rsqrt()?))
    }

    pub(crate) fn layer_norm_body(
        x: &Tensor<B>,
        weight: Option<&Tensor<B>>,
        bias: Option<&Tensor<B>>,
        eps: f64,
    ) -> Result<Self> {
        let op = "layer_norm";
        x.check_norm(op, [weight, bias], eps)?;
        let [weight_data, bias_data] = [weight, bias].map(|parameter| parameter.map(Tensor::data));
        let fused = FusedOp::LayerNorm { x: x.data(), weight: weight_data, bias: bias_data, eps };
        let Some([y, _, deviation]) = kernel::<B, 3>(&fused)? else {
            return x.layer_norm_composite(weight, bias, eps);
        };
        let inputs: SmallVec<[&Tensor<B>; 3]> =
            [Some(x), weight, bias].into_iter().flatten().collect();
        Ok(record(op, y, &inputs, |_| layer_norm_rule(x, weight, bias, eps, deviation)))
    }

    /// Defines [`Tensor::layer_norm`]. Its gradient sums each row of upstream / deviation: if these
    /// are within a factor n of the largest float it may be infinite where the kernel's is not.
    fn layer_norm_composite(
        &self,
        weight: Option<&Tensor<B>>,
        bias: Option<&Tensor<B>>,
        eps: f64,
    ) -> Result<Self> {
        let last = self.rank() - 1;
        let x = self.widened()?;
        let mut y = x.sub(&x.mean(Some(&[last]), true)?)?.over_root_mean_square(eps)?;
        if let Some(weight) = weight {
            y = y.mul(&weight.widened()?)?;
        }
        if let Some(bias) = bias {
            y = y.add(&bias.widened()?)?;
        }
        y.to_dtype(self.dtype())
    }

    /// `x / √(mean(x²) + eps) · weight` over the last axis: x is `[…, n]`, `weight` `[n]`.
    ///
    /// Squares are accumulated in `f64`: `f64` elements beyond 1e154 give zeros. `f32` rows with
    /// `1 / √(mean(x²) + eps)` beyond 3.4e38 give ∞ or NaN.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let y = tensor![[1.0, 7.0], [5.0, -5.0]].rms_norm(None, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.2, 1.4, 1.0, -1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for integers;
    /// [`Error::InvalidShape`] without an axis; [`Error::InvalidArgument`] if `eps` is below zero or NaN.
    pub fn rms_norm(&self, weight: Option<&Tensor<B>>, eps: f64) -> Result<Self> {
        B::engine_rms_norm(self, weight, eps)
    }

    pub(crate) fn rms_norm_body(
        x: &Tensor<B>,
        weight: Option<&Tensor<B>>,
        eps: f64,
    ) -> Result<Self> {
        let op = "rms_norm";
        x.check_norm(op, [weight, None], eps)?;
        let fused = FusedOp::RmsNorm { x: x.data(), weight: weight.map(Tensor::data), eps };
        let Some([y, reciprocal]) = kernel::<B, 2>(&fused)? else {
            return x.rms_norm_composite(weight, eps);
        };
        let inputs: SmallVec<[&Tensor<B>; 2]> = [Some(x), weight].into_iter().flatten().collect();
        Ok(record(op, y, &inputs, |_| rms_norm_rule(x, weight, eps, reciprocal)))
    }

    /// Defines [`Tensor::rms_norm`].
    fn rms_norm_composite(&self, weight: Option<&Tensor<B>>, eps: f64) -> Result<Self> {
        let mut y = self.widened()?.over_root_mean_square(eps)?;
        if let Some(weight) = weight {
            y = y.mul(&weight.widened()?)?;
        }
        y.to_dtype(self.dtype())
    }

    fn check_norm(
        &self,
        op: &'static str,
        parameters: [Option<&Tensor<B>>; 2],
        eps: f64,
    ) -> Result<()> {
        self.check_float(op)?;
        check_eps(op, self.shape(), eps)?;
        let Some(&n) = self.dims().last() else {
            let reason = "expected at least one axis";
            return Err(Error::InvalidShape { op, shape: *self.shape(), reason });
        };
        for parameter in parameters.into_iter().flatten() {
            if parameter.dims() != [n] {
                let (lhs, rhs) = (*self.shape(), *parameter.shape());
                return Err(Error::ShapeMismatch { op, lhs, rhs });
            }
            self.check_dtype(op, parameter.dtype())?;
        }
        Ok(())
    }

    /// `x / √(mean(x²) + ε)` along the last axis. To keep squares in range, x is first divided by
    /// its magnitude, which is a constant to the derivative and leaves the quotient unchanged.
    fn over_root_mean_square(&self, eps: f64) -> Result<Self> {
        if self.numel() == 0 {
            return Ok(self.clone());
        }
        let last = [self.rank() - 1];
        let root_eps = eps.sqrt();
        // If √ε exceeds the range of `f32`, the row is zeros as long as its quotient is finite.
        let least = root_eps.min(f32::MAX.into());
        // Kept finite, so that the other elements of a row with an infinity become zeros.
        let most = if self.dtype() == DType::F64 { f64::MAX } else { f32::MAX.into() };
        let size = self.detach().abs()?.max(Some(&last), true)?.maximum(least)?.minimum(most)?;
        let root_eps = size.zeros_like()?.add_scalar(root_eps)?.div(&size)?;
        let x = self.div(&size)?;
        let squares = x.square()?.mean(Some(&last), true)?;
        x.div(&squares.add(&root_eps.square()?)?.sqrt()?)
    }
}

/// Fails unless `eps` is at least 0.
pub(super) fn check_eps(op: &'static str, shape: &Shape, eps: f64) -> Result<()> {
    if eps.is_nan() || eps < 0.0 {
        let reason = format!("eps must be at least 0, got {eps:?} for shape {shape}");
        return Err(Error::InvalidArgument { op, reason });
    }
    Ok(())
}

/// Gradients of `x`, and of `weight` and `bias` if present.
fn layer_norm_rule<B: Backend>(
    x: &Tensor<B>,
    weight: Option<&Tensor<B>>,
    bias: Option<&Tensor<B>>,
    eps: f64,
    reciprocal_deviation: B::Tensor,
) -> SharedRule<B> {
    let (x, weight, bias) = (x.clone(), weight.cloned(), bias.cloned());
    let bytes = bytes_of([Some(x.data()), Some(&reciprocal_deviation)]);
    rule_keeping(bytes + bytes_of_kept([&weight, &bias]), move |upstream: &Upstream<'_, B>, _| {
        let inputs = [Some(&x), weight.as_ref(), bias.as_ref()];
        let fused = FusedOp::LayerNormGrad {
            g: upstream.g.data(),
            x: x.data(),
            weight: weight.as_ref().map(Tensor::data),
            reciprocal_deviation: &reciprocal_deviation,
        };
        gradients(upstream, &fused, inputs, || {
            x.layer_norm_composite(weight.as_ref(), bias.as_ref(), eps)
        })
    })
}

/// Gradients of `x`, and of `weight` if present.
fn rms_norm_rule<B: Backend>(
    x: &Tensor<B>,
    weight: Option<&Tensor<B>>,
    eps: f64,
    reciprocal_rms: B::Tensor,
) -> SharedRule<B> {
    let (x, weight) = (x.clone(), weight.cloned());
    let bytes = bytes_of([Some(x.data()), Some(&reciprocal_rms)]);
    rule_keeping(bytes + bytes_of_kept([&weight]), move |upstream: &Upstream<'_, B>, _| {
        let fused = FusedOp::RmsNormGrad {
            g: upstream.g.data(),
            x: x.data(),
            weight: weight.as_ref().map(Tensor::data),
            reciprocal_rms: &reciprocal_rms,
        };
        let inputs = [Some(&x), weight.as_ref()];
        gradients(upstream, &fused, inputs, || x.rms_norm_composite(weight.as_ref(), eps))
    })
}

//! `layer_norm`.

use crate::autodiff::graph::record;
use crate::autodiff::ops::fused::layer_norm::layer_norm_rule;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::ops::FusedOp;

use super::{check_eps, check_float, check_same_dtype, exactly};
use crate::tensor::Tensor;

impl<B: Backend> Tensor<B> {
    /// `(x - mean) / √(variance + eps) · weight + bias` over the last axis: x is `[…, n]`, `weight`
    /// and `bias` `[n]`. The variance is that of the population (divided by n).
    ///
    /// Squares are added in `f64`: elements of `f64` beyond 1e154 give zeros, or NaN where their sum exceeds
    /// 1.8e308. Rows of `f32` whose elements are further than 3.4e38 from the mean, or whose
    /// `1 / √(variance + eps)` is more than that, give ∞ or NaN.
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
        let op = "layer_norm";
        check_float(op, self)?;
        check_eps(op, eps, self.shape())?;
        let Some(&n) = self.dims().last() else {
            let reason = "there is no axis to normalise over";
            return Err(Error::InvalidShape { op, shape: *self.shape(), reason });
        };
        for parameter in [weight, bias].into_iter().flatten() {
            if parameter.dims() != [n] {
                return Err(Error::ShapeMismatch {
                    op,
                    lhs: *self.shape(),
                    rhs: *parameter.shape(),
                });
            }
            check_same_dtype(op, self, parameter)?;
        }
        let operands = [Some(self.data()), weight.map(Tensor::data), bias.map(Tensor::data)];
        let [y, _, deviation] = exactly(op, B::fused(&FusedOp::LayerNorm { eps }, &operands)?)?;
        let rule = |_: &B::Tensor| layer_norm_rule(self, weight, bias, eps, deviation);
        Ok(match (weight, bias) {
            (Some(weight), Some(bias)) => record(op, y, &[self, weight, bias], rule),
            (Some(one), None) | (None, Some(one)) => record(op, y, &[self, one], rule),
            (None, None) => record(op, y, &[self], rule),
        })
    }

    /// What [`Tensor::layer_norm`] means. Its gradient adds up each row of upstream / deviation: where these
    /// are within a factor n of the largest float it may be infinite though the fused one is not.
    pub(crate) fn layer_norm_definition(
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
}

//! `rms_norm`.

use crate::autodiff::graph::record;
use crate::autodiff::ops::fused::rms_norm::rms_norm_rule;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::ops::FusedOp;

use super::{check_eps, check_float, check_same_dtype, exactly};
use crate::tensor::Tensor;

impl<B: Backend> Tensor<B> {
    /// `x / √(mean(x²) + eps) · weight` over the last axis: x is `[…, n]`, `weight` `[n]`.
    ///
    /// Squares are added in `f64`: elements of `f64` beyond 1e154 give zeros. Rows of `f32` whose
    /// `1 / √(mean(x²) + eps)` is more than 3.4e38 give ∞ or NaN.
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
        let op = "rms_norm";
        check_float(op, self)?;
        check_eps(op, eps, self.shape())?;
        let Some(&n) = self.dims().last() else {
            let reason = "there is no axis to normalise over";
            return Err(Error::InvalidShape { op, shape: *self.shape(), reason });
        };
        if let Some(weight) = weight {
            if weight.dims() != [n] {
                let (lhs, rhs) = (*self.shape(), *weight.shape());
                return Err(Error::ShapeMismatch { op, lhs, rhs });
            }
            check_same_dtype(op, self, weight)?;
        }
        let operands = [Some(self.data()), weight.map(Tensor::data)];
        let [y, reciprocal] = exactly(op, B::fused(&FusedOp::RmsNorm { eps }, &operands)?)?;
        let rule = |_: &B::Tensor| rms_norm_rule(self, weight, eps, reciprocal);
        Ok(match weight {
            Some(weight) => record(op, y, &[self, weight], rule),
            None => record(op, y, &[self], rule),
        })
    }

    /// What [`Tensor::rms_norm`] means.
    pub(crate) fn rms_norm_definition(&self, weight: Option<&Tensor<B>>, eps: f64) -> Result<Self> {
        let mut y = self.widened()?.over_root_mean_square(eps)?;
        if let Some(weight) = weight {
            y = y.mul(&weight.widened()?)?;
        }
        y.to_dtype(self.dtype())
    }

    /// `x / √(mean(x²) + ε)` along the last axis. Squares stay in range, since x is divided by a number of its
    /// size before, a constant to the derivative; the quotient remains what it is.
    pub(super) fn over_root_mean_square(&self, eps: f64) -> Result<Self> {
        if self.numel() == 0 {
            return Ok(self.clone());
        }
        let last = [self.rank() - 1];
        let root_eps = eps.sqrt();
        // Beyond `f32` √ε makes zeros of the row, as long as its quotient is a number.
        let least = root_eps.min(f32::MAX.into());
        let size = self.detach().abs()?.max(Some(&last), true)?.maximum(least)?;
        let root_eps = size.zeros_like()?.add_scalar(root_eps)?.div(&size)?;
        let x = self.div(&size)?;
        let squares = x.square()?.mean(Some(&last), true)?;
        x.div(&squares.add(&root_eps.square()?)?.sqrt()?)
    }
}

//! `layer_norm`.

use crate::backend::Backend;
use crate::error::{Error, Result};

use super::{check_float, check_same_dtype};
use crate::tensor::Tensor;

impl<B: Backend> Tensor<B> {
    /// `(x - mean) / √(variance + eps) · weight + bias` over the last axis: x is `[…, n]`, `weight`
    /// and `bias` `[n]`. The variance is that of the population (divided by n).
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
    /// [`Error::InvalidShape`] without an axis.
    pub fn layer_norm(
        &self,
        weight: Option<&Tensor<B>>,
        bias: Option<&Tensor<B>>,
        eps: f64,
    ) -> Result<Self> {
        let op = "layer_norm";
        check_float(op, self)?;
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
        self.layer_norm_definition(weight, bias, eps)
    }

    pub(crate) fn layer_norm_definition(
        &self,
        weight: Option<&Tensor<B>>,
        bias: Option<&Tensor<B>>,
        eps: f64,
    ) -> Result<Self> {
        let last = self.rank() - 1;
        let centred = self.sub(&self.mean(Some(&[last]), true)?)?;
        let variance = centred.square()?.mean(Some(&[last]), true)?;
        let mut y = centred.div(&variance.add_scalar(eps)?.sqrt()?)?;
        if let Some(weight) = weight {
            y = y.mul(weight)?;
        }
        match bias {
            Some(bias) => y.add(bias),
            None => Ok(y),
        }
    }
}

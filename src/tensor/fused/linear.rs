//! Products with a weight, biases and the functions after them.

use crate::autodiff::graph::record;
use crate::autodiff::ops::fused::bias_activation::bias_activation_rule;
use crate::autodiff::ops::fused::linear::linear_rule;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::ops::{Activation, FusedOp};

use super::{check_float, check_same_dtype, exactly};
use crate::tensor::Tensor;

impl<B: Backend> Tensor<B> {
    /// `x · weightᵀ + bias`: x is `[…, k]`, `weight` `[n, k]`, `bias` `[n]`, the result `[…, n]`.
    /// The bits are those of `x.matmul(&weight.t()?)?.add(bias)`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (x, w) = (tensor![[1.0, 2.0]], tensor![[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]);
    /// let y = x.linear(&w, Some(&tensor![0.5, 0.5, 0.5]))?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.5, 2.5, 3.5]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for integers.
    pub fn linear(&self, weight: &Tensor<B>, bias: Option<&Tensor<B>>) -> Result<Self> {
        let op = "linear";
        check_float(op, self)?;
        check_same_dtype(op, self, weight)?;
        if weight.rank() != 2 || self.dims().last() != Some(&weight.dims()[1]) {
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *weight.shape() });
        }
        if let Some(bias) = bias {
            if bias.dims() != [weight.dims()[0]] {
                return Err(Error::ShapeMismatch { op, lhs: *weight.shape(), rhs: *bias.shape() });
            }
            check_same_dtype(op, self, bias)?;
        }
        let operands = [Some(self.data()), Some(weight.data()), bias.map(|bias| bias.data())];
        let [y] = exactly(op, B::fused(&FusedOp::Linear, &operands)?)?;
        Ok(match bias {
            Some(bias) => record(op, y, &[self, weight, bias], |_| linear_rule(self, weight)),
            None => record(op, y, &[self, weight], |_| linear_rule(self, weight)),
        })
    }

    /// `f(x + bias)`: x is `[…, n]`, `bias` `[n]`.
    ///
    /// ```
    /// use swath::{ops::Activation, prelude::*};
    /// let y = tensor![[1.0, -2.0]].bias_activation(&tensor![1.0, 1.0], Activation::Relu)?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for integers.
    pub fn bias_activation(&self, bias: &Tensor<B>, activation: Activation) -> Result<Self> {
        let op = "bias_activation";
        check_float(op, self)?;
        check_same_dtype(op, self, bias)?;
        if bias.rank() != 1 || self.dims().last() != Some(&bias.dims()[0]) {
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *bias.shape() });
        }
        let fused = FusedOp::BiasActivation(activation);
        let [y] = exactly(op, B::fused(&fused, &[Some(self.data()), Some(bias.data())])?)?;
        Ok(record(op, y, &[self, bias], |_| bias_activation_rule(self, bias, activation)))
    }

    pub(crate) fn bias_activation_definition(
        &self,
        bias: &Tensor<B>,
        activation: Activation,
    ) -> Result<Self> {
        let z = self.add(bias)?;
        match activation {
            Activation::Relu => z.relu(),
            Activation::Gelu => z.gelu(),
            Activation::GeluTanh => z.gelu_tanh(),
            Activation::Silu => z.silu(),
            Activation::Sigmoid => z.sigmoid(),
            Activation::Tanh => z.tanh(),
        }
    }
}

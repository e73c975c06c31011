//! Products with a weight, biases and the functions after them.

use crate::autodiff::graph::{record, should_record};
use crate::autodiff::ops::fused::bias_activation::bias_activation_rule;
use crate::autodiff::ops::fused::linear::linear_rule;
use crate::autodiff::rules::{unary_keeps, unary_rule};
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::ops::{Activation, FusedOp};

use super::{check_float, check_same_dtype, exactly};
use crate::tensor::Tensor;

impl<B: Backend> Tensor<B> {
    /// `x · weightᵀ + bias`: x is `[…, k]`, `weight` `[n, k]`, `bias` `[n]`, the result `[…, n]`.
    /// The bits are those of `x.matmul(&weight.t()?)?.add(bias)`, but 16-bit floats are rounded once.
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
        let operands = self.linear_operands(op, weight, bias)?;
        let [y] = exactly(op, B::fused(&FusedOp::Linear, &operands)?)?;
        Ok(self.linear_recorded(y, weight, bias))
    }

    /// `f(x · weightᵀ + bias)`: x is `[…, k]`, `weight` `[n, k]`, `bias` `[n]`, the result `[…, n]`.
    ///
    /// As [`linear`](Tensor::linear) and the function, whose bits those of `f32` and `f64` are; 16-bit
    /// floats are rounded once, at the end. The function is applied to parts of the product that are
    /// still in the cache, and x · weightᵀ + bias is written only where a gradient will need it: that of
    /// gelu and silu, not that of relu, sigmoid and tanh.
    ///
    /// ```
    /// use swath::{ops::Activation, prelude::*};
    /// let (x, w) = (tensor![[1.0, 2.0]], tensor![[1.0, 0.0], [0.0, -1.0], [1.0, 1.0]]);
    /// let y = x.linear_activation(&w, Some(&tensor![0.5, 0.5, 0.5]), Activation::Relu)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.5, 0.0, 3.5]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`linear`](Tensor::linear).
    pub fn linear_activation(
        &self,
        weight: &Tensor<B>,
        bias: Option<&Tensor<B>>,
        activation: Activation,
    ) -> Result<Self> {
        let op = "linear_activation";
        let operands = self.linear_operands(op, weight, bias)?;
        let is_recorded = match bias {
            Some(bias) => should_record(self.dtype(), &[self, weight, bias]),
            None => should_record(self.dtype(), &[self, weight]),
        };
        let function = activation.op();
        let keep_sums = is_recorded && unary_keeps(function).0;
        let fused = FusedOp::LinearActivation { activation, keep_sums };
        let mut results = B::fused(&fused, &operands)?;
        let z = if keep_sums { results.pop() } else { None };
        let [y] = exactly(op, results)?;
        if !is_recorded {
            return Ok(Tensor::from_data(y));
        }
        // Recorded as the two ops that it is. A function whose derivative does not read z has its own
        // result in that place, which nobody sees.
        let z = self.linear_recorded(z.unwrap_or_else(|| y.clone()), weight, bias);
        Ok(record(function.name(), y, &[&z], |y| unary_rule(function, &z, y)))
    }

    /// What both ops take, checked.
    fn linear_operands<'a>(
        &'a self,
        op: &'static str,
        weight: &'a Tensor<B>,
        bias: Option<&'a Tensor<B>>,
    ) -> Result<[Option<&'a B::Tensor>; 3]> {
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
        Ok([Some(self.data()), Some(weight.data()), bias.map(|bias| bias.data())])
    }

    fn linear_recorded(
        &self,
        y: B::Tensor,
        weight: &Tensor<B>,
        bias: Option<&Tensor<B>>,
    ) -> Tensor<B> {
        let op = "linear";
        match bias {
            Some(bias) => record(op, y, &[self, weight, bias], |_| linear_rule(self, weight)),
            None => record(op, y, &[self, weight], |_| linear_rule(self, weight)),
        }
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
        let sum = self.widened()?.add(&bias.widened()?)?;
        sum.unary(activation.op())?.to_dtype(self.dtype())
    }
}

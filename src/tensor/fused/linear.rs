//! `linear`, `linear_activation` and `bias_activation`.

use smallvec::SmallVec;

use crate::autodiff::graph::{SharedRule, Upstream, bytes_of, record, rule_keeping, should_record};
use crate::autodiff::ops::bilinear;
use crate::autodiff::rules::{unary_keeps, unary_rule};
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::ops::{Activation, FusedOp};
use crate::tensor::einsum::contract::{Factor, contract};
use crate::tensor::einsum::equation::{Label, Labels};

use super::{composite_gradients, gradient_kernel, kernel};
use crate::tensor::base::Tensor;

/// # Linear layers
impl<B: Backend> Tensor<B> {
    /// `x · weightᵀ + bias`: x is `[…, k]`, `weight` is `[n, k]`, `bias` is `[n]`, and the result
    /// is `[…, n]`. The bits are those of `x.matmul(&weight.t()?)?.add(bias)`, except that 16-bit
    /// floats are rounded once.
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
    /// [`Error::ShapeMismatch`]; [`Error::InvalidShape`] for weights of other axes; [`Error::DTypeMismatch`];
    /// [`Error::UnsupportedDType`] for integers.
    pub fn linear(&self, weight: &Tensor<B>, bias: Option<&Tensor<B>>) -> Result<Self> {
        B::engine_linear(self, weight, bias, None)
    }

    /// `f(x · weightᵀ + bias)`: x is `[…, k]`, `weight` is `[n, k]`, `bias` is `[n]`, and the
    /// result is `[…, n]`.
    ///
    /// The bits are those of [`linear`](Tensor::linear) followed by the function, except that
    /// 16-bit floats are rounded once, at the end. The function is applied to tiles of the product
    /// that are still in the cache. `x · weightᵀ + bias` is kept only if the gradient needs it,
    /// which is the case for every activation but relu, relu6, sigmoid and tanh. Activations without an
    /// [`Activation::op`] are computed after the layer.
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
    /// As for [`linear`](Tensor::linear).
    pub fn linear_activation(
        &self,
        weight: &Tensor<B>,
        bias: Option<&Tensor<B>>,
        activation: Activation,
    ) -> Result<Self> {
        B::engine_linear(self, weight, bias, Some(activation))
    }

    pub(crate) fn linear_body(
        x: &Tensor<B>,
        weight: &Tensor<B>,
        bias: Option<&Tensor<B>>,
        activation: Option<Activation>,
    ) -> Result<Self> {
        let Some(activation) = activation else {
            x.check_linear("linear", weight, bias)?;
            return match kernel::<B, 1>(&x.linear_op(weight, bias, None, false))? {
                Some([y]) => Ok(x.linear_recorded(y, weight, bias)),
                None => x.linear_composite(weight, bias),
            };
        };
        x.check_linear("linear_activation", weight, bias)?;
        let Some(function) = activation.op() else {
            return Self::linear_body(x, weight, bias, None)?.activation(activation);
        };
        let inputs: SmallVec<[&Tensor<B>; 3]> =
            [Some(x), Some(weight), bias].into_iter().flatten().collect();
        let is_recorded = should_record(x.dtype(), &inputs);
        let keep_sums = is_recorded && unary_keeps(function).0;
        let fused = x.linear_op(weight, bias, Some(activation), keep_sums);
        let (y, z) = match keep_sums {
            true => kernel::<B, 2>(&fused)?.map(|[y, z]| (y, z)),
            // If the derivative does not read z, the result stands in for it and is not read.
            false => kernel::<B, 1>(&fused)?.map(|[y]| (y.clone(), y)),
        }
        .unzip();
        let (Some(y), Some(z)) = (y, z) else {
            let bias = bias.map(Tensor::widened).transpose()?;
            let z = x.widened()?.linear_composite(&weight.widened()?, bias.as_ref())?;
            return z.unary(function)?.to_dtype(x.dtype());
        };
        if !is_recorded {
            return Ok(Tensor::from_data(y));
        }
        // Recorded as two ops, linear and the function.
        let z = x.linear_recorded(z, weight, bias);
        Ok(record(function.name(), y, &[&z], |y| unary_rule(function, &z, y)))
    }

    /// Defines [`Tensor::linear`].
    fn linear_composite(&self, weight: &Tensor<B>, bias: Option<&Tensor<B>>) -> Result<Self> {
        let [x, columns] = [self.widened()?, weight.widened()?.t()?];
        let mut y = x.matmul(&columns)?;
        if let Some(bias) = bias {
            y = y.add(&bias.widened()?)?;
        }
        y.to_dtype(self.dtype())
    }

    fn linear_op<'a>(
        &'a self,
        weight: &'a Tensor<B>,
        bias: Option<&'a Tensor<B>>,
        activation: Option<Activation>,
        keep_sums: bool,
    ) -> FusedOp<'a, B::Tensor> {
        let (x, weight, bias) = (self.data(), weight.data(), bias.map(Tensor::data));
        FusedOp::Linear { x, weight, bias, activation, keep_sums }
    }

    fn check_linear(
        &self,
        op: &'static str,
        weight: &Tensor<B>,
        bias: Option<&Tensor<B>>,
    ) -> Result<()> {
        self.check_float(op)?;
        self.check_dtype(op, weight.dtype())?;
        if weight.rank() != 2 {
            let reason = "expected weights [outputs, inputs]";
            return Err(Error::InvalidShape { op, shape: *weight.shape(), reason });
        }
        if self.dims().last() != Some(&weight.dims()[1]) {
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *weight.shape() });
        }
        if let Some(bias) = bias {
            if bias.dims() != [weight.dims()[0]] {
                return Err(Error::ShapeMismatch { op, lhs: *weight.shape(), rhs: *bias.shape() });
            }
            self.check_dtype(op, bias.dtype())?;
        }
        Ok(())
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

    /// `f(x + bias)`: x is `[…, n]` and `bias` is `[n]`.
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
        B::engine_bias_activation(self, bias, activation)
    }

    pub(crate) fn bias_activation_body(
        x: &Tensor<B>,
        bias: &Tensor<B>,
        activation: Activation,
    ) -> Result<Self> {
        let op = "bias_activation";
        x.check_float(op)?;
        x.check_dtype(op, bias.dtype())?;
        if bias.rank() != 1 || x.dims().last() != Some(&bias.dims()[0]) {
            return Err(Error::ShapeMismatch { op, lhs: *x.shape(), rhs: *bias.shape() });
        }
        if activation.op().is_none() {
            return x.bias_activation_composite(bias, activation);
        }
        let fused = FusedOp::BiasActivation { x: x.data(), bias: bias.data(), activation };
        match kernel::<B, 1>(&fused)? {
            Some([y]) => {
                Ok(record(op, y, &[x, bias], |_| bias_activation_rule(x, bias, activation)))
            }
            None => x.bias_activation_composite(bias, activation),
        }
    }

    /// Defines [`Tensor::bias_activation`].
    fn bias_activation_composite(&self, bias: &Tensor<B>, activation: Activation) -> Result<Self> {
        let sum = self.widened()?.add(&bias.widened()?)?;
        sum.activation(activation)?.to_dtype(self.dtype())
    }

    /// Applies an activation chosen at run time.
    ///
    /// ```
    /// use swath::{ops::Activation, prelude::*};
    /// let y = tensor![-2.0, 3.0].activation(Activation::LeakyRelu(0.5))?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the method of the activation's name.
    pub fn activation(&self, activation: Activation) -> Result<Self> {
        match activation {
            Activation::LeakyRelu(slope) => self.leaky_relu(slope),
            Activation::Elu(scale) => self.elu(scale),
            _ => match activation.op() {
                Some(op) => self.unary(op),
                None => Err(Error::Unsupported { op: "activation", backend: B::NAME }),
            },
        }
    }
}

/// Gradient of both inputs, `g f′(x + bias)`; the engine sums it to the shape of the bias.
fn bias_activation_rule<B: Backend>(
    x: &Tensor<B>,
    bias: &Tensor<B>,
    activation: Activation,
) -> SharedRule<B> {
    let (x, bias) = (x.clone(), bias.clone());
    let bytes = bytes_of([Some(x.data()), Some(bias.data())]);
    rule_keeping(bytes, move |upstream: &Upstream<'_, B>, wanted| {
        let (g, x_data, bias_data) = (upstream.g.data(), x.data(), bias.data());
        let fused = FusedOp::BiasActivationGrad { g, x: x_data, bias: bias_data, activation };
        match gradient_kernel::<B, 1>(upstream, &fused)? {
            Some([gradient]) => {
                Ok(wanted.iter().map(|&wanted| wanted.then(|| gradient.clone())).collect())
            }
            None => composite_gradients(upstream, &[Some(&x), Some(&bias)], || {
                x.bias_activation_composite(&bias, activation)
            }),
        }
    })
}

/// Gradients of `y = x·Wᵀ + b`: `dx = g·W`, `dW = gᵀ·x` with all leading axes merged into the rows,
/// and `db` the sum of g over them, taken by the engine.
fn linear_rule<B: Backend>(x: &Tensor<B>, weight: &Tensor<B>) -> SharedRule<B> {
    bilinear([x, weight], |upstream, i, other| match i {
        0 => upstream.product(0, upstream.g, other),
        _ => weight_gradient(upstream, other),
    })
}

/// Gradient of the weight, `gᵀ·x`: `[n, k]` from `[…, n]` and `[…, k]`.
fn weight_gradient<B: Backend>(upstream: &Upstream<'_, B>, x: &Tensor<B>) -> Result<Tensor<B>> {
    let g = upstream.g;
    if x.rank() == 2 {
        return upstream.product(1, &g.t()?, x);
    }
    if x.rank() > 2 && x.layout().is_contiguous() && g.layout().is_contiguous() {
        let [g, x] = [g, x].map(|x| x.flatten(0, x.rank() - 2));
        return upstream.product(1, &g?.t()?, &x?);
    }
    const N: Label = 8;
    const K: Label = 9;
    let last = x.rank() - 1;
    let labels = |label: Label| -> Labels { (0..last as Label).chain([label]).collect() };
    let sequence = labels(N);
    let (a, b) = (Factor::new(g, &sequence)?, Factor::new(x, &labels(K))?);
    let shape = [g.dims()[last], x.dims()[last]];
    let axes = [N, K].into_iter().zip(shape);
    let order: Labels = axes.filter(|&(_, dim)| dim != 1).map(|(label, _)| label).collect();
    let kept = [N, K].into_iter().collect();
    contract(&a, &b, kept, Some(&order), &sequence)?.into_tensor(&order, shape.into())
}

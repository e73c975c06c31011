//! Normalization of channels: `batch_norm`, `batch_norm_training`, `group_norm`, `instance_norm`.
//!
//! ```text
//! (x - mean) / √(variance + ε) · weight + bias   =   x · scale + shift
//! ```
//!
//! Scale and shift are computed once for each channel, so an element costs one multiply-add. There is no kernel. In
//! training, the composite runs unrecorded, and its rule needs two sums over each channel.

use smallvec::{SmallVec, smallvec};

use crate::autodiff::graph::{
    InputGradients, SharedRule, Upstream, bytes_of, bytes_of_kept, record, rule_keeping,
};
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::runtime::recording::with_recording;
use crate::shape::{AxisSet, Shape};

use super::composite_gradients;
use super::conv::along_channels;
use super::norm::check_eps;
use crate::tensor::base::Tensor;

/// # Normalization of channels
impl<B: Backend> Tensor<B> {
    /// Normalizes channels by a given mean and variance: `(x - mean) / √(variance + eps) · weight + bias`. x is
    /// `[n, c, …]`; the others are `[c]` and have the dtype of x, or `F32` if x has 16 bits. This is batch
    /// normalization in evaluation (Ioffe and Szegedy, 2015).
    ///
    /// Each element takes one multiply-add, in `F32` if x has 16 bits. If |mean| ≫ √variance, cancellation amplifies
    /// rounding by about |mean| / √variance, here and in the gradient of the weight: that is computed, also in
    /// training, as `Σ g x - mean · Σ g`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 10.0], [3.0, 30.0]];
    /// let y = x.batch_norm(&tensor![2.0, 20.0], &tensor![4.0, 25.0], None, None, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-0.5, -2.0, 0.5, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] for fewer than two axes; [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`];
    /// [`Error::UnsupportedDType`] for integers; [`Error::InvalidArgument`] if `eps` is below zero or NaN.
    pub fn batch_norm(
        &self,
        mean: &Tensor<B>,
        variance: &Tensor<B>,
        weight: Option<&Tensor<B>>,
        bias: Option<&Tensor<B>>,
        eps: f64,
    ) -> Result<Self> {
        B::engine_batch_norm(self, [mean, variance], [weight, bias], eps)
    }

    pub(crate) fn batch_norm_body(
        x: &Tensor<B>,
        [mean, variance]: [&Tensor<B>; 2],
        [weight, bias]: [Option<&Tensor<B>>; 2],
        eps: f64,
    ) -> Result<Self> {
        x.check_channels("batch_norm", &[Some(mean), Some(variance), weight, bias], eps)?;
        x.normalized_by([mean, variance], [weight, bias], eps)
    }

    /// Normalizes channels like [`batch_norm`](Tensor::batch_norm), by their own mean and variance over all other axes.
    /// Returns the result, the mean and the variance. Batch normalization in training (Ioffe and Szegedy, 2015).
    ///
    /// The variance is that of the population, divided by the number of elements. Both statistics are `[c]`, at least
    /// `F32`, and have no gradient of their own. The gradient of the result accounts for their dependence on x.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 10.0], [3.0, 30.0]];
    /// let (y, mean, variance) = x.batch_norm_training(None, None, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, -1.0, 1.0, 1.0]);
    /// assert_eq!(mean.to_vec::<f32>()?, [2.0, 20.0]);
    /// assert_eq!(variance.to_vec::<f32>()?, [1.0, 100.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`batch_norm`](Tensor::batch_norm).
    pub fn batch_norm_training(
        &self,
        weight: Option<&Tensor<B>>,
        bias: Option<&Tensor<B>>,
        eps: f64,
    ) -> Result<(Self, Self, Self)> {
        B::engine_batch_norm_training(self, [weight, bias], eps)
    }

    pub(crate) fn batch_norm_training_body(
        x: &Tensor<B>,
        parameters: [Option<&Tensor<B>>; 2],
        eps: f64,
    ) -> Result<(Self, Self, Self)> {
        x.check_channels("batch_norm_training", &parameters, eps)?;
        let (y, statistics) = with_recording(false, || x.batch_norm_composite(parameters, eps))?;
        let inputs: SmallVec<[&Tensor<B>; 3]> =
            [Some(x)].into_iter().chain(parameters).flatten().collect();
        let y = record("batch_norm", y.into_data(), &inputs, |_| {
            batch_norm_rule(x, parameters, eps, &statistics)
        });
        let [mean, variance] = statistics;
        Ok((y, mean, variance))
    }

    /// The composite of [`Tensor::batch_norm_training`].
    fn batch_norm_composite(
        &self,
        parameters: [Option<&Tensor<B>>; 2],
        eps: f64,
    ) -> Result<(Self, [Self; 2])> {
        let (x, axes) = (self.widened()?, self.axes_except_channels());
        let (mean, variance) = (x.mean(Some(&axes), false)?, x.variance(Some(&axes), false, 0)?);
        let y = x.normalized_by([&mean, &variance], parameters, eps)?;
        Ok((y.to_dtype(self.dtype())?, [mean, variance]))
    }

    fn normalized_by(
        &self,
        [mean, variance]: [&Tensor<B>; 2],
        [weight, bias]: [Option<&Tensor<B>>; 2],
        eps: f64,
    ) -> Result<Self> {
        let mut scale = variance.widened()?.add_scalar(eps)?.rsqrt()?;
        if let Some(weight) = weight {
            scale = scale.mul(&weight.widened()?)?;
        }
        let shift = mean.widened()?.neg()?;
        let shift = match bias {
            Some(bias) => shift.mul_add(&scale, &bias.widened()?)?,
            None => shift.mul(&scale)?,
        };
        let y =
            self.widened()?.channels_mul_add(&scale, along_channels(&shift, self.rank() - 2)?)?;
        y.to_dtype(self.dtype())
    }

    /// `x · scale + shift`, with a scale for each channel.
    fn channels_mul_add(&self, scale: &Tensor<B>, shift: Tensor<B>) -> Result<Self> {
        self.mul_add(&along_channels(scale, self.rank() - 2)?, shift)
    }

    /// All axes except the channels.
    fn axes_except_channels(&self) -> AxisSet {
        (0..self.rank()).filter(|&axis| axis != 1).collect()
    }

    /// Normalizes groups of adjacent channels of each image by their own mean and variance, then scales and shifts each
    /// channel (Wu and He, 2018): `(x - mean) / √(variance + eps) · weight + bias`. x is `[n, c, …]`; `weight` and
    /// `bias` are `[c]` and have the dtype of x, or `F32` if x has 16 bits. The variance is that of the population.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 3.0, 10.0, 30.0]];
    /// let y = x.group_norm(2, Some(&tensor![1.0, 1.0, 2.0, 2.0]), None, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0, -2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`batch_norm`](Tensor::batch_norm), and [`Error::InvalidArgument`] if the groups do not divide the
    /// channels.
    pub fn group_norm(
        &self,
        groups: usize,
        weight: Option<&Tensor<B>>,
        bias: Option<&Tensor<B>>,
        eps: f64,
    ) -> Result<Self> {
        B::engine_group_norm("group_norm", self, Some(groups), [weight, bias], eps)
    }

    /// Normalizes each channel of each image by its own mean and variance, then scales and shifts it:
    /// [`group_norm`](Tensor::group_norm) with one group for each channel.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 3.0, 10.0, 30.0].reshape((1, 2, 2))?;
    /// let y = x.instance_norm(None, None, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`batch_norm`](Tensor::batch_norm).
    pub fn instance_norm(
        &self,
        weight: Option<&Tensor<B>>,
        bias: Option<&Tensor<B>>,
        eps: f64,
    ) -> Result<Self> {
        B::engine_group_norm("instance_norm", self, None, [weight, bias], eps)
    }

    /// The body of [`group_norm`](Tensor::group_norm). Without `groups`, each channel is a group.
    pub(crate) fn group_norm_body(
        op: &'static str,
        x: &Tensor<B>,
        groups: Option<usize>,
        [weight, bias]: [Option<&Tensor<B>>; 2],
        eps: f64,
    ) -> Result<Self> {
        x.check_channels(op, &[weight, bias], eps)?;
        let (n, channels) = (x.dims()[0], x.dims()[1]);
        let groups = groups.unwrap_or(channels.max(1));
        if groups == 0 || channels % groups != 0 {
            let reason =
                format!("{groups} groups do not divide the channels of shape {}", x.shape());
            return Err(Error::InvalidArgument { op, reason });
        }
        // Stay in `F32` through the affine map, so that 16-bit floats are rounded once.
        let is_plain = weight.is_none() && bias.is_none();
        let wide = if is_plain { x.clone() } else { x.widened()? };
        let row = x.dims()[1..].iter().product::<usize>() / groups;
        Shape::new([n, groups]).validate(op)?;
        let groups = if x.numel() == 0 { 1 } else { groups };
        let y =
            wide.reshape((n * groups, row))?.layer_norm(None, None, eps)?.reshape(*x.shape())?;
        let wide = |parameter: &Tensor<B>| along_channels(&parameter.widened()?, x.rank() - 2);
        let y = match (weight, bias) {
            (Some(weight), Some(bias)) => y.mul_add(&wide(weight)?, &wide(bias)?)?,
            (Some(weight), None) => y.mul(&wide(weight)?)?,
            (None, Some(bias)) => y.add(&wide(bias)?)?,
            (None, None) => y,
        };
        y.to_dtype(x.dtype())
    }

    /// Checks that the tensor is `[n, c, …]` and that every parameter is `[c]`.
    fn check_channels(
        &self,
        op: &'static str,
        parameters: &[Option<&Tensor<B>>],
        eps: f64,
    ) -> Result<()> {
        self.check_float(op)?;
        check_eps(op, self.shape(), eps)?;
        let &[_, channels, ..] = self.dims() else {
            let reason = "expected at least two axes: [n, channels, …]";
            return Err(Error::InvalidShape { op, shape: *self.shape(), reason });
        };
        for parameter in parameters.iter().flatten() {
            if parameter.dims() != [channels] {
                let (lhs, rhs) = (*self.shape(), *parameter.shape());
                return Err(Error::ShapeMismatch { op, lhs, rhs });
            }
            if parameter.dtype() != self.dtype().at_least_f32() {
                self.check_dtype(op, parameter.dtype())?;
            }
        }
        Ok(())
    }
}

/// Gradients of `x`, and of `weight` and `bias` if present. z is the normalized x, k the size of a channel.
///
/// ```text
/// bias      Σ g
/// weight    Σ g z = (Σ g x - mean Σ g) / √(variance + ε)
/// x         (g - Σ g / k - z Σ g z / k) weight / √(variance + ε) = g · scale + (x · slope + rest)
/// ```
fn batch_norm_rule<B: Backend>(
    x: &Tensor<B>,
    parameters: [Option<&Tensor<B>>; 2],
    eps: f64,
    statistics: &[Tensor<B>; 2],
) -> SharedRule<B> {
    let (x, [weight, bias]) = (x.clone(), parameters.map(|parameter| parameter.cloned()));
    let [mean, variance] = statistics.clone();
    let bytes = bytes_of([&x, &mean, &variance].map(|x| Some(x.data())));
    let bytes = bytes + bytes_of_kept([&weight, &bias]);
    rule_keeping(bytes, move |upstream: &Upstream<'_, B>, wanted| {
        let inputs = [Some(&x), weight.as_ref(), bias.as_ref()];
        if x.numel() == 0 {
            return inputs.into_iter().flatten().map(|x| x.zeros_like().map(Some)).collect();
        }
        if upstream.create_graph() {
            let parameters = [weight.as_ref(), bias.as_ref()];
            return composite_gradients(upstream, &inputs, || {
                Ok(x.batch_norm_composite(parameters, eps)?.0)
            });
        }
        let (g, x, axes) = (upstream.g.widened()?, x.widened()?, x.axes_except_channels());
        let reciprocal_deviation = variance.add_scalar(eps)?.rsqrt()?;
        let sum = g.sum(Some(&axes), false)?;
        let products = match x.rank() {
            2 => g.mul(&x)?.sum(Some(&axes), false)?,
            _ => {
                let images = |x: &Tensor<B>| x.flatten(2, -1);
                images(&g)?.dot_rows(&images(&x)?)?.sum(Some(&[0]), false)?
            }
        };
        let weight_grad = products.sub(&mean.mul(&sum)?)?.mul(&reciprocal_deviation)?;
        let x_grad = || {
            let scale = match &weight {
                Some(weight) => reciprocal_deviation.mul(&weight.widened()?)?,
                None => reciprocal_deviation.clone(),
            };
            let share = -((x.dims()[1] as f64) / (x.numel() as f64));
            let slope = weight_grad.mul(&reciprocal_deviation)?.mul(&scale)?.mul_scalar(share)?;
            let rest = sum.mul(&scale)?.mul_scalar(share)?.sub(&slope.mul(&mean)?)?;
            let rest = x.channels_mul_add(&slope, along_channels(&rest, x.rank() - 2)?)?;
            g.channels_mul_add(&scale, rest)
        };
        let mut gradients: InputGradients<B> = smallvec![wanted[0].then(x_grad).transpose()?];
        gradients.extend(weight.as_ref().map(|_| Some(weight_grad)));
        gradients.extend(bias.as_ref().map(|_| Some(sum)));
        Ok(gradients)
    })
}

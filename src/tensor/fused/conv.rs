//! Convolutions: `conv1d` to `conv3d`, `conv_transpose1d` to `conv_transpose3d`.
//!
//! ```text
//! conv(x, w)              y    linear in x and in w
//! conv_transpose(g, w)    the gradient of conv by x, from g
//! weight_gradient(x, g)   the gradient of conv by w, from g
//! ```
//!
//! The gradients of each of the three are two of the three, so that they can be differentiated any number of
//! times. The composite of the first is a product with a view of the windows; the others are its adjoints.

mod checks;
mod composite;
mod options;
mod slices;

use smallvec::SmallVec;

use crate::autodiff::graph::{SharedRule, Upstream, record, should_record};
use crate::autodiff::ops::{bilinear, bilinear_with_bias};
use crate::autodiff::rules::{unary_keeps, unary_rule};
use crate::backend::windows::images_like;
use crate::backend::{Backend, check_groups};
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Activation, FusedOp, Geometry};
use crate::shape::{AxisSet, Shape};

use super::kernel;
use crate::tensor::base::Tensor;
use checks::{check_bias, check_channels, check_images};
pub(super) use checks::{padded_extent, too_long};
use composite::{composite, transpose_composite, weight_composite, without_elements};
pub use options::{ConvOptions, ConvTransposeOptions, Padding};
pub use slices::ConvSlices;

macro_rules! convolutions {
    ($($(#[$doc:meta])* $method:ident $method_activation:ident $n:literal;)*) => {
        /// # Convolutions
        impl<B: Backend> Tensor<B> {
            $(
                $(#[$doc])*
                pub fn $method(
                    &self,
                    weight: &Tensor<B>,
                    bias: Option<&Tensor<B>>,
                    options: ConvOptions<$n>,
                ) -> Result<Self> {
                    self.conv_axes(stringify!($method), weight, bias, options, None)
                }

                #[doc = concat!("[`", stringify!($method), "`](Tensor::", stringify!($method), ") and a \
                    activation of its result, which is applied while the result is in the cache. 16-bit floats are \
                    rounded before it and after it.")]
                ///
                #[doc = concat!("```\nuse swath::cpu::prelude::*;\nuse swath::ops::Activation;\n\
                    let x = Tensor::ones([3; 2 + ", $n, "], DType::F32)?;\n\
                    let y = x.", stringify!($method_activation), "(&x, None, ConvOptions::default(), Activation::Relu)?;\n\
                    assert_eq!(y.dims()[2..], [1; ", $n, "]);\n# Ok::<(), Error>(())\n```")]
                ///
                /// # Errors
                #[doc = concat!("Those of [`", stringify!($method), "`](Tensor::", stringify!($method), ").")]
                pub fn $method_activation(
                    &self,
                    weight: &Tensor<B>,
                    bias: Option<&Tensor<B>>,
                    options: ConvOptions<$n>,
                    activation: Activation,
                ) -> Result<Self> {
                    self.conv_axes(stringify!($method_activation), weight, bias, options, Some(activation))
                }
            )*
        }
    };
}

convolutions! {
    /// The convolution of signals `[n, c, l]` with filters `[o, c / groups, k]` and a bias `[o]`: as
    /// [`conv2d`](Tensor::conv2d), along one axis. The result is `[n, o, l']`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[[1.0, 2.0, 4.0]]];
    /// let y = x.conv1d(&tensor![[[-1.0, 1.0]]], None, ConvOptions::default())?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`conv2d`](Tensor::conv2d).
    conv1d conv1d_activation 1;
    /// The convolution (cross-correlation) of images `[n, c, h, w]` with filters `[o, c / groups, kh, kw]` and
    /// a bias `[o]`. The result is `[n, o, h', w']`: pixel (i, j) of channel o is the sum of products of filter
    /// o with the window of the images that begins at pixel `(i, j) · stride - padding`; the bias is added to
    /// it. Along an axis there are `(extent + padding - dilation · (k - 1) - 1) / stride + 1` windows, rounded
    /// down, where the padding of both ends counts.
    ///
    /// Operands have any strides. Products of `f32` and `f64` are added in an order that depends on the
    /// filter's shape alone; 16-bit floats are added in `f32` and rounded once.
    ///
    /// ```
    /// use swath::prelude::*;
    /// use swath::{ConvOptions, Padding};
    /// let x = tensor![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]].reshape((1, 1, 2, 3))?;
    /// let edges = tensor![[1.0, -1.0]].reshape((1, 1, 1, 2))?;
    /// let y = x.conv2d(&edges, None, ConvOptions::default())?;
    /// assert_eq!(y.shape(), &Shape::new([1, 1, 2, 2]));
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, -1.0, -1.0, -1.0]);
    /// let same = ConvOptions { padding: Padding::Same, ..Default::default() };
    /// assert_eq!(x.conv2d(&edges, None, same)?.dims(), x.dims());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`](crate::Error::InvalidShape) for images or filters of other axes;
    /// [`Error::ShapeMismatch`](crate::Error::ShapeMismatch) if the bias does not fit;
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if channels do not fit, a stride, a dilation or the
    /// number of groups is 0, groups do not divide the channels, or no window fits;
    /// [`Error::DTypeMismatch`](crate::Error::DTypeMismatch);
    /// [`Error::UnsupportedDType`](crate::Error::UnsupportedDType) for integers.
    conv2d conv2d_activation 2;
    /// The convolution of volumes `[n, c, d, h, w]` with filters `[o, c / groups, kd, kh, kw]` and a bias
    /// `[o]`: as [`conv2d`](Tensor::conv2d), along three axes. The result is `[n, o, d', h', w']`.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let x = Tensor::ones((1, 1, 3, 3, 3), DType::F32)?;
    /// let y = x.conv3d(&Tensor::ones((1, 1, 2, 2, 2), DType::F32)?, None, ConvOptions::default())?;
    /// assert_eq!(y.to_vec::<f32>()?, [8.0; 8]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`conv2d`](Tensor::conv2d).
    conv3d conv3d_activation 3;
}

macro_rules! transposed_convolutions {
    ($($(#[$doc:meta])* $method:ident $n:literal;)*) => {
        /// # Transposed convolutions
        impl<B: Backend> Tensor<B> {
            $(
                $(#[$doc])*
                pub fn $method(
                    &self,
                    weight: &Tensor<B>,
                    bias: Option<&Tensor<B>>,
                    options: ConvTransposeOptions<$n>,
                ) -> Result<Self> {
                    self.conv_transpose_axes(stringify!($method), weight, bias, options)
                }
            )*
        }
    };
}

transposed_convolutions! {
    /// The transposed convolution of signals `[n, c, l]` with filters `[c, o / groups, k]` and a bias `[o]`:
    /// as [`conv_transpose2d`](Tensor::conv_transpose2d), along one axis.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[[1.0, 2.0]]];
    /// let y = x.conv_transpose1d(&tensor![[[10.0, 1.0]]], None, ConvTransposeOptions::default())?;
    /// assert_eq!(y.to_vec::<f32>()?, [10.0, 21.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`conv_transpose2d`](Tensor::conv_transpose2d).
    conv_transpose1d 1;
    /// The transposed convolution of images `[n, c, h, w]` with filters `[c, o / groups, kh, kw]` and a bias
    /// `[o]`: the gradient of [`conv2d`](Tensor::conv2d) with these filters by its images, from `self` as
    /// the upstream gradient. The result is `[n, o, h', w']` with extents of
    /// `(extent - 1) · stride - 2 · padding + dilation · (k - 1) + output_padding + 1`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// use swath::ConvTransposeOptions;
    /// let x = tensor![1.0, 2.0].reshape((1, 1, 1, 2))?;
    /// let w = tensor![10.0, 1.0].reshape((1, 1, 1, 2))?;
    /// let doubled = ConvTransposeOptions { stride: [1, 2], ..Default::default() };
    /// let y = x.conv_transpose2d(&w, None, doubled)?;
    /// assert_eq!(y.to_vec::<f32>()?, [10.0, 1.0, 20.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`conv2d`](Tensor::conv2d), and [`Error::InvalidArgument`](crate::Error::InvalidArgument) if the padding
    /// leaves no pixel, or the output padding is neither less than the stride nor than the dilation.
    conv_transpose2d 2;
    /// The transposed convolution of volumes `[n, c, d, h, w]` with filters `[c, o / groups, kd, kh, kw]` and a bias `[o]`:
    /// as [`conv_transpose2d`](Tensor::conv_transpose2d), along three axes.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let x = Tensor::ones((1, 1, 2, 2, 2), DType::F32)?;
    /// let y = x.conv_transpose3d(&x, None, ConvTransposeOptions::default())?;
    /// assert_eq!((y.dims(), y.sum_all()?.item::<f32>()?), (&[1, 1, 3, 3, 3][..], 64.0));
    /// # use swath::ConvTransposeOptions;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`conv_transpose2d`](Tensor::conv_transpose2d).
    conv_transpose3d 3;
}

impl<B: Backend> Tensor<B> {
    fn conv_axes<const N: usize>(
        &self,
        op: &'static str,
        weight: &Tensor<B>,
        bias: Option<&Tensor<B>>,
        options: ConvOptions<N>,
        activation: Option<Activation>,
    ) -> Result<Self> {
        check_images(op, self, N)?;
        check_images(op, weight, N)?;
        self.check_float(op)?;
        weight.check_dtype(op, self.dtype())?;
        let groups = options.groups;
        let [channels, filters, each] = [self.dims()[1], weight.dims()[0], weight.dims()[1]];
        check_groups(op, groups, [channels, filters])?;
        check_channels(op, self, weight, each.saturating_mul(groups))?;
        check_bias(op, weight, bias, filters)?;
        let geometry = options.geometry(op, self.shape(), &weight.dims()[2..])?;
        B::engine_conv(op, self, weight, bias, geometry, groups, activation)
    }

    pub(crate) fn conv_body(
        op: &'static str,
        x: &Tensor<B>,
        weight: &Tensor<B>,
        bias: Option<&Tensor<B>>,
        geometry: Geometry,
        groups: usize,
        activation: Option<Activation>,
    ) -> Result<Self> {
        let shape = images_like(x.shape(), x.dims()[0], weight.dims()[0], geometry.windows());
        let inputs: SmallVec<[&Tensor<B>; 3]> =
            [Some(x), Some(weight), bias].into_iter().flatten().collect();
        if shape.checked_numel(op)? == 0 {
            return without_elements(shape, &inputs);
        }
        let function = activation.and_then(Activation::op);
        let is_recorded = should_record(x.dtype(), &inputs);
        // Not fused: a function with a parameter, one whose derivative reads its argument, and functions of 16-bit
        // floats, whose argument would be rounded only if the op is recorded.
        let is_wide = matches!(x.dtype(), DType::F32 | DType::F64);
        let function = function.filter(|&f| is_wide && !(is_recorded && unary_keeps(f).0));
        let after = |y: Tensor<B>| match activation {
            Some(activation) => y.activation(activation),
            None => Ok(y),
        };
        let conv = FusedOp::Conv {
            x: x.data(),
            weight: weight.data(),
            bias: bias.map(Tensor::data),
            activation: activation.filter(|_| function.is_some()),
            geometry,
            groups,
        };
        let Some([y]) = kernel::<B, 1>(&conv)? else {
            return after(composite(x, weight, bias, &geometry, groups)?);
        };
        let recorded = |y| record("conv", y, &inputs, |_| conv_rule(x, weight, geometry, groups));
        match function {
            None => after(recorded(y)),
            Some(_) if !is_recorded => Ok(Tensor::from_data(y)),
            // Recorded as two ops. The derivative of the function reads only its output, so the output is recorded
            // as the result of the convolution, too.
            Some(f) => {
                let z = recorded(y.clone());
                Ok(record(f.name(), y, &[&z], |y| unary_rule(f, &z, y)))
            }
        }
    }

    fn conv_transpose_axes<const N: usize>(
        &self,
        op: &'static str,
        weight: &Tensor<B>,
        bias: Option<&Tensor<B>>,
        options: ConvTransposeOptions<N>,
    ) -> Result<Self> {
        let groups = options.groups;
        check_images(op, self, N)?;
        check_images(op, weight, N)?;
        self.check_float(op)?;
        weight.check_dtype(op, self.dtype())?;
        let [channels, filters, each] = [self.dims()[1], weight.dims()[0], weight.dims()[1]];
        let outputs = each.saturating_mul(groups);
        check_groups(op, groups, [channels, outputs])?;
        check_channels(op, self, weight, filters)?;
        check_bias(op, weight, bias, outputs)?;
        let geometry = options.geometry(op, self.shape(), &weight.dims()[2..])?;
        let shape = images_like(self.shape(), self.dims()[0], outputs, geometry.image());
        if shape.checked_numel(op)? == 0 {
            let inputs = [Some(self), Some(weight), bias];
            return without_elements(shape, &inputs.into_iter().flatten().collect::<Vec<_>>());
        }
        let y = B::engine_conv_transpose(self, weight, geometry, groups)?;
        match bias {
            Some(bias) => y.add(&along_channels(bias, N)?),
            None => Ok(y),
        }
    }

    /// The gradient of [`conv`](Tensor::conv) by the images; `g` is `[n, o, …]`.
    pub(crate) fn conv_transpose_body(
        g: &Tensor<B>,
        weight: &Tensor<B>,
        geometry: Geometry,
        groups: usize,
    ) -> Result<Self> {
        let op = FusedOp::ConvTranspose { g: g.data(), weight: weight.data(), geometry, groups };
        match kernel::<B, 1>(&op)? {
            Some([y]) => Ok(record(op.name(), y, &[g, weight], |_| {
                bilinear([g, weight], move |upstream, i, other| match i {
                    0 => B::engine_conv("conv", upstream.g, other, None, geometry, groups, None),
                    _ => B::engine_conv_weight_grad(upstream.g, other, geometry, groups),
                })
            })),
            None => transpose_composite(g, weight, &geometry, groups),
        }
    }

    /// The gradient of [`conv`](Tensor::conv) by the filters, from the images `x` and the upstream gradient `g`.
    pub(crate) fn conv_weight_grad_body(
        x: &Tensor<B>,
        g: &Tensor<B>,
        geometry: Geometry,
        groups: usize,
    ) -> Result<Self> {
        let op = FusedOp::ConvWeightGrad { g: g.data(), x: x.data(), geometry, groups };
        match kernel::<B, 1>(&op)? {
            Some([y]) => Ok(record(op.name(), y, &[x, g], |_| {
                bilinear([x, g], move |upstream, i, other| match i {
                    0 => B::engine_conv_transpose(other, upstream.g, geometry, groups),
                    _ => B::engine_conv("conv", other, upstream.g, None, geometry, groups, None),
                })
            })),
            None => weight_composite(x, g, &geometry, groups),
        }
    }
}

/// Gradients of images, filters and bias.
fn conv_rule<B: Backend>(
    x: &Tensor<B>,
    weight: &Tensor<B>,
    geometry: Geometry,
    groups: usize,
) -> SharedRule<B> {
    let gradient = move |upstream: &Upstream<'_, B>, i: usize, other: &Tensor<B>| match i {
        0 => B::engine_conv_transpose(upstream.g, other, geometry, groups),
        _ => B::engine_conv_weight_grad(other, upstream.g, geometry, groups),
    };
    bilinear_with_bias([x, weight], gradient, |g| {
        let axes: AxisSet = (0..g.rank()).filter(|&axis| axis != 1).collect();
        g.sum(Some(&axes), false)
    })
}

/// A bias `[o]` as `[o, 1, …]`.
pub(super) fn along_channels<B: Backend>(bias: &Tensor<B>, axes: usize) -> Result<Tensor<B>> {
    let ones = std::iter::repeat_n(1, axes);
    bias.reshape(bias.dims().iter().copied().chain(ones).collect::<Shape>())
}

//! [`Conv1d`], [`Conv2d`], [`ConvTranspose1d`], [`ConvTranspose2d`].

use super::{Module, init, locate};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::Activation;
use crate::options::{PerAxis, setters};
use crate::rng::Rng;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor::fused::conv::{ConvOptions, ConvTransposeOptions};

/// Options of convolution layers: those of the convolution, [`ConvOptions`] or [`ConvTransposeOptions`], and
/// of the parameters.
///
/// ```
/// use swath::nn::{Conv2d, ConvLayerOptions};
/// use swath::prelude::*;
///
/// let (mut rng, halving) = (Rng::seed(1), ConvOptions::new().stride(2).padding(1));
/// let layer: Conv2d = Conv2d::with_options(3, 16, 3, halving, &mut rng)?;
/// assert_eq!(layer.weight.dims(), [16, 3, 3, 3]);
/// let layer: Conv2d = Conv2d::with_options(3, 16, [3, 5], halving.bias(false), &mut rng)?;
/// assert!(layer.bias.is_none());
///
/// let conv = ConvOptions { stride: [2, 2], padding: Padding::Zeros([1, 1]), ..Default::default() };
/// let options = ConvLayerOptions { conv, bias: false, ..Default::default() };
/// let same: Conv2d = Conv2d::with_options(3, 16, [3, 5], options, &mut rng)?;
/// assert_eq!(same.options, layer.options);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ConvLayerOptions<O> {
    /// Stride, padding, dilation and groups.
    pub conv: O,
    /// True, the default, for a learned bias.
    pub bias: bool,
    /// dtype of the parameters; `F32` by default.
    pub dtype: DType,
}

impl<O: Default> Default for ConvLayerOptions<O> {
    fn default() -> Self {
        O::default().into()
    }
}

/// The options of a convolution, with a bias and of dtype `F32`.
impl<O> From<O> for ConvLayerOptions<O> {
    fn from(conv: O) -> Self {
        ConvLayerOptions { conv, bias: true, dtype: DType::F32 }
    }
}

setters! {
    [O] ConvLayerOptions<O> {
        bias: bool;
        dtype: DType;
    }
}

macro_rules! parameter_options {
    ($($Options:ident)*) => {$(
        /// # Options of layers
        impl<const N: usize> $Options<N> {
            /// Creates the options of a layer, with `bias` set.
            #[must_use]
            pub fn bias(self, bias: bool) -> ConvLayerOptions<Self> {
                ConvLayerOptions::from(self).bias(bias)
            }

            /// Creates the options of a layer, with the parameters' `dtype` set.
            #[must_use]
            pub fn dtype(self, dtype: DType) -> ConvLayerOptions<Self> {
                ConvLayerOptions::from(self).dtype(dtype)
            }
        }
    )*};
}
parameter_options!(ConvOptions ConvTransposeOptions);

/// Draws a weight `[first, second / groups, kernel…]` and a bias of as many elements as the layer has outputs.
fn parameters<B: Backend, O>(
    [first, second]: [usize; 2],
    outputs: usize,
    groups: usize,
    kernel: &[usize],
    &ConvLayerOptions { bias, dtype, .. }: &ConvLayerOptions<O>,
    rng: &mut Rng,
) -> Result<(Tensor<B>, Option<Tensor<B>>)> {
    if groups == 0 || first % groups != 0 || second % groups != 0 {
        let reason = format!("{groups} groups do not divide {first} and {second} channels");
        return Err(Error::InvalidArgument { op: "conv", reason });
    }
    let shape: Shape = [first, second / groups].iter().chain(kernel).copied().collect();
    shape.validate("conv")?;
    let fan_in: usize = shape.dims()[1..].iter().product();
    let bound = if fan_in == 0 { 0.0 } else { 1.0 / (fan_in as f64).sqrt() };
    let weight = init::uniform(shape, bound, dtype, rng)?;
    Ok((weight, bias.then(|| init::uniform(outputs, bound, dtype, rng)).transpose()?))
}

macro_rules! convolution_layers {
    ($(
        $(#[$doc:meta])*
        $Layer:ident $n:literal $conv:ident $(or $conv_activation:ident)?, $Options:ident $weight:literal
            |$inputs:ident, $outputs:ident| $axes:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $Layer<B: Backend = CpuBackend> {
            #[doc = $weight]
            pub weight: Tensor<B>,
            /// `[outputs]`.
            pub bias: Option<Tensor<B>>,
            /// Stride, padding, dilation and groups.
            pub options: $Options<$n>,
        }
        crate::module!($Layer<B> { weight: parameter, bias: parameter; skip options });

        impl<B: Backend> $Layer<B> {
            /// Creates a layer with a bias, of dtype `F32`, with a stride of 1 and without padding.
            ///
            /// # Errors
            /// Errors of tensor creation.
            pub fn new(
                $inputs: usize,
                $outputs: usize,
                kernel: impl PerAxis<$n>,
                rng: &mut Rng,
            ) -> Result<Self> {
                $Layer::with_options($inputs, $outputs, kernel, $Options::default(), rng)
            }

            /// Creates a layer with options.
            ///
            /// # Errors
            /// [`Error::InvalidArgument`] if the groups do not divide the channels, and for options
            /// that no images fit, such as a stride of 0; errors of tensor creation;
            /// [`Error::UnsupportedDType`] for integers.
            pub fn with_options(
                $inputs: usize,
                $outputs: usize,
                kernel: impl PerAxis<$n>,
                options: impl Into<ConvLayerOptions<$Options<$n>>>,
                rng: &mut Rng,
            ) -> Result<Self> {
                let (kernel, options) = (kernel.per_axis(), options.into());
                options.conv.check(stringify!($conv), &kernel)?;
                let groups = options.conv.groups;
                let (weight, bias) = parameters($axes, $outputs, groups, &kernel, &options, rng)?;
                Ok($Layer { weight, bias, options: options.conv })
            }
        }

        impl<B: Backend> Module<B> for $Layer<B> {
            fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
                x.$conv(&self.weight, self.bias.as_ref(), self.options)
                    .map_err(|error| locate(self, error))
            }

            $(
                fn forward_then(&self, x: &Tensor<B>, activation: Activation) -> Result<Tensor<B>> {
                    x.$conv_activation(&self.weight, self.bias.as_ref(), self.options, activation)
                        .map_err(|error| locate(self, error))
                }
            )?
        }
    )*};
}

convolution_layers! {
    /// Convolution of signals `[n, inputs, l]`, [`Tensor::conv1d`].
    ///
    /// Weight and bias are initialized uniformly in `±1/√fan-in`, as PyTorch's.
    Conv1d 1 conv1d or conv1d_activation, ConvOptions "`[outputs, inputs / groups, kernel]`."
        |inputs, outputs| [outputs, inputs];

    /// Convolution of images `[n, inputs, h, w]`, [`Tensor::conv2d`].
    ///
    /// Weight and bias are initialized uniformly in `±1/√fan-in`, as PyTorch's.
    ///
    /// ```
    /// use swath::nn::{Activation, Conv2d, Sequential};
    /// use swath::prelude::*;
    ///
    /// let mut rng = Rng::seed(1);
    /// // The activation is applied while the convolution's result is in the cache.
    /// let model: Sequential =
    ///     Sequential::new().push(Conv2d::new(3, 8, 3, &mut rng)?).push(Activation::Relu);
    /// let x = Tensor::randn((2, 3, 10, 12), &mut rng)?;
    /// assert_eq!(model.forward(&x)?.dims(), [2, 8, 8, 10]);
    /// # Ok::<(), Error>(())
    /// ```
    Conv2d 2 conv2d or conv2d_activation, ConvOptions "`[outputs, inputs / groups, height, width]`."
        |inputs, outputs| [outputs, inputs];

    /// Convolution of volumes `[n, inputs, d, h, w]`, [`Tensor::conv3d`].
    ///
    /// Weight and bias are initialized uniformly in `±1/√fan-in`, as PyTorch's.
    Conv3d 3 conv3d or conv3d_activation, ConvOptions "`[outputs, inputs / groups, depth, height, width]`."
        |inputs, outputs| [outputs, inputs];

    /// Transposed convolution of signals `[n, inputs, l]`, [`Tensor::conv_transpose1d`].
    ///
    /// Weight and bias are initialized uniformly in `±1/√(outputs / groups · kernel)`, as PyTorch's.
    ConvTranspose1d 1 conv_transpose1d, ConvTransposeOptions "`[inputs, outputs / groups, kernel]`."
        |inputs, outputs| [inputs, outputs];

    /// Transposed convolution of images `[n, inputs, h, w]`, [`Tensor::conv_transpose2d`].
    ///
    /// Weight and bias are initialized uniformly in `±1/√(outputs / groups · height · width)`, as PyTorch's.
    ConvTranspose2d 2 conv_transpose2d, ConvTransposeOptions "`[inputs, outputs / groups, height, width]`."
        |inputs, outputs| [inputs, outputs];

    /// Transposed convolution of volumes `[n, inputs, d, h, w]`, [`Tensor::conv_transpose3d`].
    ///
    /// Weight and bias are initialized uniformly in `±1/√(outputs / groups · kernel's elements)`, as PyTorch's.
    ConvTranspose3d 3 conv_transpose3d, ConvTransposeOptions "`[inputs, outputs / groups, depth, height, width]`."
        |inputs, outputs| [inputs, outputs];
}

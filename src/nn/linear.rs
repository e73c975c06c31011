//! [`Linear`].

use super::{Module, init, locate};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::Activation;
use crate::options::setters;
use crate::rng::Rng;
use crate::tensor::Tensor;

/// Linear layer, `x · weightᵀ + bias`, from `[…, inputs]` to `[…, outputs]`.
///
/// Weight and bias are initialized uniformly in `±1/√inputs`, as PyTorch's.
///
/// ```
/// use swath::nn::{Linear, LinearOptions, Module};
/// use swath::prelude::*;
///
/// let mut rng = Rng::seed(1);
/// let layer = Linear::new(3, 2, &mut rng)?;
/// assert_eq!(layer.forward(&tensor![[1.0, 2.0, 3.0]])?.dims(), [1, 2]);
///
/// let product: Linear = Linear::with_options(3, 2, LinearOptions::new().bias(false), &mut rng)?;
/// assert!(product.bias.is_none());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Linear<B: Backend = CpuBackend> {
    /// `[outputs, inputs]`.
    pub weight: Tensor<B>,
    /// `[outputs]`.
    pub bias: Option<Tensor<B>>,
}
crate::module!(Linear<B> { weight: parameter, bias: parameter });

/// Options of [`Linear::with_options`].
#[derive(Clone, Copy, Debug)]
pub struct LinearOptions {
    /// True, the default, for a learned bias.
    pub bias: bool,
    /// dtype of the parameters; `F32` by default.
    pub dtype: DType,
}

impl Default for LinearOptions {
    fn default() -> Self {
        LinearOptions { bias: true, dtype: DType::F32 }
    }
}

setters! {
    [] LinearOptions {
        @new;
        bias: bool;
        dtype: DType;
    }
}

impl<B: Backend> Linear<B> {
    /// Creates a layer with a bias, of dtype `F32`.
    ///
    /// # Errors
    /// Errors of tensor creation.
    pub fn new(inputs: usize, outputs: usize, rng: &mut Rng) -> Result<Self> {
        Linear::with_options(inputs, outputs, LinearOptions::default(), rng)
    }

    /// Creates a layer with options.
    ///
    /// # Errors
    /// Errors of tensor creation; [`Error::UnsupportedDType`](crate::Error::UnsupportedDType) for
    /// integers.
    pub fn with_options(
        inputs: usize,
        outputs: usize,
        options: LinearOptions,
        rng: &mut Rng,
    ) -> Result<Self> {
        let LinearOptions { bias, dtype } = options;
        let bound = if inputs == 0 { 0.0 } else { 1.0 / (inputs as f64).sqrt() };
        let weight = init::uniform((outputs, inputs), bound, dtype, rng)?;
        let bias = bias.then(|| init::uniform(outputs, bound, dtype, rng)).transpose()?;
        Ok(Linear { weight, bias })
    }
}

impl<B: Backend> Module<B> for Linear<B> {
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        x.linear(&self.weight, self.bias.as_ref()).map_err(|error| locate(self, error))
    }

    fn forward_then(&self, x: &Tensor<B>, activation: Activation) -> Result<Tensor<B>> {
        x.linear_activation(&self.weight, self.bias.as_ref(), activation)
            .map_err(|error| locate(self, error))
    }
}

//! Initializers of parameters. The rules and their names are PyTorch's (`torch.nn.init`).
//!
//! Every function returns a tracked leaf. The axes of a weight are `[outputs, inputs, …]`: its
//! *fan-in* is the product of all extents except the first, its *fan-out* of all except the second.
//!
//! ```
//! use swath::nn::{Linear, init};
//! use swath::prelude::*;
//!
//! let mut rng = Rng::seed(1);
//! let mut layer: Linear = Linear::new(64, 64, &mut rng)?;
//! layer.weight = init::normal((64, 64), 0.0, 0.02, DType::F32, &mut rng)?;
//! # Ok::<(), Error>(())
//! ```

use super::empty::without_values;
use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::{Error, Result, check_options};
use crate::rng::Rng;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Creates zeros.
///
/// # Errors
/// Errors of tensor creation.
pub fn zeros<B: Backend>(shape: impl Into<Shape>, dtype: DType) -> Result<Tensor<B>> {
    let shape = shape.into();
    without_values(&shape, dtype)
        .unwrap_or_else(|| Ok(Tensor::zeros(shape, dtype)?.requires_grad()))
}

/// Creates ones.
///
/// # Errors
/// Errors of tensor creation.
pub fn ones<B: Backend>(shape: impl Into<Shape>, dtype: DType) -> Result<Tensor<B>> {
    let shape = shape.into();
    without_values(&shape, dtype).unwrap_or_else(|| Ok(Tensor::ones(shape, dtype)?.requires_grad()))
}

/// Draws from the uniform distribution over `[-bound, bound)`.
///
/// # Errors
/// [`Error::InvalidArgument`] for a bound that is negative or not finite;
/// [`Error::UnsupportedDType`] for integers.
pub fn uniform<B: Backend>(
    shape: impl Into<Shape>,
    bound: f64,
    dtype: DType,
    rng: &mut Rng,
) -> Result<Tensor<B>> {
    let shape = shape.into();
    let op = "init::uniform";
    check_float(op, &shape, dtype)?;
    check_options(op, &[("bound", bound)])?;
    if let Some(parameter) = without_values(&shape, dtype) {
        return parameter;
    }
    let (count, range) = (shape.numel(), -bound..bound);
    if bound == 0.0 || count == 0 {
        return zeros(shape, dtype);
    }
    let drawn = match dtype {
        DType::F64 => rng.uniform_vec::<f64>(count, range).and_then(|x| Tensor::from_vec(x, shape)),
        _ => rng.uniform_vec::<f32>(count, range).and_then(|x| Tensor::from_vec(x, shape)),
    };
    let values = drawn.map_err(|error| error.of_shape(&shape))?;
    Ok(values.to_dtype(dtype)?.requires_grad())
}

/// Draws from the normal distribution with this mean and standard deviation.
///
/// # Errors
/// [`Error::InvalidArgument`] unless both are finite and the deviation is at least 0;
/// [`Error::UnsupportedDType`] for integers; errors of tensor creation.
pub fn normal<B: Backend>(
    shape: impl Into<Shape>,
    mean: f64,
    deviation: f64,
    dtype: DType,
    rng: &mut Rng,
) -> Result<Tensor<B>> {
    let shape = shape.into();
    let op = "init::normal";
    check_float(op, &shape, dtype)?;
    check_options(op, &[("the magnitude of mean", mean.abs()), ("deviation", deviation)])?;
    if let Some(parameter) = without_values(&shape, dtype) {
        return parameter;
    }
    let (count, shape) = (shape.numel(), &shape);
    let drawn = match dtype {
        DType::F64 => rng.normal_vec::<f64>(count).and_then(|x| Tensor::from_vec(x, shape)),
        _ => rng.normal_vec::<f32>(count).and_then(|x| Tensor::from_vec(x, shape)),
    };
    let values = drawn.map_err(|error| error.of_shape(shape))?;
    Ok(values.affine(deviation, mean)?.to_dtype(dtype)?.requires_grad())
}

/// Xavier initialization (Glorot and Bengio, 2010): uniform with bound
/// `gain √(6 / (fan-in + fan-out))`.
///
/// # Errors
/// [`Error::InvalidShape`] for fewer than two axes; errors of [`uniform`].
pub fn xavier_uniform<B: Backend>(
    shape: impl Into<Shape>,
    gain: f64,
    dtype: DType,
    rng: &mut Rng,
) -> Result<Tensor<B>> {
    let shape = shape.into();
    let (fan_in, fan_out) = fans("init::xavier_uniform", &shape)?;
    uniform(shape, gain * (6.0 / (fan_in + fan_out).max(1.0)).sqrt(), dtype, rng)
}

/// Xavier initialization (Glorot and Bengio, 2010): normal with standard deviation
/// `gain √(2 / (fan-in + fan-out))`.
///
/// # Errors
/// [`Error::InvalidShape`] for fewer than two axes; errors of [`normal`].
pub fn xavier_normal<B: Backend>(
    shape: impl Into<Shape>,
    gain: f64,
    dtype: DType,
    rng: &mut Rng,
) -> Result<Tensor<B>> {
    let shape = shape.into();
    let (fan_in, fan_out) = fans("init::xavier_normal", &shape)?;
    normal(shape, 0.0, gain * (2.0 / (fan_in + fan_out).max(1.0)).sqrt(), dtype, rng)
}

/// Kaiming initialization (He et al., 2015): uniform with bound `√(6 / ((1 + a²) fan-in))`, for
/// layers followed by a leaky ReLU of slope `a` (0 for ReLU).
///
/// # Errors
/// [`Error::InvalidShape`] for fewer than two axes; errors of [`uniform`].
pub fn kaiming_uniform<B: Backend>(
    shape: impl Into<Shape>,
    a: f64,
    dtype: DType,
    rng: &mut Rng,
) -> Result<Tensor<B>> {
    let shape = shape.into();
    let op = "init::kaiming_uniform";
    check_options(op, &[("the magnitude of a", a.abs())])?;
    let (fan_in, _) = fans(op, &shape)?;
    uniform(shape, (6.0 / ((1.0 + a * a) * fan_in.max(1.0))).sqrt(), dtype, rng)
}

/// Kaiming initialization (He et al., 2015): normal with standard deviation
/// `√(2 / ((1 + a²) fan-in))`.
///
/// # Errors
/// [`Error::InvalidShape`] for fewer than two axes; errors of [`normal`].
pub fn kaiming_normal<B: Backend>(
    shape: impl Into<Shape>,
    a: f64,
    dtype: DType,
    rng: &mut Rng,
) -> Result<Tensor<B>> {
    let shape = shape.into();
    let op = "init::kaiming_normal";
    check_options(op, &[("the magnitude of a", a.abs())])?;
    let (fan_in, _) = fans(op, &shape)?;
    normal(shape, 0.0, (2.0 / ((1.0 + a * a) * fan_in.max(1.0))).sqrt(), dtype, rng)
}

/// Returns fan-in and fan-out.
fn fans(op: &'static str, shape: &Shape) -> Result<(f64, f64)> {
    shape.validate(op)?;
    let &[outputs, inputs, ref window @ ..] = shape.dims() else {
        let reason = "expected at least two axes, [outputs, inputs, …]";
        return Err(Error::InvalidShape { op, shape: *shape, reason });
    };
    // Of a shape without elements, the other extents may be of any size.
    let window: f64 = window.iter().map(|&extent| extent as f64).product();
    Ok((inputs as f64 * window, outputs as f64 * window))
}

fn check_float(op: &'static str, shape: &Shape, dtype: DType) -> Result<()> {
    shape.validate(op)?;
    if !dtype.is_float() {
        return Err(Error::UnsupportedDType { op, dtype, shape: *shape });
    }
    Ok(())
}

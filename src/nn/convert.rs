//! [`to_dtype`].

use std::collections::HashMap;

use super::{Visit, for_each_tensor_mut};
use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Converts the parameters and floating-point buffers of a model to another floating-point dtype.
///
/// Converted parameters are new leaves: gradients of the old ones do not apply to them. A parameter
/// at several paths stays a single one.
///
/// ```
/// use swath::nn::{self, Linear};
/// use swath::prelude::*;
/// let mut layer: Linear = Linear::new(3, 2, &mut Rng::seed(1))?;
/// nn::to_dtype(&mut layer, DType::F64)?;
/// assert_eq!(layer.weight.dtype(), DType::F64);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::UnsupportedDType`] for an integer dtype; [`Error::InvalidArgument`] names a part that
/// is held by more than one [`Arc`](std::sync::Arc).
pub fn to_dtype<B: Backend>(model: &mut (impl Visit<B> + ?Sized), dtype: DType) -> Result<()> {
    if !dtype.is_float() {
        let (op, shape) = ("nn::to_dtype", Shape::scalar());
        return Err(Error::UnsupportedDType { op, dtype, shape });
    }
    let mut converted: HashMap<u64, Tensor<B>> = HashMap::new();
    for_each_tensor_mut(model, |_, tensor, _| {
        if !tensor.dtype().is_float() || tensor.dtype() == dtype {
            return Ok(());
        }
        let id = tensor.identity();
        if let Some(known) = id.and_then(|id| converted.get(&id)) {
            *tensor = known.clone();
            return Ok(());
        }
        *tensor = tensor.detach().to_dtype(dtype)?.marked_like(tensor);
        converted.extend(id.map(|id| (id, tensor.clone())));
        Ok(())
    })
}

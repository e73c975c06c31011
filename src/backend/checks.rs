//! What backends check of their operands, and the shapes and dtypes that follow.

use super::TensorData;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{DropoutMask, ReduceOp, UpdateOp};
use crate::shape::Shape;

/// As many values as the shape has elements.
pub(crate) fn check_len(op: &'static str, len: usize, shape: &Shape) -> Result<()> {
    shape.validate(op)?;
    if len != shape.numel() {
        return Err(Error::LengthMismatch { op, len, shape: *shape });
    }
    Ok(())
}

/// The shape of tensors joined along `axis`, at least one, of one dtype and alike in all other axes.
pub(crate) fn joined_shape<T: TensorData>(
    op: &'static str,
    tensors: &[&T],
    axis: usize,
) -> Result<Shape> {
    let Some(first) = tensors.first() else {
        return Err(Error::InvalidArgument { op, reason: "no tensors to join".to_owned() });
    };
    let lhs = *first.shape();
    if axis >= lhs.ndim() {
        let axis = isize::try_from(axis).unwrap_or(isize::MAX);
        return Err(Error::AxisOutOfRange { op, axis, shape: lhs });
    }
    let mut total = 0usize;
    for tensor in tensors {
        let rhs = *tensor.shape();
        if lhs.ndim() != rhs.ndim() || lhs.with_axis(axis, Some(rhs.dim(axis))) != rhs {
            return Err(Error::ShapeMismatch { op, lhs, rhs });
        }
        if first.dtype() != tensor.dtype() {
            let (lhs, rhs) = (first.dtype(), tensor.dtype());
            return Err(Error::DTypeMismatch { op, lhs, rhs, shape: *first.shape() });
        }
        total = total.saturating_add(rhs.dim(axis));
    }
    let joined = lhs.with_axis(axis, Some(total));
    joined.validate(op)?;
    Ok(joined)
}

/// Arithmetic is defined on floats, `I64` and `U8`.
pub(crate) fn check_arithmetic(op: &'static str, dtype: DType, shape: &Shape) -> Result<()> {
    match dtype {
        DType::Bool | DType::I32 | DType::U32 => {
            Err(Error::UnsupportedDType { op, dtype, shape: *shape })
        }
        _ => Ok(()),
    }
}

/// A probability in `[0, 1)`.
pub(crate) fn check_mask(op: &'static str, mask: &DropoutMask) -> Result<()> {
    if !(0.0..1.0).contains(&mask.p) {
        let reason = format!("the probability {} is not in 0..1", mask.p);
        return Err(Error::InvalidArgument { op, reason });
    }
    Ok(())
}

/// A step that is numbered from 1, where steps are numbered.
pub(crate) fn check_step(op: &UpdateOp) -> Result<()> {
    if let UpdateOp::Adam { step: 0, .. } = op {
        let reason = "step 0, but the first is 1".to_owned();
        return Err(Error::InvalidArgument { op: op.name(), reason });
    }
    Ok(())
}

/// Dtype of the result of a reduction; an error where there is none.
pub(crate) fn reduced_dtype(op: ReduceOp, dtype: DType, shape: Shape) -> Result<DType> {
    let is_truth = matches!(op, ReduceOp::Any | ReduceOp::All);
    if !(is_truth || dtype.has_arithmetic()) || (op.needs_floats() && !dtype.is_float()) {
        return Err(Error::UnsupportedDType { op: op.name(), dtype, shape });
    }
    Ok(match op {
        ReduceOp::Sum | ReduceOp::Prod => dtype.accumulated(),
        ReduceOp::ArgMax | ReduceOp::ArgMin => DType::I64,
        ReduceOp::Any | ReduceOp::All => DType::Bool,
        _ => dtype,
    })
}

//! Checks of operands, and the shapes and dtypes of results.

use super::{Arg, TensorData};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{DropoutMask, ReduceOp, UpdateOp};
use crate::shape::Shape;

/// Checks that `len` is the number of elements of `shape`.
pub(crate) fn check_len(op: &'static str, len: usize, shape: &Shape) -> Result<()> {
    shape.validate(op)?;
    if len != shape.numel() {
        return Err(Error::LengthMismatch { op, len, shape: *shape });
    }
    Ok(())
}

/// Checks that a tensor has this dtype.
#[inline]
pub(crate) fn check_dtype<T: TensorData>(op: &'static str, x: &T, dtype: DType) -> Result<()> {
    match x.dtype() {
        lhs if lhs == dtype => Ok(()),
        lhs => Err(Error::DTypeMismatch { op, lhs, rhs: dtype, shape: *x.shape() }),
    }
}

/// Checks that two tensors have the same shape.
#[inline]
pub(crate) fn check_same_shape<T: TensorData>(op: &'static str, lhs: &T, rhs: &T) -> Result<()> {
    match (lhs.shape(), rhs.shape()) {
        (lhs, rhs) if lhs == rhs => Ok(()),
        (&lhs, &rhs) => Err(Error::ShapeMismatch { op, lhs, rhs }),
    }
}

/// Common shape and dtype of the operands of an element-wise op. Numbers fit any.
pub(crate) fn common<'t, T: TensorData>(
    op: &'static str,
    operands: &[&'t Arg<'_, T>],
) -> Result<(&'t Shape, DType)> {
    let mut tensors = operands.iter().filter_map(|x| x.tensor());
    let first = tensors.next().ok_or_else(|| no_tensor(op))?;
    for x in tensors {
        check_dtype(op, first, x.dtype())?;
        check_same_shape(op, first, x)?;
    }
    Ok((first.shape(), first.dtype()))
}

/// The error of an element-wise op whose operands are all numbers.
#[cold]
pub(crate) fn no_tensor(op: &'static str) -> Error {
    let reason = "expected a tensor among the operands, got numbers alone".to_owned();
    Error::InvalidArgument { op, reason }
}

/// Checks that an index along `axis` has dtype `I64`, the rank of `x`, and at most the extents of `x` along
/// all other axes.
pub(crate) fn check_indices<T: TensorData>(
    op: &'static str,
    x: &T,
    axis: usize,
    index: &T,
) -> Result<()> {
    check_dtype(op, index, DType::I64)?;
    let (lhs, rhs) = (*x.shape(), *index.shape());
    lhs.check_axis(op, axis)?;
    let fits = |i: usize| i == axis || rhs.dim(i) <= lhs.dim(i);
    if lhs.ndim() != rhs.ndim() || !(0..lhs.ndim()).all(fits) {
        return Err(Error::ShapeMismatch { op, lhs, rhs });
    }
    Ok(())
}

/// Shape of tensors concatenated along `axis`: at least one, of one dtype, with equal extents along all
/// other axes.
pub(crate) fn joined_shape<T: TensorData>(
    op: &'static str,
    tensors: &[&T],
    axis: usize,
) -> Result<Shape> {
    let Some(first) = tensors.first() else {
        let reason = "expected at least one tensor".to_owned();
        return Err(Error::InvalidArgument { op, reason });
    };
    let lhs = *first.shape();
    lhs.check_axis(op, axis)?;
    let mut total = 0usize;
    for tensor in tensors {
        let rhs = *tensor.shape();
        if lhs.ndim() != rhs.ndim() || lhs.with_axis(axis, Some(rhs.dim(axis))) != rhs {
            return Err(Error::ShapeMismatch { op, lhs, rhs });
        }
        check_dtype(op, *first, tensor.dtype())?;
        total = total.saturating_add(rhs.dim(axis));
    }
    let joined = lhs.with_axis(axis, Some(total));
    joined.validate(op)?;
    Ok(joined)
}

/// Checks that arithmetic is defined for a dtype: all but `Bool`.
pub(crate) fn check_arithmetic(op: &'static str, dtype: DType, shape: &Shape) -> Result<()> {
    match dtype.has_arithmetic() {
        true => Ok(()),
        false => Err(Error::UnsupportedDType { op, dtype, shape: *shape }),
    }
}

/// Checks that the probability is in `[0, 1)`.
pub(crate) fn check_mask(op: &'static str, mask: &DropoutMask) -> Result<()> {
    if !(0.0..1.0).contains(&mask.p) {
        let reason = format!("the probability {} is not in 0..1", mask.p);
        return Err(Error::InvalidArgument { op, reason });
    }
    Ok(())
}

/// Checks the operands of a step, and that the steps of Adam are numbered from 1.
pub(crate) fn check_update<T: TensorData>(
    op: &UpdateOp,
    parameter: &T,
    gradient: &T,
    state: &[T],
) -> Result<()> {
    let name = op.name();
    if let UpdateOp::Adam { step: 0, .. } = op {
        let reason = "step 0, but the first is 1".to_owned();
        return Err(Error::InvalidArgument { op: name, reason });
    }
    if state.len() != op.states() {
        let reason = format!("expected {} state tensors, got {}", op.states(), state.len());
        return Err(Error::InvalidArgument { op: name, reason });
    }
    for other in state.iter().chain([gradient]) {
        check_same_shape(name, parameter, other)?;
        check_dtype(name, parameter, other.dtype())?;
    }
    Ok(())
}

/// Dtype of the result of a reduction; an error if the operand's dtype is not supported.
pub(crate) fn reduced_dtype(op: ReduceOp, dtype: DType, shape: Shape) -> Result<DType> {
    if op.needs_floats() && !dtype.is_float() {
        return Err(Error::UnsupportedDType { op: op.name(), dtype, shape });
    }
    Ok(match op {
        ReduceOp::Sum | ReduceOp::Prod => dtype.accumulated(),
        ReduceOp::ArgMax | ReduceOp::ArgMin => DType::I64,
        ReduceOp::Any | ReduceOp::All => DType::Bool,
        _ => dtype,
    })
}

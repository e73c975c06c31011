//! Checks of operands, and the shapes and dtypes of results.

mod fused;

pub(crate) use fused::check_groups;

use super::{Arg, TensorData};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{AxisPart, Layout, SliceItem};
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
    if lhs.ndim() != rhs.ndim() {
        return Err(Error::ShapeMismatch { op, lhs, rhs });
    }
    check_extents(op, &lhs, &rhs, |i| i == axis || rhs.dim(i) <= lhs.dim(i))
}

/// Fails with the first axis along which two shapes of equal rank do not fit.
fn check_extents(
    op: &'static str,
    &lhs: &Shape,
    &rhs: &Shape,
    fits: impl Fn(usize) -> bool,
) -> Result<()> {
    // The axis is below `MAX_RANK`.
    match (0..lhs.ndim()).find(|&i| !fits(i)) {
        Some(axis) => Err(Error::ExtentMismatch { op, axis: axis as u8, lhs, rhs }),
        None => Ok(()),
    }
}

/// Checks that `sorted` is `[n]`, or `[…, n]` for values `[…, m]`, of the same dtype.
pub(crate) fn check_search<T: TensorData>(op: &'static str, sorted: &T, values: &T) -> Result<()> {
    check_dtype(op, values, sorted.dtype())?;
    let (lhs, rhs) = (*sorted.shape(), *values.shape());
    let leading =
        |shape: &Shape| shape.ndim().checked_sub(1).map(|last| shape.with_axis(last, None));
    match lhs.ndim() {
        1 => Ok(()),
        0 => {
            let reason = "expected sorted elements along at least one axis";
            Err(Error::InvalidShape { op, shape: lhs, reason })
        }
        _ if leading(&lhs) == leading(&rhs) => Ok(()),
        _ => Err(Error::ShapeMismatch { op, lhs, rhs }),
    }
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
        if lhs.ndim() != rhs.ndim() {
            return Err(Error::ShapeMismatch { op, lhs, rhs });
        }
        check_extents(op, &lhs, &rhs, |i| i == axis || lhs.dim(i) == rhs.dim(i))?;
        check_dtype(op, *first, tensor.dtype())?;
        total = total.saturating_add(rhs.dim(axis));
    }
    let joined = lhs.with_axis(axis, Some(total));
    joined.validate(op)?;
    Ok(joined)
}

/// Shape of the result of [`Backend::assemble`](super::Backend::assemble). Checks that there is a list of parts for
/// each axis and that the parts lie within the axes.
pub(crate) fn assembled_shape(
    op: &'static str,
    x: &Shape,
    axes: &[Vec<AxisPart>],
) -> Result<Shape> {
    if axes.len() != x.ndim() {
        let reason = format!("expected parts of {} axes, got {}", x.ndim(), axes.len());
        return Err(Error::InvalidArgument { op, reason });
    }
    let mut out = *x;
    for (axis, parts) in axes.iter().enumerate().filter(|(_, parts)| !parts.is_empty()) {
        for part in parts {
            let AxisPart::From { start, len, step } = *part else { continue };
            let reach = len.saturating_sub(1).saturating_mul(step.unsigned_abs());
            let (first, last) = match step {
                0.. => (Some(start), start.saturating_add(reach)),
                _ => (start.checked_sub(reach), start),
            };
            if len > 0 && (first.is_none() || last >= x.dim(axis)) {
                let reason = format!("{part:?} exceeds axis {axis} of shape {x}");
                return Err(Error::InvalidArgument { op, reason });
            }
        }
        let dim = parts.iter().fold(0usize, |sum, part| sum.saturating_add(part.len()));
        out = out.with_axis(axis, Some(dim));
    }
    out.validate(op)?;
    Ok(out)
}

/// The positions in a contiguous tensor of this shape that `items` select. Checks that `source` has the shape of the
/// selection and the dtype of the tensor.
pub(crate) fn assigned_layout<T: TensorData>(
    op: &'static str,
    x: &T,
    items: &[SliceItem],
    source: &T,
) -> Result<Layout> {
    check_dtype(op, x, source.dtype())?;
    let target = Layout::contiguous(*x.shape()).slice(op, items)?;
    if target.shape() != source.shape() {
        return Err(Error::ShapeMismatch { op, lhs: *target.shape(), rhs: *source.shape() });
    }
    Ok(target)
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

//! What provided methods of [`Backend`] and the tensor layer do with operands before they reach a kernel:
//! broadcasting, axes of reductions, permuted layouts.

use super::{Arg, Backend, TensorData, check_arithmetic, reduced_dtype};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops::{BinaryOp, ReduceOp};
use crate::shape::{AxisSet, Shape, broadcast_shape_for};

/// An `F32` tensor of one value.
pub(super) fn filled<B: Backend>(op: &'static str, shape: Shape, value: f64) -> Result<B::Tensor> {
    shape.validate(op)?;
    B::full(shape, Scalar::Float(value), DType::F32)
}

/// A binary op of two tensors, broadcasting.
pub(super) fn broadcast_binary<B: Backend>(
    op: BinaryOp,
    a: &B::Tensor,
    b: &B::Tensor,
) -> Result<B::Tensor> {
    let (a, b) = broadcast_pair::<B>(op.name(), a, b)?;
    let (a, b) = unify_bool::<B>(op, a, b)?;
    check_arithmetic(op.name(), a.dtype(), a.shape())?;
    B::binary(op, Arg::Owned(a), Arg::Owned(b))
}

/// Broadcasts both operands to their common shape, as views.
pub(crate) fn broadcast_pair<B: Backend>(
    op: &'static str,
    a: &B::Tensor,
    b: &B::Tensor,
) -> Result<(B::Tensor, B::Tensor)> {
    let shape = broadcast_shape_for(op, a.shape(), b.shape())?;
    Ok((broadcast::<B>(op, a, &shape)?, broadcast::<B>(op, b, &shape)?))
}

/// Broadcasts a tensor to `shape`, as a view.
pub(crate) fn broadcast<B: Backend>(
    op: &'static str,
    x: &B::Tensor,
    shape: &Shape,
) -> Result<B::Tensor> {
    match x.shape() == shape {
        true => Ok(x.clone()),
        false => B::view(x, x.layout().broadcast_to(op, shape)?),
    }
}

/// Converts the `Bool` operand of a multiplication to the other's dtype. All other operands must have equal
/// dtypes.
pub(crate) fn unify_bool<B: Backend>(
    op: BinaryOp,
    a: B::Tensor,
    b: B::Tensor,
) -> Result<(B::Tensor, B::Tensor)> {
    let (lhs, rhs, shape) = (a.dtype(), b.dtype(), *a.shape());
    match (lhs, rhs) {
        _ if lhs == rhs => Ok((a, b)),
        (DType::Bool, _) if op == BinaryOp::Mul => Ok((B::cast(&a, rhs)?, b)),
        (_, DType::Bool) if op == BinaryOp::Mul => B::cast(&b, lhs).map(|b| (a, b)),
        _ => Err(Error::DTypeMismatch { op: op.name(), lhs, rhs, shape }),
    }
}

/// A reduction, and the function that runs it.
#[doc(hidden)]
#[derive(Debug)]
pub struct Reducer<T> {
    pub(crate) op: ReduceOp,
    pub(crate) run: fn(ReduceOp, &T, &[usize]) -> Result<T>,
}

/// Checks axes and dtype, reduces, and removes the reduced axes unless `keepdims`. Returns the axes too, sorted.
pub(crate) fn reduce_axes<B: Backend>(
    reducer: Reducer<B::Tensor>,
    x: &B::Tensor,
    axes: Option<&[usize]>,
    keepdims: bool,
) -> Result<(B::Tensor, AxisSet)> {
    let Reducer { op, run } = reducer;
    let (name, shape) = (op.name(), *x.shape());
    reduced_dtype(op, x.dtype(), shape)?;
    let axes = shape.resolve_axes(name, axes)?;
    if op.needs_elements() && shape.numel() == 0 && shape.reduced(&axes, false).numel() > 0 {
        return Err(Error::EmptyReduction { op: name, shape });
    }
    let out = run(op, x, &axes)?;
    if keepdims || axes.is_empty() {
        return Ok((out, axes));
    }
    Ok((B::reshape(&out, shape.reduced(&axes, false))?, axes))
}

/// Permutes the axes of a layout into the order of `axes`; `None` swaps the last two.
pub(crate) fn transposed(
    op: &'static str,
    layout: &Layout,
    axes: Option<&[usize]>,
) -> Result<Layout> {
    if let Some(axes) = axes {
        return layout.permute(op, axes);
    }
    let rank = layout.shape().ndim();
    if rank < 2 {
        let reason = "expected at least two axes to swap";
        return Err(Error::InvalidShape { op, shape: *layout.shape(), reason });
    }
    let mut axes: AxisSet = (0..rank).collect();
    axes.swap(rank - 2, rank - 1);
    layout.permute(op, &axes)
}

/// Axes of `from` that broadcasting from `to` repeats or adds.
pub(crate) fn sum_to_axes(op: &'static str, from: &Shape, to: &Shape) -> Result<AxisSet> {
    let mismatch = |_| Error::ShapeMismatch { op, lhs: *from, rhs: *to };
    Layout::contiguous(*to).broadcast_to(op, from).map_err(mismatch)?;
    let lead = from.ndim() - to.ndim();
    let is_repeated =
        |&axis: &usize| axis < lead || (to.dims()[axis - lead] == 1 && from.dims()[axis] != 1);
    Ok((0..from.ndim()).filter(is_repeated).collect())
}

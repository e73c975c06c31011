//! [`ReferenceBackend`]: the living definition of every operation, slow and obvious.
//!
//! Every element is a [`Scalar`] that holds the value of its dtype exactly; every result is worked
//! out one element at a time from the index, in `f64` or `i64`, and rounded once to its dtype:
//!
//! ```text
//! for each index of the result
//!     result[index] = round(dtype, definition(operands at the indices that the op reads))
//! ```
//!
//! `build` is that loop; an operation is the definition given to it. Element-wise definitions are
//! those of the op table, the rest stand here. Nothing is shared with the other backends, so that
//! agreeing with this one means something. It has the required methods alone: all else is composed of
//! them, and computed in `f64` it is what kernels of other backends are compared with.

mod exact;
mod reduce;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::backend::{Arg, Backend, TensorData, check_arithmetic, check_len, joined_shape};
use crate::dtype::{DType, Element, HostData, Scalar, for_dtype};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops::{BinaryOp, CompareOp, ReduceOp, UnaryOp};
use crate::shape::{AxisSet, Shape};

/// The backend that defines what the others must compute: every op and dtype, one element at a
/// time. For tests and for looking up an answer, not for work.
///
/// ```
/// use swath::{Backend, ReferenceBackend};
/// let x = ReferenceBackend::from_vec(vec![1.0, 2.0, 3.0], 3)?;
/// let total = ReferenceBackend::sum(&x, None, false)?;
/// assert_eq!(ReferenceBackend::to_host(&total)?.get(0), Some(6.0.into()));
/// # Ok::<(), swath::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReferenceBackend;

/// A tensor of [`ReferenceBackend`]: always in row-major order without gaps, views are copies.
#[derive(Clone, Debug)]
pub struct ReferenceTensor {
    layout: Layout,
    dtype: DType,
    values: Arc<Vec<Scalar>>,
}

impl TensorData for ReferenceTensor {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn dtype(&self) -> DType {
        self.dtype
    }
}

impl ReferenceTensor {
    fn at(&self, index: &[usize]) -> Scalar {
        self.values[ravel(index, self.shape())]
    }
}

/// Position of an index in row-major order.
fn ravel(index: &[usize], shape: &Shape) -> usize {
    index.iter().zip(shape.dims()).fold(0, |position, (&i, &dim)| position * dim + i)
}

/// The index at a position in row-major order.
fn unravel(position: usize, shape: &Shape) -> AxisSet {
    let mut rest = position;
    let mut index: AxisSet = shape.dims().iter().copied().collect();
    for slot in index.iter_mut().rev() {
        let dim = *slot;
        *slot = rest % dim;
        rest /= dim;
    }
    index
}

/// The nearest value of a dtype.
fn round(dtype: DType, x: Scalar) -> Scalar {
    for_dtype!(dtype, T => T::from_scalar(x).to_scalar())
}

/// An empty vector with room for the elements of a shape.
fn room(op: &'static str, shape: &Shape) -> Result<Vec<Scalar>> {
    shape.validate(op)?;
    let mut values = Vec::new();
    let bytes = shape.numel().saturating_mul(size_of::<Scalar>());
    let failed = |_| Error::OutOfMemory { op, bytes };
    values.try_reserve_exact(shape.numel()).map_err(failed)?;
    Ok(values)
}

/// The tensor whose element at each index is `definition(index)`, rounded to the dtype.
fn build(
    op: &'static str,
    shape: Shape,
    dtype: DType,
    mut definition: impl FnMut(&[usize]) -> Result<Scalar>,
) -> Result<ReferenceTensor> {
    let mut values = room(op, &shape)?;
    for position in 0..shape.numel() {
        let index = unravel(position, &shape);
        values.push(round(dtype, definition(&index)?));
    }
    Ok(ReferenceTensor { layout: Layout::contiguous(shape), dtype, values: Arc::new(values) })
}

/// Shape and dtype that the operands of an element-wise op have in common.
fn common(
    op: &'static str,
    a: &Arg<'_, ReferenceTensor>,
    b: &Arg<'_, ReferenceTensor>,
) -> Result<(Shape, DType)> {
    match (a.tensor(), b.tensor()) {
        (Some(a), Some(b)) => {
            check_same(op, a, b)?;
            Ok((*a.shape(), a.dtype))
        }
        (Some(x), None) | (None, Some(x)) => Ok((*x.shape(), x.dtype)),
        (None, None) => Err(no_tensor(op)),
    }
}

fn no_tensor(op: &'static str) -> Error {
    Error::InvalidArgument { op, reason: "a scalar needs a tensor beside it".to_owned() }
}

fn check_same(op: &'static str, a: &ReferenceTensor, b: &ReferenceTensor) -> Result<()> {
    check_dtype(op, a, b.dtype)?;
    match a.shape() == b.shape() {
        true => Ok(()),
        false => Err(Error::ShapeMismatch { op, lhs: *a.shape(), rhs: *b.shape() }),
    }
}

fn check_dtype(op: &'static str, x: &ReferenceTensor, dtype: DType) -> Result<()> {
    match x.dtype == dtype {
        true => Ok(()),
        false => Err(Error::DTypeMismatch { op, lhs: x.dtype, rhs: dtype, shape: *x.shape() }),
    }
}

fn operand(x: &Arg<'_, ReferenceTensor>, index: &[usize], dtype: DType) -> Scalar {
    match x {
        Arg::Ref(x) => x.at(index),
        Arg::Owned(x) => x.at(index),
        Arg::Scalar(x) => round(dtype, *x),
    }
}

/// `index` with what stands at `axis` replaced by the entry of the tensor of indices.
fn redirected(
    op: &'static str,
    x: &ReferenceTensor,
    axis: usize,
    indices: &ReferenceTensor,
    index: &[usize],
) -> Result<AxisSet> {
    let entry = indices.at(index).to_i64();
    let mut out: AxisSet = index.iter().copied().collect();
    out[axis] = match usize::try_from(entry) {
        Ok(i) if i < x.shape().dim(axis) => i,
        _ => return Err(Error::IndexOutOfRange { op, index: entry, axis, shape: *x.shape() }),
    };
    Ok(out)
}

/// The tensor of indices is `I64`, of `x`'s rank, and within `x` along every axis but `axis`.
fn check_indices(
    op: &'static str,
    x: &ReferenceTensor,
    axis: usize,
    indices: &ReferenceTensor,
) -> Result<()> {
    check_dtype(op, indices, DType::I64)?;
    check_axis(op, x.shape(), axis)?;
    let pairs = || indices.shape().dims().iter().zip(x.shape().dims()).enumerate();
    let fits = pairs().all(|(i, (&have, &most))| i == axis || have <= most);
    match fits && indices.shape().ndim() == x.shape().ndim() {
        true => Ok(()),
        false => Err(Error::ShapeMismatch { op, lhs: *x.shape(), rhs: *indices.shape() }),
    }
}

fn check_axis(op: &'static str, shape: &Shape, axis: usize) -> Result<()> {
    match axis < shape.ndim() {
        true => Ok(()),
        false => {
            let axis = isize::try_from(axis).unwrap_or(isize::MAX);
            Err(Error::AxisOutOfRange { op, axis, shape: *shape })
        }
    }
}

impl Backend for ReferenceBackend {
    type Tensor = ReferenceTensor;

    const NAME: &'static str = "reference";

    fn from_host(data: HostData, shape: Shape) -> Result<ReferenceTensor> {
        check_len("from_host", data.len(), &shape)?;
        let mut values = room("from_host", &shape)?;
        values.extend((0..data.len()).filter_map(|i| data.get(i)));
        let layout = Layout::contiguous(shape);
        Ok(ReferenceTensor { layout, dtype: data.dtype(), values: Arc::new(values) })
    }

    fn to_host(x: &ReferenceTensor) -> Result<HostData> {
        let values = x.values.iter().copied();
        Ok(for_dtype!(x.dtype, T => T::into_host(values.map(T::from_scalar).collect())))
    }

    fn full(shape: Shape, value: Scalar, dtype: DType) -> Result<ReferenceTensor> {
        build("full", shape, dtype, |_| Ok(value))
    }

    fn cast(x: &ReferenceTensor, dtype: DType) -> Result<ReferenceTensor> {
        build("to_dtype", *x.shape(), dtype, |index| Ok(x.at(index)))
    }

    fn view(x: &ReferenceTensor, layout: Layout) -> Result<ReferenceTensor> {
        if layout.extent().is_some_and(|(_, last)| last >= x.values.len()) {
            let (lhs, rhs) = (*x.shape(), *layout.shape());
            return Err(Error::ShapeMismatch { op: "view", lhs, rhs });
        }
        build("view", *layout.shape(), x.dtype, |index| {
            let mut position = layout.offset() as isize;
            for (&i, &stride) in index.iter().zip(layout.strides()) {
                position += i as isize * stride;
            }
            Ok(x.values[position as usize])
        })
    }

    fn contiguous(x: &ReferenceTensor) -> Result<ReferenceTensor> {
        Ok(x.clone())
    }

    fn unary<'a>(op: UnaryOp, x: impl Into<Arg<'a, ReferenceTensor>>) -> Result<ReferenceTensor> {
        let x = x.into();
        let name = op.name();
        let x = x.tensor().ok_or_else(|| no_tensor(name))?;
        check_arithmetic(name, x.dtype, x.shape())?;
        if x.dtype.is_float() {
            let f = op.reference();
            return build(name, *x.shape(), x.dtype, |index| {
                Ok(Scalar::Float(f(x.at(index).to_f64())))
            });
        }
        let undefined = Error::UnsupportedDType { op: name, dtype: x.dtype, shape: *x.shape() };
        let f = op.reference_integer().ok_or(undefined)?;
        build(name, *x.shape(), x.dtype, |index| Ok(Scalar::Int(f(x.at(index).to_i64()))))
    }

    fn binary<'a>(
        op: BinaryOp,
        a: impl Into<Arg<'a, ReferenceTensor>>,
        b: impl Into<Arg<'a, ReferenceTensor>>,
    ) -> Result<ReferenceTensor> {
        let (name, a, b) = (op.name(), a.into(), b.into());
        let (shape, dtype) = common(name, &a, &b)?;
        check_arithmetic(name, dtype, &shape)?;
        let pair = |index: &[usize]| (operand(&a, index, dtype), operand(&b, index, dtype));
        if dtype.is_float() {
            let f = op.reference();
            return build(name, shape, dtype, |index| {
                let (a, b) = pair(index);
                Ok(Scalar::Float(f(a.to_f64(), b.to_f64())))
            });
        }
        let undefined = Error::UnsupportedDType { op: name, dtype, shape };
        let f = op.reference_integer().ok_or(undefined)?;
        build(name, shape, dtype, |index| {
            let (a, b) = pair(index);
            let failed = Error::IntegerDivision { op: name, shape };
            f(a.to_i64(), b.to_i64()).map(Scalar::Int).ok_or(failed)
        })
    }

    fn compare<'a>(
        op: CompareOp,
        a: impl Into<Arg<'a, ReferenceTensor>>,
        b: impl Into<Arg<'a, ReferenceTensor>>,
    ) -> Result<ReferenceTensor> {
        let (a, b) = (a.into(), b.into());
        let (shape, dtype) = common(op.name(), &a, &b)?;
        build(op.name(), shape, DType::Bool, |index| {
            let (a, b) = (operand(&a, index, dtype), operand(&b, index, dtype));
            let holds = match dtype.is_float() {
                true => op.apply(a.to_f64(), b.to_f64()),
                false => op.apply(a.to_i64(), b.to_i64()),
            };
            Ok(Scalar::Int(i64::from(holds)))
        })
    }

    fn reduce(op: ReduceOp, x: &ReferenceTensor, axes: &[usize]) -> Result<ReferenceTensor> {
        reduce::reduce(op, x, axes)
    }

    fn matmul(a: &ReferenceTensor, b: &ReferenceTensor) -> Result<ReferenceTensor> {
        let op = "matmul";
        let (lhs, rhs) = (*a.shape(), *b.shape());
        check_dtype(op, a, b.dtype)?;
        if !a.dtype.is_float() {
            return Err(Error::UnsupportedDType { op, dtype: a.dtype, shape: lhs });
        }
        let rank = lhs.ndim();
        if rank < 2 || rhs.ndim() != rank {
            return Err(Error::ShapeMismatch { op, lhs, rhs });
        }
        let (row, column) = (rank - 2, rank - 1);
        let inner = lhs.dim(column);
        if lhs.dims()[..row] != rhs.dims()[..row] || inner != rhs.dim(row) {
            return Err(Error::ShapeMismatch { op, lhs, rhs });
        }
        let out = lhs.with_axis(column, Some(rhs.dim(column)));
        build(op, out, a.dtype, |index| {
            let (mut from_a, mut from_b) = (AxisSet::from(index), AxisSet::from(index));
            let products = (0..inner).map(|k| {
                (from_a[column], from_b[row]) = (k, k);
                (a.at(&from_a).to_f64(), b.at(&from_b).to_f64())
            });
            Ok(Scalar::Float(exact::dot(products)))
        })
    }

    fn gather(
        x: &ReferenceTensor,
        axis: usize,
        index: &ReferenceTensor,
    ) -> Result<ReferenceTensor> {
        check_indices("gather", x, axis, index)?;
        build("gather", *index.shape(), x.dtype, |i| {
            Ok(x.at(&redirected("gather", x, axis, index, i)?))
        })
    }

    fn scatter_add(
        x: &ReferenceTensor,
        axis: usize,
        index: &ReferenceTensor,
        source: &ReferenceTensor,
    ) -> Result<ReferenceTensor> {
        let (op, dtype) = ("scatter_add", x.dtype);
        check_dtype(op, source, dtype)?;
        check_arithmetic(op, dtype, x.shape())?;
        check_indices(op, x, axis, index)?;
        if source.shape() != index.shape() {
            let (lhs, rhs) = (*index.shape(), *source.shape());
            return Err(Error::ShapeMismatch { op, lhs, rhs });
        }
        // 16-bit floats are added in `f32` and rounded once.
        let working = if dtype.is_float() && dtype.size() == 2 { DType::F32 } else { dtype };
        let mut values = room(op, x.shape())?;
        values.extend_from_slice(&x.values);
        for position in 0..source.numel() {
            let i = unravel(position, source.shape());
            let target = ravel(&redirected(op, x, axis, index, &i)?, x.shape());
            let (old, more) = (values[target], source.values[position]);
            let sum = match dtype.is_float() {
                true => Scalar::Float(old.to_f64() + more.to_f64()),
                false => Scalar::Int(old.to_i64().wrapping_add(more.to_i64())),
            };
            values[target] = round(working, sum);
        }
        values.iter_mut().for_each(|value| *value = round(dtype, *value));
        Ok(ReferenceTensor { layout: x.layout, dtype, values: Arc::new(values) })
    }

    fn cat(tensors: &[&ReferenceTensor], axis: usize) -> Result<ReferenceTensor> {
        let op = "cat";
        let shape = joined_shape(op, tensors, axis)?;
        build(op, shape, tensors[0].dtype, |index| {
            let mut local = AxisSet::from(index);
            let mut sources = tensors.iter();
            let source = sources.find(|x| {
                let holds = local[axis] < x.shape().dim(axis);
                if !holds {
                    local[axis] -= x.shape().dim(axis);
                }
                holds
            });
            Ok(source.map_or(Scalar::Int(0), |x| x.at(&local)))
        })
    }
}

//! [`ReferenceBackend`]: the executable definition of every operation, slow and simple.
//!
//! Every element is a [`Scalar`] that represents the value of its dtype exactly. Every result of a
//! required method is computed one element at a time from its index, in `f64` or `i64`, and rounded once to
//! its dtype:
//!
//! ```text
//! for each index of the result
//!     result[index] = round(dtype, definition(operands at the indices that the op reads))
//! ```
//!
//! `build` is that loop, and an operation is the definition passed to it. Element-wise definitions come
//! from the op table; all others are in this module. No computation is shared with the other backends, so
//! that agreement with this one is evidence. The required methods and those that move elements are implemented.
//! The others, such as ternary and fused ops, run their composites, some of which round more than once: kernels of other
//! backends are compared with their results in `f64`.

mod exact;
mod reduce;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::backend::{
    Arg, Backend, TensorData, assembled_shape, assigned_layout, check_arithmetic, check_dtype,
    check_indices, check_len, check_same_shape, common, joined_shape, no_tensor,
};
use crate::dtype::{DType, Element, HostData, Scalar, for_dtype};
use crate::error::{Error, Result, reserved};
use crate::layout::{AxisPart, Layout, SliceItem};
use crate::ops::{BinaryOp, CompareOp, ReduceOp, UnaryOp};
use crate::shape::{AxisSet, Shape};

/// The backend that defines the results of the others: every op and dtype, one element at a time. Meant
/// for tests and for looking up results, not for production.
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

/// A tensor of [`ReferenceBackend`]. It is always contiguous; views are copies.
#[derive(Clone, Debug)]
pub struct ReferenceTensor(Arc<Content>);

#[derive(Debug)]
struct Content {
    layout: Layout,
    dtype: DType,
    values: Vec<Scalar>,
}

impl TensorData for ReferenceTensor {
    fn layout(&self) -> &Layout {
        &self.0.layout
    }

    fn dtype(&self) -> DType {
        self.0.dtype
    }
}

impl ReferenceTensor {
    fn new(shape: Shape, dtype: DType, values: Vec<Scalar>) -> Self {
        ReferenceTensor(Arc::new(Content { layout: Layout::contiguous(shape), dtype, values }))
    }

    fn at(&self, index: &[usize]) -> Scalar {
        self.0.values[ravel(index, self.shape())]
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

/// Empty vector with capacity for the elements of a shape.
fn with_capacity(op: &'static str, shape: &Shape) -> Result<Vec<Scalar>> {
    shape.validate(op)?;
    reserved(op, shape.numel()).map_err(|error| error.of_shape(shape))
}

/// Tensor whose element at each index is `definition(index)`, rounded to the dtype.
fn build(
    op: &'static str,
    shape: Shape,
    dtype: DType,
    mut definition: impl FnMut(&[usize]) -> Result<Scalar>,
) -> Result<ReferenceTensor> {
    let mut values = with_capacity(op, &shape)?;
    for position in 0..shape.numel() {
        let index = unravel(position, &shape);
        values.push(definition(&index)?.rounded(dtype));
    }
    Ok(ReferenceTensor::new(shape, dtype, values))
}

fn operand(x: &Arg<'_, ReferenceTensor>, index: &[usize], dtype: DType) -> Scalar {
    match x {
        Arg::Ref(x) => x.at(index),
        Arg::Owned(x) => x.at(index),
        Arg::Scalar(x) => x.rounded(dtype),
    }
}

/// `index` with its component along `axis` replaced by the entry of `indices` at `index`.
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

impl Backend for ReferenceBackend {
    type Tensor = ReferenceTensor;

    const NAME: &'static str = "reference";

    fn from_host(data: HostData, shape: Shape) -> Result<ReferenceTensor> {
        check_len("from_host", data.len(), &shape)?;
        let mut values = with_capacity("from_host", &shape)?;
        values.extend((0..data.len()).filter_map(|i| data.get(i)));
        Ok(ReferenceTensor::new(shape, data.dtype(), values))
    }

    fn to_host(x: &ReferenceTensor) -> Result<HostData> {
        let values = x.0.values.iter().copied();
        Ok(for_dtype!(x.0.dtype, T => T::into_host(values.map(T::from_scalar).collect())))
    }

    fn full(shape: Shape, value: Scalar, dtype: DType) -> Result<ReferenceTensor> {
        build("full", shape, dtype, |_| Ok(value))
    }

    fn cast(x: &ReferenceTensor, dtype: DType) -> Result<ReferenceTensor> {
        build("to_dtype", *x.shape(), dtype, |index| Ok(x.at(index)))
    }

    fn view(x: &ReferenceTensor, layout: Layout) -> Result<ReferenceTensor> {
        layout.check("view", x.0.values.len())?;
        build("view", *layout.shape(), x.0.dtype, |index| {
            let mut position = layout.offset() as isize;
            for (&i, &stride) in index.iter().zip(layout.strides()) {
                position += i as isize * stride;
            }
            Ok(x.0.values[position as usize])
        })
    }

    fn contiguous(x: &ReferenceTensor) -> Result<ReferenceTensor> {
        Ok(x.clone())
    }

    fn unary<'a>(op: UnaryOp, x: impl Into<Arg<'a, ReferenceTensor>>) -> Result<ReferenceTensor> {
        let x = x.into();
        let name = op.name();
        let x = x.tensor().ok_or_else(|| no_tensor(name))?;
        check_arithmetic(name, x.0.dtype, x.shape())?;
        if x.0.dtype.is_float() {
            let f = op.reference();
            return build(name, *x.shape(), x.0.dtype, |index| {
                Ok(Scalar::Float(f(x.at(index).to_f64())))
            });
        }
        let undefined = Error::UnsupportedDType { op: name, dtype: x.0.dtype, shape: *x.shape() };
        let f = op.reference_integer().ok_or(undefined)?;
        build(name, *x.shape(), x.0.dtype, |index| Ok(Scalar::from_i128(f(x.at(index).to_i128()))))
    }

    fn binary<'a>(
        op: BinaryOp,
        a: impl Into<Arg<'a, ReferenceTensor>>,
        b: impl Into<Arg<'a, ReferenceTensor>>,
    ) -> Result<ReferenceTensor> {
        let (name, a, b) = (op.name(), a.into(), b.into());
        let (&shape, dtype) = common(name, &[&a, &b])?;
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
        // The one quotient of a narrow type that is out of its range.
        let least = Scalar::from_i128(dtype.integer_range().0);
        let overflows = |pair| op.divides_integers() && pair == (least, Scalar::Int(-1));
        build(name, shape, dtype, |index| {
            let (a, b) = pair(index);
            let value = f(a.to_i128(), b.to_i128()).filter(|_| !overflows((a, b)));
            value.map(Scalar::from_i128).ok_or(Error::IntegerDivision { op: name, shape })
        })
    }

    fn compare<'a>(
        op: CompareOp,
        a: impl Into<Arg<'a, ReferenceTensor>>,
        b: impl Into<Arg<'a, ReferenceTensor>>,
    ) -> Result<ReferenceTensor> {
        let (a, b) = (a.into(), b.into());
        let (&shape, dtype) = common(op.name(), &[&a, &b])?;
        build(op.name(), shape, DType::Bool, |index| {
            let (a, b) = (operand(&a, index, dtype), operand(&b, index, dtype));
            let result = match dtype.is_float() {
                true => op.apply(a.to_f64(), b.to_f64()),
                false => op.apply(a.to_i128(), b.to_i128()),
            };
            Ok(Scalar::Int(i64::from(result)))
        })
    }

    fn reduce(op: ReduceOp, x: &ReferenceTensor, axes: &[usize]) -> Result<ReferenceTensor> {
        reduce::reduce(op, x, axes)
    }

    fn matmul(a: &ReferenceTensor, b: &ReferenceTensor) -> Result<ReferenceTensor> {
        let op = "matmul";
        let (lhs, rhs) = (*a.shape(), *b.shape());
        check_dtype(op, a, b.0.dtype)?;
        if !a.0.dtype.is_float() && a.0.dtype != DType::I64 {
            return Err(Error::UnsupportedDType { op, dtype: a.0.dtype, shape: lhs });
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
        build(op, out, a.0.dtype, |index| {
            let (mut from_a, mut from_b) = (AxisSet::from(index), AxisSet::from(index));
            let factors = (0..inner).map(|k| {
                (from_a[column], from_b[row]) = (k, k);
                (a.at(&from_a), b.at(&from_b))
            });
            if a.0.dtype.is_float() {
                let products = factors.map(|(a, b)| (a.to_f64(), b.to_f64()));
                return Ok(Scalar::Float(exact::dot(products)));
            }
            let products = factors.map(|(a, b)| a.to_i64().wrapping_mul(b.to_i64()));
            Ok(Scalar::Int(products.fold(0, i64::wrapping_add)))
        })
    }

    fn gather(
        x: &ReferenceTensor,
        axis: usize,
        index: &ReferenceTensor,
    ) -> Result<ReferenceTensor> {
        check_indices("gather", x, axis, index)?;
        build("gather", *index.shape(), x.0.dtype, |i| {
            Ok(x.at(&redirected("gather", x, axis, index, i)?))
        })
    }

    fn scatter_add(
        x: &ReferenceTensor,
        axis: usize,
        index: &ReferenceTensor,
        source: &ReferenceTensor,
    ) -> Result<ReferenceTensor> {
        let (op, dtype) = ("scatter_add", x.0.dtype);
        check_arithmetic(op, dtype, x.shape())?;
        check_dtype(op, x, source.0.dtype)?;
        check_same_shape(op, index, source)?;
        check_indices(op, x, axis, index)?;
        // 16-bit floats are added in `f32` and rounded once.
        let working = dtype.at_least_f32();
        let mut values = with_capacity(op, x.shape())?;
        values.extend_from_slice(&x.0.values);
        for position in 0..source.numel() {
            let i = unravel(position, source.shape());
            let target = ravel(&redirected(op, x, axis, index, &i)?, x.shape());
            let (old, more) = (values[target], source.0.values[position]);
            let sum = match dtype.is_float() {
                true => Scalar::Float(old.to_f64() + more.to_f64()),
                false => Scalar::Int(old.to_i64().wrapping_add(more.to_i64())),
            };
            values[target] = sum.rounded(working);
        }
        values.iter_mut().for_each(|value| *value = value.rounded(dtype));
        Ok(ReferenceTensor::new(*x.shape(), dtype, values))
    }

    fn scatter(
        x: &ReferenceTensor,
        axis: usize,
        index: &ReferenceTensor,
        source: &ReferenceTensor,
    ) -> Result<ReferenceTensor> {
        let op = "scatter";
        check_dtype(op, x, source.0.dtype)?;
        check_same_shape(op, index, source)?;
        check_indices(op, x, axis, index)?;
        let mut values = with_capacity(op, x.shape())?;
        values.extend_from_slice(&x.0.values);
        for position in 0..source.numel() {
            let i = unravel(position, source.shape());
            let target = redirected(op, x, axis, index, &i)?;
            values[ravel(&target, x.shape())] = source.0.values[position];
        }
        Ok(ReferenceTensor::new(*x.shape(), x.0.dtype, values))
    }

    fn slice_assign(
        x: &mut ReferenceTensor,
        items: &[SliceItem],
        source: &ReferenceTensor,
    ) -> Result<()> {
        let op = "slice_assign";
        let target = assigned_layout(op, x, items, source)?;
        let mut values = with_capacity(op, x.shape())?;
        values.extend_from_slice(&x.0.values);
        for (position, &value) in target.positions().zip(&source.0.values) {
            values[position] = value;
        }
        *x = ReferenceTensor::new(*x.shape(), x.0.dtype, values);
        Ok(())
    }

    fn assemble(
        x: &ReferenceTensor,
        axes: &[Vec<AxisPart>],
        fill: Scalar,
    ) -> Result<ReferenceTensor> {
        let op = "assemble";
        let shape = assembled_shape(op, x.shape(), axes)?;
        build(op, shape, x.0.dtype, |index| {
            let mut source = AxisSet::from(index);
            for (i, parts) in source.iter_mut().zip(axes) {
                for part in parts {
                    match *part {
                        part if *i >= part.len() => *i -= part.len(),
                        AxisPart::Fill(_) => return Ok(fill),
                        AxisPart::From { start, step, .. } => {
                            *i = start.wrapping_add_signed(*i as isize * step);
                            break;
                        }
                    }
                }
            }
            Ok(x.at(&source))
        })
    }

    fn cat(tensors: &[&ReferenceTensor], axis: usize) -> Result<ReferenceTensor> {
        let op = "cat";
        let shape = joined_shape(op, tensors, axis)?;
        build(op, shape, tensors[0].dtype(), |index| {
            let mut local = AxisSet::from(index);
            let mut sources = tensors.iter();
            let source = sources.find(|x| {
                let is_inside = local[axis] < x.shape().dim(axis);
                if !is_inside {
                    local[axis] -= x.shape().dim(axis);
                }
                is_inside
            });
            Ok(source.map_or(Scalar::Int(0), |x| x.at(&local)))
        })
    }
}

//! Composites: the defaults of optional methods of [`Backend`], written in terms of the required ones.
//!
//! The composites of fused ops and of optimizers are in terms of tensors: see `tensor/fused.rs` and
//! `optim.rs`.

pub(super) mod order;

use super::{
    Arg, Backend, TensorData, assembled_shape, assigned_layout, check_dtype, check_indices,
    check_same_shape,
};
use crate::dtype::{DType, Element, HostData, Scalar, check_bools, for_dtype, swap_little_endian};
use crate::error::{Error, Result, reserved};
use crate::layout::{AxisPart, Layout, SliceItem};
use crate::ops::{BinaryOp, CompareOp, NumberTest, ScanOp, TernaryOp, UnaryOp, ternary_ops};
use crate::shape::Shape;

/// A backend's tensor with the methods that composites are written in.
struct Value<B: Backend>(B::Tensor);

impl<B: Backend> Value<B> {
    /// Converts an operand to a tensor of this shape and dtype.
    fn new(x: Arg<'_, B::Tensor>, shape: Shape, dtype: DType) -> Result<Self> {
        Ok(Value(match x {
            Arg::Ref(x) => x.clone(),
            Arg::Owned(x) => x,
            Arg::Scalar(value) => B::full(shape, value, dtype)?,
        }))
    }

    fn binary(&self, op: BinaryOp, other: &Self) -> Result<Self> {
        B::binary(op, &self.0, &other.0).map(Value)
    }

    fn add(&self, other: &Self) -> Result<Self> {
        self.binary(BinaryOp::Add, other)
    }

    fn sub(&self, other: &Self) -> Result<Self> {
        self.binary(BinaryOp::Sub, other)
    }

    fn mul(&self, other: &Self) -> Result<Self> {
        self.binary(BinaryOp::Mul, other)
    }

    fn times(&self, factor: f64) -> Result<Self> {
        B::binary(BinaryOp::Mul, &self.0, Arg::Scalar(Scalar::Float(factor))).map(Value)
    }

    /// `1 - self`.
    fn one_minus(&self) -> Result<Self> {
        B::binary(BinaryOp::Sub, Arg::Scalar(Scalar::Int(1)), &self.0).map(Value)
    }

    fn exp(&self) -> Result<Self> {
        B::unary(UnaryOp::Exp, &self.0).map(Value)
    }

    /// `self < other`, as `Bool`.
    fn lt(&self, other: &Self) -> Result<Self> {
        B::compare(CompareOp::Lt, &self.0, &other.0).map(Value)
    }

    /// `self < value`, as `Bool`.
    fn below(&self, value: f64) -> Result<Self> {
        B::compare(CompareOp::Lt, &self.0, Arg::Scalar(Scalar::Float(value))).map(Value)
    }

    /// `self > 0`, as `Bool`.
    fn is_positive(&self) -> Result<Self> {
        B::compare(CompareOp::Gt, &self.0, Arg::Scalar(Scalar::Int(0))).map(Value)
    }

    /// True where NaN, as `Bool`.
    fn is_nan(&self) -> Result<Self> {
        test::<B>(NumberTest::IsNan, &self.0).map(Value)
    }

    /// `a` where this mask is true, else `b`.
    fn choose(&self, a: &Self, b: &Self) -> Result<Self> {
        B::where_cond(&self.0, &a.0, &b.0).map(Value)
    }
}

macro_rules! ternary_composites {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        composite: ($a:ident, $b:ident, $c:ident) => $composite:expr;
        $($rest:tt)*
    })*) => {
        fn ternary_value<B: Backend>(
            op: TernaryOp,
            [a, b, c]: [Value<B>; 3],
        ) -> Result<Value<B>> {
            match op {
                $(TernaryOp::$Variant => {
                    let ($a, $b, $c) = (&a, &b, &c);
                    $composite
                })*
            }
        }
    };
}
ternary_ops!(ternary_composites);

/// [`Backend::ternary`] by the composite in the op's row. 16-bit floats are computed in `F32` and rounded
/// once.
pub(super) fn ternary<B: Backend>(
    op: TernaryOp,
    operands: [Arg<'_, B::Tensor>; 3],
) -> Result<B::Tensor> {
    let Some(first) = operands.iter().find_map(Arg::tensor) else {
        let reason = "expected a tensor among the operands, got three numbers".to_owned();
        return Err(Error::InvalidArgument { op: op.name(), reason });
    };
    let (shape, dtype) = (*first.shape(), first.dtype());
    if !dtype.is_float() {
        return Err(Error::UnsupportedDType { op: op.name(), dtype, shape });
    }
    let wide = dtype.at_least_f32();
    let value = |x| -> Result<Value<B>> {
        let Value(x) = Value::<B>::new(x, shape, dtype)?;
        Ok(Value(if dtype == wide { x } else { B::cast(&x, wide)? }))
    };
    let [a, b, c] = operands.map(value);
    let Value(y) = ternary_value(op, [a?, b?, c?])?;
    if dtype == wide { Ok(y) } else { B::cast(&y, dtype) }
}

/// [`Backend::test`] by comparisons.
pub(super) fn test<B: Backend>(op: NumberTest, x: &B::Tensor) -> Result<B::Tensor> {
    if !x.dtype().is_float() {
        let value = i64::from(op == NumberTest::IsFinite);
        return B::full(*x.shape(), Scalar::Int(value), DType::Bool);
    }
    let compare_magnitude = |comparison| {
        let magnitude = B::unary(UnaryOp::Abs, x)?;
        B::compare(comparison, &magnitude, Arg::Scalar(Scalar::Float(f64::INFINITY)))
    };
    match op {
        NumberTest::IsNan => B::compare(CompareOp::Ne, x, x),
        NumberTest::IsInf => compare_magnitude(CompareOp::Eq),
        NumberTest::IsFinite => compare_magnitude(CompareOp::Lt),
    }
}

/// [`Backend::where_cond`] by a gather: the mask is the index into `b` and `a`, stacked along a new axis.
/// The values are copied without arithmetic.
pub(super) fn where_cond<B: Backend>(
    mask: &B::Tensor,
    a: &B::Tensor,
    b: &B::Tensor,
) -> Result<B::Tensor> {
    let shape = *a.shape();
    check_same_shape("where_cond", a, b)?;
    check_same_shape("where_cond", a, mask)?;
    let row = |x: &B::Tensor| B::reshape(x, [1, shape.numel()]);
    let stacked = B::cat(&[&row(b)?, &row(a)?], 0)?;
    let index = match mask.dtype() {
        DType::Bool => B::cast(mask, DType::I64)?,
        _ => B::cast(&B::compare(CompareOp::Ne, mask, Arg::Scalar(Scalar::Int(0)))?, DType::I64)?,
    };
    B::reshape(&B::gather(&stacked, 0, &row(&index)?)?, shape)
}

/// [`Backend::scan`] by a loop over values in host memory: in another order of additions or multiplications
/// partial results may overflow. Totals of floats are computed in `F64`; for 16-bit floats they are rounded to
/// `F32` first.
pub(super) fn scan<B: Backend>(op: ScanOp, x: &B::Tensor, axis: usize) -> Result<B::Tensor> {
    let (dtype, shape) = (x.dtype(), *x.shape());
    shape.check_axis(op.name(), axis)?;
    fn accumulate<T: Copy>(totals: &mut [T], stride: usize, len: usize, f: impl Fn(T, T) -> T) {
        for i in (0..totals.len()).filter(|i| !(i / stride).is_multiple_of(len)) {
            totals[i] = f(totals[i - stride], totals[i]);
        }
    }
    let (stride, n) = (shape.dims()[axis + 1..].iter().product(), shape.dim(axis));
    let wide = if dtype.is_float() { DType::F64 } else { DType::I64 };
    let mut totals = B::to_host(&B::cast(x, wide)?)?;
    match (&mut totals, op) {
        (HostData::F64(x), ScanOp::Sum) => accumulate(x, stride, n, |a, b| a + b),
        (HostData::F64(x), ScanOp::Product) => accumulate(x, stride, n, |a, b| a * b),
        (HostData::I64(x), ScanOp::Sum) => accumulate(x, stride, n, i64::wrapping_add),
        (HostData::I64(x), ScanOp::Product) => accumulate(x, stride, n, i64::wrapping_mul),
        _ => {}
    }
    let totals = B::from_host(totals, shape)?;
    match dtype.is_float() {
        true => B::cast(&B::cast(&totals, dtype.at_least_f32())?, dtype),
        false => Ok(totals),
    }
}

/// [`Backend::scatter`] by a gather from the elements of `x` and `source`, one after the other. Which of them an
/// element becomes is determined in host memory.
pub(super) fn scatter<B: Backend>(
    x: &B::Tensor,
    axis: usize,
    index: &B::Tensor,
    source: &B::Tensor,
) -> Result<B::Tensor> {
    let (op, shape) = ("scatter", *x.shape());
    check_indices(op, x, axis, index)?;
    check_same_shape(op, index, source)?;
    check_dtype(op, x, source.dtype())?;
    let (extent, stride) = (shape.dim(axis), shape.contiguous_strides().as_slice()[axis]);
    // Positions at index 0 along the axis, for every element of the source.
    let dims = index.shape().dims().iter().enumerate();
    let bases = dims.fold(Layout::contiguous(shape), |layout, (i, &dim)| {
        layout.stepped(i, 0, dim, isize::from(i != axis))
    });
    let indices = i64::from_host(B::to_host(index)?).unwrap_or_default();
    let mut chosen: Vec<i64> = (0..shape.numel() as i64).collect();
    for ((place, base), at) in (shape.numel() as i64..).zip(bases.positions()).zip(indices) {
        match usize::try_from(at) {
            Ok(i) if i < extent => chosen[base.wrapping_add_signed(i as isize * stride)] = place,
            _ => return Err(Error::IndexOutOfRange { op, index: at, axis, shape }),
        }
    }
    let chosen = B::from_host(HostData::I64(chosen), shape.numel().into())?;
    let [x, source] = [B::reshape(x, x.numel())?, B::reshape(source, source.numel())?];
    B::reshape(&B::gather(&B::cat(&[&x, &source], 0)?, 0, &chosen)?, shape)
}

/// [`Backend::slice_assign`] by [`Backend::scatter`] of the elements to their positions.
pub(super) fn slice_assign<B: Backend>(
    x: &mut B::Tensor,
    items: &[SliceItem],
    source: &B::Tensor,
) -> Result<()> {
    let (target, shape) = (assigned_layout("slice_assign", x, items, source)?, *x.shape());
    let positions = target.positions().map(|position| position as i64).collect();
    let index = B::from_host(HostData::I64(positions), source.numel().into())?;
    let [flat, source] = [B::reshape(x, shape.numel())?, B::reshape(source, source.numel())?];
    *x = B::reshape(&B::scatter(&flat, 0, &index, &source)?, shape)?;
    Ok(())
}

/// [`Backend::assemble`] by a concatenation along each axis.
pub(super) fn assemble<B: Backend>(
    x: &B::Tensor,
    axes: &[Vec<AxisPart>],
    fill: Scalar,
) -> Result<B::Tensor> {
    assembled_shape("assemble", x.shape(), axes)?;
    let mut y = x.clone();
    for (axis, parts) in axes.iter().enumerate().filter(|(_, parts)| !parts.is_empty()) {
        let part = |part: &AxisPart| match *part {
            AxisPart::From { start, len, step } => {
                B::view(&y, y.layout().stepped(axis, start, len, step))
            }
            AxisPart::Fill(len) => {
                let value = B::full(Shape::scalar(), fill, x.dtype())?;
                B::broadcast_to(&value, &y.shape().with_axis(axis, Some(len)))
            }
        };
        let parts = parts.iter().map(part).collect::<Result<Vec<_>>>()?;
        y = B::cat(&parts.iter().collect::<Vec<_>>(), axis)?;
    }
    Ok(y)
}
/// [`Backend::read`] through values in host memory.
pub(super) fn read<B: Backend>(
    shape: Shape,
    dtype: DType,
    fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
) -> Result<B::Tensor> {
    let op = "read";
    shape.validate(op)?;
    let (numel, size) = (shape.numel(), dtype.size());
    fn values<T: Element>(
        numel: usize,
        bytes: &mut [u8],
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<HostData> {
        let mut values = reserved("read", numel)?;
        while values.len() < numel {
            let count = bytes.len() / T::DTYPE.size();
            let part = &mut bytes[..count.min(numel - values.len()) * T::DTYPE.size()];
            fill(part)?;
            check_bools("read", T::DTYPE, part)?;
            swap_little_endian(T::DTYPE, part);
            let stored = part.chunks_exact(T::DTYPE.size()).map(bytemuck::pod_read_unaligned);
            values.extend(stored.map(T::from_stored));
        }
        Ok(T::into_host(values))
    }
    let mut bytes = vec![0; 4096 / size * size];
    let data = for_dtype!(dtype, T => values::<T>(numel, &mut bytes, fill));
    let data = data.map_err(|error| error.of_shape(&shape))?;
    B::from_host(data, shape)
}

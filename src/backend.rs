//! [`Backend`]: what a device must be able to do. A backend is a type with static methods and an
//! associated tensor type, chosen at compile time.
//!
//! Fourteen methods are required: `from_host`, `to_host`, `full`, `cast`, `view`, `contiguous`, `unary`,
//! `binary`, `compare`, `reduce`, `matmul`, `gather`, `scatter_add`, `cat`. They take op enums, so that a new
//! op does not change the trait, and they are given operands that already fit: the tensor layer has checked
//! shapes, dtypes and axes and has broadcast by strides of 0. What remains for a backend to report is
//! what only it can know: an op or dtype that it lacks, an index out of range, an integer division by
//! zero, memory that cannot be had.
//!
//! What else a backend may do faster by a kernel of its own has a default that is composed of these:
//! [`ternary`](Backend::ternary), [`test`](Backend::test), [`where_cond`](Backend::where_cond),
//! [`scan`](Backend::scan), [`matmul_add`](Backend::matmul_add), [`read`](Backend::read),
//! [`item`](Backend::item). For [`fused`](Backend::fused) and [`update`](Backend::update) the composites are in
//! the layers above, which ask for a kernel first.
//!
//! The named functions ([`add`](Backend::add), [`exp`](Backend::exp), [`sum`](Backend::sum) …) are
//! provided on top. They check their own operands and can be called directly by code that works on
//! backend tensors without recording.

mod checks;
mod composite;
pub mod cpu;
pub mod reference;
pub(crate) mod windows;

use std::fmt::Debug;

use smallvec::SmallVec;

use crate::dtype::{DType, HostData, Scalar};
use crate::engine::names::*;
use crate::engine::{engine, engine_methods};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops::{
    BinaryOp, CompareOp, FusedOp, NumberTest, ReduceOp, ScanOp, TernaryOp, UnaryOp, UpdateOp,
};
use crate::shape::{Shape, broadcast_shape_for};
pub(crate) use checks::{
    check_arithmetic, check_len, check_mask, check_step, joined_shape, reduced_dtype,
};

/// What every backend's tensor can say of itself.
pub trait TensorData: Clone + Debug + Send + Sync + 'static {
    /// Shape, strides and offset in the storage.
    fn layout(&self) -> &Layout;
    /// Type of the elements.
    fn dtype(&self) -> DType;
    /// The shape.
    fn shape(&self) -> &Shape {
        self.layout().shape()
    }
    /// Element steps along each axis.
    fn strides(&self) -> &[isize] {
        self.layout().strides()
    }
    /// Number of elements.
    fn numel(&self) -> usize {
        self.layout().numel()
    }
}

/// Results of a fused op, of which none has more than four.
pub type Results<T> = SmallVec<[T; 4]>;

/// An operand of an element-wise op.
#[derive(Debug)]
pub enum Arg<'a, T> {
    /// A tensor that others may still read.
    Ref(&'a T),
    /// A tensor given away: if nothing else shares its storage, the result may be written into it.
    Owned(T),
    /// A number, taken as the dtype of the op's other operand.
    Scalar(Scalar),
}

impl<'a, T> From<&'a T> for Arg<'a, T> {
    fn from(tensor: &'a T) -> Self {
        Arg::Ref(tensor)
    }
}

impl<T> Arg<'_, T> {
    /// The tensor, unless it is a number.
    pub fn tensor(&self) -> Option<&T> {
        match self {
            Arg::Ref(tensor) => Some(tensor),
            Arg::Owned(tensor) => Some(tensor),
            Arg::Scalar(_) => None,
        }
    }
}

/// A device and the operations on its tensors. See the [module's page](self).
pub trait Backend: Clone + Debug + Send + Sync + 'static {
    /// The device's tensor: storage, layout and dtype. Cloning shares the storage.
    type Tensor: TensorData;

    /// The name that errors give.
    const NAME: &'static str;

    /// A tensor of these values in row-major order; as many as `shape` has elements.
    fn from_host(data: HostData, shape: Shape) -> Result<Self::Tensor>;

    /// The values in row-major order of the index, whatever the layout.
    fn to_host(x: &Self::Tensor) -> Result<HostData>;

    /// The value of a tensor of one element.
    fn item(x: &Self::Tensor) -> Result<Scalar> {
        let host = Self::to_host(x)?;
        host.get(0).ok_or(Error::InvalidShape {
            op: "item",
            shape: *x.shape(),
            reason: "item needs exactly one element",
        })
    }

    /// Every element `value`.
    fn full(shape: Shape, value: Scalar, dtype: DType) -> Result<Self::Tensor>;

    /// Converted element by element, as [`Element`](crate::Element) says.
    fn cast(x: &Self::Tensor, dtype: DType) -> Result<Self::Tensor>;

    /// The same storage under another layout, which lies within it: a layout made from `x`'s own.
    fn view(x: &Self::Tensor, layout: Layout) -> Result<Self::Tensor>;

    /// The same elements in row-major order without gaps; a copy only if they are not.
    fn contiguous(x: &Self::Tensor) -> Result<Self::Tensor>;

    /// Element-wise function. `x` is not a scalar.
    fn unary<'a>(op: UnaryOp, x: impl Into<Arg<'a, Self::Tensor>>) -> Result<Self::Tensor>;

    /// Element-wise function of two operands of one shape and dtype, at most one of them a scalar.
    fn binary<'a>(
        op: BinaryOp,
        a: impl Into<Arg<'a, Self::Tensor>>,
        b: impl Into<Arg<'a, Self::Tensor>>,
    ) -> Result<Self::Tensor>;

    /// Element-wise function of three operands of one shape and float dtype, at most two of them
    /// scalars.
    fn ternary<'a>(
        op: TernaryOp,
        a: impl Into<Arg<'a, Self::Tensor>>,
        b: impl Into<Arg<'a, Self::Tensor>>,
        c: impl Into<Arg<'a, Self::Tensor>>,
    ) -> Result<Self::Tensor> {
        composite::ternary::<Self>(op, [a.into(), b.into(), c.into()])
    }

    /// Element-wise comparison, as [`Backend::binary`]; the result is `Bool`.
    fn compare<'a>(
        op: CompareOp,
        a: impl Into<Arg<'a, Self::Tensor>>,
        b: impl Into<Arg<'a, Self::Tensor>>,
    ) -> Result<Self::Tensor>;

    /// Element-wise test; the result is `Bool`.
    fn test(op: NumberTest, x: &Self::Tensor) -> Result<Self::Tensor> {
        composite::test::<Self>(op, x)
    }

    /// `a` where `mask` is not zero, else `b`; all of one shape, `a` and `b` of one dtype.
    fn where_cond(mask: &Self::Tensor, a: &Self::Tensor, b: &Self::Tensor) -> Result<Self::Tensor> {
        composite::where_cond::<Self>(mask, a, b)
    }

    /// Reduction over `axes` (sorted, distinct, possibly none), which stay as extent 1.
    fn reduce(op: ReduceOp, x: &Self::Tensor, axes: &[usize]) -> Result<Self::Tensor>;

    /// Totals of the elements up to each along `axis`; of the shape of `x`.
    fn scan(op: ScanOp, x: &Self::Tensor, axis: usize) -> Result<Self::Tensor> {
        composite::scan::<Self>(op, x, axis)
    }

    /// `[…, m, k] × […, k, n] → […, m, n]`; the leading axes are equal, both dtypes the same float.
    fn matmul(a: &Self::Tensor, b: &Self::Tensor) -> Result<Self::Tensor>;

    /// `c + a·b` with `c` of the product's shape and dtype, given away: if nothing else shares its
    /// storage, the result may be written into it. The bits are those of the product and an addition.
    fn matmul_add(a: &Self::Tensor, b: &Self::Tensor, c: Self::Tensor) -> Result<Self::Tensor> {
        Self::binary(BinaryOp::Add, Arg::Owned(c), &Self::matmul(a, b)?)
    }

    /// `out[i, j, …] = x[i, index[i, j, …], …]`: the index, of dtype `I64`, has `x`'s rank and, along
    /// every axis but `axis`, an extent of at most `x`'s. An index that repeats along the other
    /// axes (stride 0) selects whole rows.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`] for an index outside `0..x.dim(axis)`.
    fn gather(x: &Self::Tensor, axis: usize, index: &Self::Tensor) -> Result<Self::Tensor>;

    /// A copy of `x` with `out[i, index[i, j, …], …] += source[i, j, …]`, added in row-major order
    /// of `source`, whose shape is the index's. 16-bit floats are added in `f32` and rounded once.
    /// The adjoint of [`Backend::gather`].
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`] for an index outside `0..x.dim(axis)`.
    fn scatter_add(
        x: &Self::Tensor,
        axis: usize,
        index: &Self::Tensor,
        source: &Self::Tensor,
    ) -> Result<Self::Tensor>;

    /// The tensors one after the other along `axis`; one dtype, other extents equal, at least one.
    fn cat(tensors: &[&Self::Tensor], axis: usize) -> Result<Self::Tensor>;

    /// A fused op in one pass; its variant of [`FusedOp`] says what the operands and the results are. The
    /// operands fit: the tensor layer has checked shapes and dtypes.
    ///
    /// # Errors
    /// [`Error::Unsupported`], the default: there is no kernel, and the op's composite of simpler ops is to
    /// be used. [`Error::IndexOutOfRange`] for a target that is no class.
    fn fused(op: &FusedOp<'_, Self::Tensor>) -> Result<Results<Self::Tensor>> {
        Err(Error::Unsupported { op: op.name(), backend: Self::NAME })
    }

    /// A step of an optimizer in one pass: `parameter` and `state` are written in place where nothing
    /// else shares their storage, else replaced. All are contiguous floats of one shape and dtype.
    ///
    /// # Errors
    /// [`Error::Unsupported`], the default: there is no kernel, and the optimizer's formula in tensor
    /// operations is to be used.
    fn update(
        op: &UpdateOp,
        parameter: &mut Self::Tensor,
        gradient: &Self::Tensor,
        state: &mut [Self::Tensor],
    ) -> Result<()> {
        let _ = (parameter, gradient, state);
        Err(Error::Unsupported { op: op.name(), backend: Self::NAME })
    }

    /// A tensor of the elements that `fill` writes, in row-major order and in their little-endian
    /// form (`Bool` as bytes 0 and 1); `fill` is called with consecutive parts.
    ///
    /// # Errors
    /// Those of `fill`; [`Error::InvalidArgument`] for a byte that is no truth value.
    fn read(
        shape: Shape,
        dtype: DType,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<Self::Tensor> {
        composite::read::<Self>(shape, dtype, fill)
    }

    /// A one-dimensional or shaped `F32` tensor of these values.
    fn from_vec(values: Vec<f32>, shape: impl Into<Shape>) -> Result<Self::Tensor> {
        let shape = shape.into();
        check_len("from_vec", values.len(), &shape)?;
        Self::from_host(HostData::F32(values), shape)
    }

    /// Zeros of dtype `F32`.
    fn zeros(shape: impl Into<Shape>) -> Result<Self::Tensor> {
        filled::<Self>("zeros", shape.into(), 0.0)
    }

    /// Ones of dtype `F32`.
    fn ones(shape: impl Into<Shape>) -> Result<Self::Tensor> {
        filled::<Self>("ones", shape.into(), 1.0)
    }

    /// A tensor without axes, of dtype `F32`.
    fn scalar(value: f32) -> Result<Self::Tensor> {
        filled::<Self>("scalar", Shape::scalar(), f64::from(value))
    }

    /// `a + b`, broadcasting.
    fn add(a: &Self::Tensor, b: &Self::Tensor) -> Result<Self::Tensor> {
        broadcast_binary::<Self>(BinaryOp::Add, a, b)
    }

    /// `a - b`, broadcasting.
    fn sub(a: &Self::Tensor, b: &Self::Tensor) -> Result<Self::Tensor> {
        broadcast_binary::<Self>(BinaryOp::Sub, a, b)
    }

    /// `a · b`, broadcasting.
    fn mul(a: &Self::Tensor, b: &Self::Tensor) -> Result<Self::Tensor> {
        broadcast_binary::<Self>(BinaryOp::Mul, a, b)
    }

    /// `a / b`, broadcasting.
    fn div(a: &Self::Tensor, b: &Self::Tensor) -> Result<Self::Tensor> {
        broadcast_binary::<Self>(BinaryOp::Div, a, b)
    }

    /// `-x`.
    fn neg(x: &Self::Tensor) -> Result<Self::Tensor> {
        Self::unary(UnaryOp::Neg, x)
    }

    /// `e^x`.
    fn exp(x: &Self::Tensor) -> Result<Self::Tensor> {
        Self::unary(UnaryOp::Exp, x)
    }

    /// Natural logarithm.
    fn log(x: &Self::Tensor) -> Result<Self::Tensor> {
        Self::unary(UnaryOp::Log, x)
    }

    /// 1 where `a` equals `b`, else 0, as `Bool`; broadcasting.
    fn eq(a: &Self::Tensor, b: &Self::Tensor) -> Result<Self::Tensor> {
        let (a, b) = broadcast_pair::<Self>("eq", a, b)?;
        Self::compare(CompareOp::Eq, &a, &b)
    }

    /// Sum over axes (`None`: all), which stay as extent 1 with `keepdims`.
    fn sum(x: &Self::Tensor, axes: Option<&[usize]>, keepdims: bool) -> Result<Self::Tensor> {
        reduce_axes::<Self>(ReduceOp::Sum, x, axes, keepdims)
    }

    /// Mean over axes, as [`Backend::sum`].
    fn mean(x: &Self::Tensor, axes: Option<&[usize]>, keepdims: bool) -> Result<Self::Tensor> {
        reduce_axes::<Self>(ReduceOp::Mean, x, axes, keepdims)
    }

    /// Maximum over axes, as [`Backend::sum`].
    fn max(x: &Self::Tensor, axes: Option<&[usize]>, keepdims: bool) -> Result<Self::Tensor> {
        reduce_axes::<Self>(ReduceOp::Max, x, axes, keepdims)
    }

    /// Axes in the order of `axes`; `None` swaps the last two.
    fn transpose(x: &Self::Tensor, axes: Option<&[usize]>) -> Result<Self::Tensor> {
        Self::view(x, transposed("transpose", x.layout(), axes)?)
    }

    /// Repeated along axes of extent 1, without a copy.
    fn broadcast_to(x: &Self::Tensor, shape: &Shape) -> Result<Self::Tensor> {
        Self::view(x, x.layout().broadcast_to("broadcast_to", shape)?)
    }

    /// Summed over the axes that broadcasting from `shape` to `x`'s shape repeats: the adjoint of
    /// [`Backend::broadcast_to`].
    fn sum_to(x: &Self::Tensor, shape: &Shape) -> Result<Self::Tensor> {
        let axes = sum_to_axes("sum_to", x.shape(), shape)?;
        let summed =
            if axes.is_empty() { x.clone() } else { Self::reduce(ReduceOp::Sum, x, &axes)? };
        Self::reshape(&summed, *shape)
    }

    /// The same elements under another shape of as many; a copy only where the layout needs one.
    fn reshape(x: &Self::Tensor, shape: impl Into<Shape>) -> Result<Self::Tensor> {
        let shape = shape.into();
        match x.layout().reshape("reshape", &shape)? {
            Some(layout) => Self::view(x, layout),
            None => Self::view(&Self::contiguous(x)?, Layout::contiguous(shape)),
        }
    }

    /// A second handle on the same storage.
    fn clone_tensor(x: &Self::Tensor) -> Self::Tensor {
        x.clone()
    }

    /// `total += gradient`, into `total`'s own storage where nothing else shares it. On an error
    /// `total` holds `gradient`.
    fn accumulate_grad(total: &mut Self::Tensor, gradient: &Self::Tensor) -> Result<()> {
        if total.shape() != gradient.shape() || total.dtype() != gradient.dtype() {
            let (lhs, rhs) = (*total.shape(), *gradient.shape());
            return Err(Error::ShapeMismatch { op: "accumulate_grad", lhs, rhs });
        }
        let owned = std::mem::replace(total, gradient.clone());
        *total = Self::binary(BinaryOp::Add, Arg::Owned(owned), gradient)?;
        Ok(())
    }

    engine!(engine_methods, Self);
}

/// A conversion of tensors between backends.
pub trait IntoBackend<Target: Backend>: Backend {
    /// The same values on the other backend.
    fn convert(x: &Self::Tensor) -> Result<Target::Tensor>;
}

impl<Source: Backend, Target: Backend> IntoBackend<Target> for Source {
    fn convert(x: &Self::Tensor) -> Result<Target::Tensor> {
        Target::from_host(Source::to_host(x)?, *x.shape())
    }
}

fn filled<B: Backend>(op: &'static str, shape: Shape, value: f64) -> Result<B::Tensor> {
    shape.validate(op)?;
    B::full(shape, Scalar::Float(value), DType::F32)
}

fn broadcast_binary<B: Backend>(op: BinaryOp, a: &B::Tensor, b: &B::Tensor) -> Result<B::Tensor> {
    let (a, b) = broadcast_pair::<B>(op.name(), a, b)?;
    let (a, b) = unify_bool::<B>(op, a, b)?;
    check_arithmetic(op.name(), a.dtype(), a.shape())?;
    B::binary(op, Arg::Owned(a), Arg::Owned(b))
}

/// Both operands as views of the shape they broadcast to.
pub(crate) fn broadcast_pair<B: Backend>(
    op: &'static str,
    a: &B::Tensor,
    b: &B::Tensor,
) -> Result<(B::Tensor, B::Tensor)> {
    let shape = broadcast_shape_for(op, a.shape(), b.shape())?;
    Ok((broadcast::<B>(op, a, &shape)?, broadcast::<B>(op, b, &shape)?))
}

/// The tensor under a shape that its own broadcasts to: itself, where it has that.
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

/// A truth value times a number multiplies as 0 or 1 of the number's dtype; every other pair must
/// agree.
pub(crate) fn unify_bool<B: Backend>(
    op: BinaryOp,
    a: B::Tensor,
    b: B::Tensor,
) -> Result<(B::Tensor, B::Tensor)> {
    let (lhs, rhs, shape) = (a.dtype(), b.dtype(), *a.shape());
    match (lhs, rhs) {
        _ if lhs == rhs => Ok((a, b)),
        (DType::Bool, _) if op == BinaryOp::Mul => Ok((B::cast(&a, rhs)?, b)),
        (_, DType::Bool) if op == BinaryOp::Mul => {
            let b = B::cast(&b, lhs)?;
            Ok((a, b))
        }
        _ => Err(Error::DTypeMismatch { op: op.name(), lhs, rhs, shape }),
    }
}

/// Axes and dtypes checked, then reduced, then without the reduced axes unless `keepdims`.
pub(crate) fn reduce_axes<B: Backend>(
    op: ReduceOp,
    x: &B::Tensor,
    axes: Option<&[usize]>,
    keepdims: bool,
) -> Result<B::Tensor> {
    let (name, shape) = (op.name(), *x.shape());
    reduced_dtype(op, x.dtype(), shape)?;
    let axes = shape.resolve_axes(name, axes)?;
    let reduces_nothing = axes.iter().any(|&axis| shape.dims()[axis] == 0);
    let out_is_empty = shape.reduced(&axes, false).numel() == 0;
    if op.needs_elements() && reduces_nothing && !out_is_empty {
        return Err(Error::EmptyReduction { op: name, shape });
    }
    let out = B::reduce(op, x, &axes)?;
    if keepdims || axes.is_empty() {
        return Ok(out);
    }
    B::reshape(&out, shape.reduced(&axes, false))
}

/// The layout with its axes in the order of `axes`; `None` swaps the last two.
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
        let reason = "swapping the last two axes needs two";
        return Err(Error::InvalidShape { op, shape: *layout.shape(), reason });
    }
    let mut axes: crate::shape::AxisSet = (0..rank).collect();
    axes.swap(rank - 2, rank - 1);
    layout.permute(op, &axes)
}

/// The axes of `from` that broadcasting `to` up to `from` repeats or adds.
pub(crate) fn sum_to_axes(
    op: &'static str,
    from: &Shape,
    to: &Shape,
) -> Result<crate::shape::AxisSet> {
    Layout::contiguous(*to).broadcast_to(op, from).map_err(|_| Error::ShapeMismatch {
        op,
        lhs: *from,
        rhs: *to,
    })?;
    let lead = from.ndim() - to.ndim();
    let dims = from.dims().iter().enumerate();
    Ok(dims
        .filter(|&(axis, &dim)| axis < lead || (to.dims()[axis - lead] == 1 && dim != 1))
        .map(|(axis, _)| axis)
        .collect())
}

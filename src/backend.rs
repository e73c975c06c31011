//! [`Backend`]: the operations of a device. A backend is a type with static methods and an associated tensor type,
//! chosen at compile time.
//!
//! Fourteen methods are required: `from_host`, `to_host`, `full`, `cast`, `view`, `contiguous`, `unary`, `binary`,
//! `compare`, `reduce`, `matmul`, `gather`, `scatter_add`, `cat`. They take op enums, so that a new op does not
//! change the trait, and their operands are valid: the tensor layer has checked shapes, dtypes and axes and has
//! broadcast by strides of 0. A backend only reports errors that the tensor layer cannot detect: an op or dtype
//! that it does not implement, an index out of range, an integer division by zero, a failed allocation.
//!
//! Further methods, for which a backend may have a faster kernel, have defaults composed of the required ones, such as
//! [`ternary`](Backend::ternary). Without [`fused`](Backend::fused) or [`update`](Backend::update) the layers above compose.
//!
//! The named functions ([`add`](Backend::add), [`exp`](Backend::exp) …) are provided on top, for code that works on
//! backend tensors without recording. They check their operands.

pub mod any;
mod checks;
mod composite;
mod convert;
pub mod cpu;
#[cfg(any(feature = "metal", feature = "wgpu"))]
pub mod gpu;
#[cfg(any(test, feature = "metal", feature = "wgpu"))]
mod integer_matmul;
mod operands;
pub mod reference;
pub(crate) mod windows;

use std::any::Any;
use std::fmt::Debug;

use smallvec::SmallVec;

use crate::dtype::{DType, HostData, Scalar};
use crate::engine::names::*;
use crate::engine::{engine, engine_methods};
use crate::error::{Error, Result};
use crate::layout::{AxisPart, Layout};
use crate::ops::{
    BinaryOp, CompareOp, Extremum, FusedOp, NumberTest, OrderOp, ReduceOp, ScanOp, TernaryOp,
    UnaryOp, UpdateOp,
};
use crate::shape::Shape;
pub(crate) use checks::{
    assembled_shape, assigned_layout, check_arithmetic, check_dtype, check_groups, check_indices,
    check_len, check_mask, check_same_shape, check_search, check_update, common, joined_shape,
    no_tensor, reduced_dtype,
};
pub use convert::IntoBackend;
pub(crate) use operands::{
    Reducer, broadcast, broadcast_pair, reduce_axes, sum_to_axes, transposed, unify_bool,
};
use operands::{broadcast_binary, filled};

/// Metadata of a backend's tensor.
pub trait TensorData: Clone + Debug + Send + Sync + 'static {
    /// Shape, strides and offset in the storage.
    fn layout(&self) -> &Layout;
    /// Type of the elements.
    fn dtype(&self) -> DType;
    /// The shape.
    fn shape(&self) -> &Shape {
        self.layout().shape()
    }
    /// Strides along each axis, in elements.
    fn strides(&self) -> &[isize] {
        self.layout().strides()
    }
    /// Number of elements.
    fn numel(&self) -> usize {
        self.layout().numel()
    }
}

/// Results of a fused op, stored inline up to four.
pub type Results<T> = SmallVec<[T; 4]>;

/// An operand of an element-wise op.
#[derive(Debug)]
pub enum Arg<'a, T> {
    /// A tensor that is only read.
    Ref(&'a T),
    /// An owned tensor. If nothing else shares its storage, the result may be written into it.
    Owned(T),
    /// A number, converted to the dtype of the op's tensor operand.
    Scalar(Scalar),
}

impl<'a, T> From<&'a T> for Arg<'a, T> {
    fn from(tensor: &'a T) -> Self {
        Arg::Ref(tensor)
    }
}

impl<T> Arg<'_, T> {
    /// The tensor; `None` for a number.
    pub fn tensor(&self) -> Option<&T> {
        match self {
            Arg::Ref(tensor) => Some(tensor),
            Arg::Owned(tensor) => Some(tensor),
            Arg::Scalar(_) => None,
        }
    }
}

/// A device and the operations on its tensors. See the [module's page](self).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a backend",
    label = "not a backend",
    note = "backends are `CpuBackend`, `ReferenceBackend`, `AnyBackend` and, by feature, `WgpuBackend` and `MetalBackend`"
)]
pub trait Backend: Clone + Debug + Send + Sync + 'static {
    /// The device's tensor: storage, layout and dtype. Cloning shares the storage.
    type Tensor: TensorData;

    /// Name of the backend in errors.
    const NAME: &'static str;

    /// The widest float type of the backend, in which composites compute what they round once. A backend without
    /// `F64` has `F32`.
    const WIDE: DType = DType::F64;

    /// [`Backend::WIDE`] where a tensor is, or where new ones are.
    #[doc(hidden)]
    fn wide(_: Option<&Self::Tensor>) -> DType {
        Self::WIDE
    }

    /// Makes a tensor from values in row-major order, whose number is that of the elements of `shape`.
    fn from_host(data: HostData, shape: Shape) -> Result<Self::Tensor>;

    /// Like [`Backend::from_host`], for values whose memory may become the tensor's.
    fn adopt_host(data: HostData, shape: Shape) -> Result<Self::Tensor> {
        Self::from_host(data, shape)
    }

    /// Returns the values in row-major order, for any layout.
    fn to_host(x: &Self::Tensor) -> Result<HostData>;

    /// Returns the value of a tensor of one element.
    fn item(x: &Self::Tensor) -> Result<Scalar> {
        let host = Self::to_host(x)?;
        host.get(0).ok_or(Error::InvalidShape {
            op: "item",
            shape: *x.shape(),
            reason: "expected exactly one element",
        })
    }

    /// Makes a tensor whose elements are all `value`.
    fn full(shape: Shape, value: Scalar, dtype: DType) -> Result<Self::Tensor>;

    /// Converts each element by the rules of [`Element`](crate::Element).
    fn cast(x: &Self::Tensor, dtype: DType) -> Result<Self::Tensor>;

    /// Returns the same storage with another layout, derived from that of `x` and within its storage.
    fn view(x: &Self::Tensor, layout: Layout) -> Result<Self::Tensor>;

    /// Returns the elements in row-major order without gaps; copies only if necessary.
    fn contiguous(x: &Self::Tensor) -> Result<Self::Tensor>;

    /// Applies an element-wise function to a tensor; `x` is not a number.
    fn unary<'a>(op: UnaryOp, x: impl Into<Arg<'a, Self::Tensor>>) -> Result<Self::Tensor>;

    /// Applies an element-wise function of two operands of one shape and dtype, at most one of them a number.
    fn binary<'a>(
        op: BinaryOp,
        a: impl Into<Arg<'a, Self::Tensor>>,
        b: impl Into<Arg<'a, Self::Tensor>>,
    ) -> Result<Self::Tensor>;

    /// `x = op(x, b)`, in place if nothing else shares the storage of `x`. `b` is a number, or has the shape and
    /// dtype of `x`. An error leaves `x` unchanged.
    fn binary_assign(op: BinaryOp, x: &mut Self::Tensor, b: Arg<'_, Self::Tensor>) -> Result<()> {
        *x = Self::binary(op, &*x, b)?;
        Ok(())
    }

    /// Applies an element-wise function of three operands of one shape and float dtype, at most two of them
    /// numbers.
    fn ternary<'a>(
        op: TernaryOp,
        a: impl Into<Arg<'a, Self::Tensor>>,
        b: impl Into<Arg<'a, Self::Tensor>>,
        c: impl Into<Arg<'a, Self::Tensor>>,
    ) -> Result<Self::Tensor> {
        composite::ternary::<Self>(op, [a.into(), b.into(), c.into()])
    }

    /// Compares element-wise, with operands as for [`Backend::binary`]; the result is `Bool`.
    fn compare<'a>(
        op: CompareOp,
        a: impl Into<Arg<'a, Self::Tensor>>,
        b: impl Into<Arg<'a, Self::Tensor>>,
    ) -> Result<Self::Tensor>;

    /// Tests each element; the result is `Bool`.
    fn test(op: NumberTest, x: &Self::Tensor) -> Result<Self::Tensor> {
        composite::test::<Self>(op, x)
    }

    /// Selects `a` where `mask` is not zero, else `b`. All have one shape, and `a` and `b` one dtype.
    fn where_cond(mask: &Self::Tensor, a: &Self::Tensor, b: &Self::Tensor) -> Result<Self::Tensor> {
        composite::where_cond::<Self>(mask, a, b)
    }

    /// Reduces over `axes` (sorted, distinct, possibly none), which stay as extents of 1.
    fn reduce(op: ReduceOp, x: &Self::Tensor, axes: &[usize]) -> Result<Self::Tensor>;

    /// The reduction with the function that runs it: [`Backend::reduce`], or a function of this op alone.
    #[doc(hidden)]
    fn reducer(op: ReduceOp) -> Reducer<Self::Tensor> {
        Reducer { op, run: Self::reduce }
    }

    /// Cumulative sum or product along `axis`, of the shape of `x`.
    fn scan(op: ScanOp, x: &Self::Tensor, axis: usize) -> Result<Self::Tensor> {
        composite::scan::<Self>(op, x, axis)
    }

    /// Index, as `I64`, of the largest or the smallest of the elements up to each along `axis`; of the shape of `x`.
    fn arg_scan(op: Extremum, x: &Self::Tensor, axis: usize) -> Result<Self::Tensor> {
        composite::order::arg_scan::<Self>(op, x, axis)
    }

    /// The elements along `axis` in order, as they are stored, and their indices, as `I64`.
    fn order(op: OrderOp, x: &Self::Tensor, axis: usize) -> Result<(Self::Tensor, Self::Tensor)> {
        composite::order::order::<Self>(op, x, axis)
    }

    /// For each value, the number of elements of a row of `sorted` before it in ascending order, as `I64`; with
    /// `right`, of those that equal it too. NaN equals NaN and is the last. `sorted` is `[n]`, or `[…, n]` for
    /// values `[…, m]`, of the dtype of the values; the result has their shape.
    fn search_sorted(
        sorted: &Self::Tensor,
        values: &Self::Tensor,
        right: bool,
    ) -> Result<Self::Tensor> {
        composite::order::search_sorted::<Self>(sorted, values, right)
    }

    /// Matrix product `[…, m, k] × […, k, n] → […, m, n]`, with equal leading axes and one dtype: a float
    /// type, or `I64`, whose sums and products wrap.
    fn matmul(a: &Self::Tensor, b: &Self::Tensor) -> Result<Self::Tensor>;

    /// `c + a·b`, where `c` has the product's shape and dtype. If nothing else shares the storage of `c`,
    /// the result may be written into it. The bits are those of the product followed by an addition.
    fn matmul_add(a: &Self::Tensor, b: &Self::Tensor, c: Self::Tensor) -> Result<Self::Tensor> {
        Self::binary(BinaryOp::Add, Arg::Owned(c), &Self::matmul(a, b)?)
    }

    /// `out[i, j, …] = x[i, index[i, j, …], …]`. The index has dtype `I64`, the rank of `x` and, along every
    /// axis except `axis`, an extent of at most that of `x`. An index that repeats along the other axes
    /// (stride 0) selects whole rows.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`] for an index outside `0..x.dim(axis)`.
    fn gather(x: &Self::Tensor, axis: usize, index: &Self::Tensor) -> Result<Self::Tensor>;

    /// Copy of `x` with `out[i, index[i, j, …], …] += source[i, j, …]`, added in row-major order of `source`,
    /// which has the shape of the index. 16-bit floats are added in `f32` and rounded once. The adjoint of
    /// [`Backend::gather`].
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`] for an index outside `0..x.dim(axis)`.
    fn scatter_add(
        x: &Self::Tensor,
        axis: usize,
        index: &Self::Tensor,
        source: &Self::Tensor,
    ) -> Result<Self::Tensor>;

    /// Concatenates one or more tensors along `axis`. All have one dtype, and equal extents along other axes.
    fn cat(tensors: &[&Self::Tensor], axis: usize) -> Result<Self::Tensor>;

    /// Copy of `x` with `out[i, index[i, j, …], …] = source[i, j, …]`, the last of several elements at one index.
    /// Operands as for [`Backend::scatter_add`], of any dtype.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`] for an index outside `0..x.dim(axis)`.
    fn scatter(
        x: &Self::Tensor,
        axis: usize,
        index: &Self::Tensor,
        source: &Self::Tensor,
    ) -> Result<Self::Tensor> {
        composite::scatter::<Self>(x, axis, index, source)
    }

    /// Replaces the elements of `x` that `items` select by those of `source`, which has the selection's shape. `x` is
    /// written in place if nothing else shares its storage, and replaced otherwise.
    fn slice_assign(
        x: &mut Self::Tensor,
        items: &[SliceItem],
        source: &Self::Tensor,
    ) -> Result<()> {
        composite::slice_assign::<Self>(x, items, source)
    }

    /// Concatenates parts of `x` along every axis at once: `axes[i]` are the parts of axis i of the result, all of the
    /// axis if the list is empty. Elements that a part fills along any axis are `fill`.
    fn assemble(x: &Self::Tensor, axes: &[Vec<AxisPart>], fill: Scalar) -> Result<Self::Tensor> {
        composite::assemble::<Self>(x, axes, fill)
    }

    /// Computes a fused op in one pass. Its variant of [`FusedOp`] specifies the operands and the results, which
    /// [`FusedOp::check`] verifies.
    ///
    /// # Errors
    /// [`Error::Unsupported`], the default, if there is no kernel; the caller then runs the op's composite.
    /// [`Error::IndexOutOfRange`] for a target that is not a class.
    fn fused(op: &FusedOp<'_, Self::Tensor>) -> Result<Results<Self::Tensor>> {
        Err(Error::Unsupported { op: op.name(), backend: Self::NAME })
    }

    /// Computes a step of an optimizer in one pass. `parameter` and `state` are written in place if nothing
    /// else shares their storage, and replaced otherwise. All are floats of one shape and dtype.
    ///
    /// # Errors
    /// [`Error::Unsupported`], the default, if there is no kernel; the caller then uses the optimizer's
    /// formula in tensor operations.
    fn update(
        op: &UpdateOp,
        parameter: &mut Self::Tensor,
        gradient: &Self::Tensor,
        state: &mut [Self::Tensor],
    ) -> Result<()> {
        let _ = (parameter, gradient, state);
        Err(Error::Unsupported { op: op.name(), backend: Self::NAME })
    }

    /// Makes a tensor of the elements that `fill` writes, in row-major order and little-endian (`Bool` as
    /// bytes 0 and 1). `fill` is called with consecutive parts of the memory.
    ///
    /// # Errors
    /// Those of `fill`; [`Error::InvalidArgument`] for a byte of a `Bool` other than 0 and 1.
    fn read(
        shape: Shape,
        dtype: DType,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<Self::Tensor> {
        composite::read::<Self>(shape, dtype, fill)
    }

    /// Makes an `F32` tensor of these values in row-major order.
    fn from_vec(values: Vec<f32>, shape: impl Into<Shape>) -> Result<Self::Tensor> {
        let shape = shape.into();
        check_len("from_vec", values.len(), &shape)?;
        Self::adopt_host(HostData::F32(values), shape)
    }

    /// Makes a tensor of zeros, of dtype `F32`.
    fn zeros(shape: impl Into<Shape>) -> Result<Self::Tensor> {
        filled::<Self>("zeros", shape.into(), 0.0)
    }

    /// Makes a tensor of ones, of dtype `F32`.
    fn ones(shape: impl Into<Shape>) -> Result<Self::Tensor> {
        filled::<Self>("ones", shape.into(), 1.0)
    }

    /// Makes a scalar tensor, of dtype `F32`.
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

    /// Sum over axes (`None`: all), which stay as extents of 1 with `keepdims`.
    fn sum(x: &Self::Tensor, axes: Option<&[usize]>, keepdims: bool) -> Result<Self::Tensor> {
        Ok(reduce_axes::<Self>(Self::reducer(ReduceOp::Sum), x, axes, keepdims)?.0)
    }

    /// Mean over axes, with arguments as for [`Backend::sum`].
    fn mean(x: &Self::Tensor, axes: Option<&[usize]>, keepdims: bool) -> Result<Self::Tensor> {
        Ok(reduce_axes::<Self>(Self::reducer(ReduceOp::Mean), x, axes, keepdims)?.0)
    }

    /// Maximum over axes, with arguments as for [`Backend::sum`].
    fn max(x: &Self::Tensor, axes: Option<&[usize]>, keepdims: bool) -> Result<Self::Tensor> {
        Ok(reduce_axes::<Self>(Self::reducer(ReduceOp::Max), x, axes, keepdims)?.0)
    }

    /// Permutes the axes into the order of `axes`; `None` swaps the last two.
    fn transpose(x: &Self::Tensor, axes: Option<&[usize]>) -> Result<Self::Tensor> {
        Self::view(x, transposed("transpose", x.layout(), axes)?)
    }

    /// Repeats axes of extent 1, without a copy.
    fn broadcast_to(x: &Self::Tensor, shape: &Shape) -> Result<Self::Tensor> {
        Self::view(x, x.layout().broadcast_to("broadcast_to", shape)?)
    }

    /// Sums over the axes that broadcasting from `shape` to the shape of `x` repeats: the adjoint of
    /// [`Backend::broadcast_to`].
    fn sum_to(x: &Self::Tensor, shape: &Shape) -> Result<Self::Tensor> {
        let axes = sum_to_axes("sum_to", x.shape(), shape)?;
        let summed =
            if axes.is_empty() { x.clone() } else { Self::reduce(ReduceOp::Sum, x, &axes)? };
        Self::reshape(&summed, *shape)
    }

    /// Returns the same elements with another shape; copies only if the layout requires it.
    fn reshape(x: &Self::Tensor, shape: impl Into<Shape>) -> Result<Self::Tensor> {
        let shape = shape.into();
        match x.layout().reshape("reshape", &shape)? {
            Some(layout) => Self::view(x, layout),
            None => Self::view(&Self::contiguous(x)?, Layout::contiguous(shape)),
        }
    }

    /// Returns another handle to the same storage.
    fn clone_tensor(x: &Self::Tensor) -> Self::Tensor {
        x.clone()
    }

    /// `total += gradient`, in place if nothing else shares the storage of `total`. If the addition fails,
    /// `total` is left equal to `gradient`.
    fn accumulate_grad(total: &mut Self::Tensor, gradient: &Self::Tensor) -> Result<()> {
        check_same_shape("accumulate_grad", total, gradient)?;
        check_dtype("accumulate_grad", total, gradient.dtype())?;
        let owned = std::mem::replace(total, gradient.clone());
        *total = Self::binary(BinaryOp::Add, Arg::Owned(owned), gradient)?;
        Ok(())
    }

    /// The tensor that [`IntoBackend`] may share with another backend.
    #[doc(hidden)]
    fn shared(x: &Self::Tensor) -> &dyn Any {
        x
    }

    /// Runs `f`, whose new tensors are on the device of `x`.
    #[doc(hidden)]
    fn beside<R>(_: &Self::Tensor, f: impl FnOnce() -> R) -> R {
        f()
    }

    /// A handle to the storage of another backend's tensor, if it can be one of this backend.
    #[doc(hidden)]
    fn adopt(x: &dyn Any) -> Option<Self::Tensor> {
        x.downcast_ref::<Self::Tensor>().cloned()
    }

    /// The elements in row-major order, little-endian, where the host can read them in place.
    #[doc(hidden)]
    fn host_bytes(_: &Self::Tensor) -> Option<&[u8]> {
        None
    }

    /// Makes a tensor of the elements in `bytes`, which are as for [`Backend::read`] and as many as the shape has.
    #[doc(hidden)]
    fn from_bytes(shape: Shape, dtype: DType, mut bytes: &[u8]) -> Result<Self::Tensor> {
        Self::read(shape, dtype, &mut |part| {
            part.copy_from_slice(bytes.split_off(..part.len()).unwrap_or_default());
            Ok(())
        })
    }

    engine!(engine_methods, Self);
}

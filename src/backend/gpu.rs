//! [`Gpu`]: a backend whose kernels are written in WGSL and run by a [`Driver`].
//!
//! ```text
//! Gpu<D>                    ops of the trait Backend: operands to plans, plans to the device
//!   plan, shader, kernel    what is dispatched: kernels as text, words, grids; data, without a device
//!   device                  pipelines, recycled buffers, faults that kernels found
//!     driver                the API: wgpu, Metal
//! ```
//!
//! 1. An op encodes its dispatches and returns. The device gets them in batches, at the latest when values are read.
//!    So errors that depend on values (an index out of range, a division of integers by zero) are those of the next
//!    read; they name the op that found them.
//! 2. Kernels compute in f32, sums of many elements in two f32. There is no `F64` and no `BF16`:
//!    [`Error::Unsupported`]. `F16` and integers need a device whose shaders have them.
//! 3. What has no kernel here is composed of what has one, on the device.

mod attention;
mod device;
mod driver;
mod fused;
mod images;
mod index;
mod kernel;
mod parts;
mod plan;
mod shader;
mod tensor;
#[cfg(all(feature = "metal", feature = "testing"))]
pub mod testing;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::backend::{
    Arg, Backend, Results, TensorData, check_arithmetic, check_dtype, check_indices, check_len,
    check_same_shape, check_update, common, joined_shape, no_tensor,
};
use crate::dtype::{DType, HostData, Scalar, for_dtype};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops::{
    BinaryOp, CompareOp, FusedOp, NumberTest, ReduceOp, ScanOp, TernaryOp, UnaryOp, UpdateOp,
};
use crate::shape::Shape;
pub use device::{Context, Statistics};
#[cfg(feature = "metal")]
pub use driver::metal::MetalDriver;
#[cfg(feature = "wgpu")]
pub use driver::wgpu::WgpuDriver;
pub use driver::{Capabilities, Driver, Failure};
use index::{add_at, check_entries, fault_of};
use plan::elementwise::{Function, Operand};
use plan::index::{copy_into, gather as plan_gather};
use plan::update::Update;
pub use shader::Module;
use shader::Store;
pub use tensor::{Gpu, GpuTensor};
use tensor::{View, contiguous, elementwise, from_start, make_writable, run, values_of};

/// The GPU by wgpu: Vulkan and DX12.
#[cfg(feature = "wgpu")]
pub type WgpuBackend = Gpu<WgpuDriver>;

/// The GPU of Apple's machines, by Metal.
#[cfg(all(feature = "metal", target_vendor = "apple"))]
pub type MetalBackend = Gpu<MetalDriver<driver::metal::objc::Objc>>;

#[cfg(all(feature = "metal", not(target_vendor = "apple"), not(feature = "testing")))]
compile_error!(
    "the feature `metal` of swath is for Apple's systems; elsewhere there is the feature `wgpu`"
);

impl<D: Driver> Backend for Gpu<D> {
    type Tensor = GpuTensor<D>;

    const NAME: &'static str = D::NAME;

    const WIDE: DType = DType::F32;

    fn from_host(data: HostData, shape: Shape) -> Result<GpuTensor<D>> {
        let (op, dtype) = ("from_host", data.dtype());
        check_len(op, data.len(), &shape)?;
        Self::from_bytes(shape, dtype, data.as_bytes())
    }

    fn from_bytes(shape: Shape, dtype: DType, bytes: &[u8]) -> Result<GpuTensor<D>> {
        let op = "from_host";
        Store::of(op, D::NAME, dtype)?;
        let storage = D::device()?.upload(op, bytes)?;
        Ok(GpuTensor(Arc::new(View { storage, layout: Layout::contiguous(shape), dtype })))
    }

    fn to_host(x: &GpuTensor<D>) -> Result<HostData> {
        let op = "to_host";
        // What lies before the view is read with it.
        let is_far = x.0.layout.offset() > x.numel();
        let x = if is_far { from_start(op, x)? } else { contiguous(op, x)? };
        for_dtype!(x.0.dtype, T => values_of::<D, T>(op, &x))
    }

    fn full(shape: Shape, value: Scalar, dtype: DType) -> Result<GpuTensor<D>> {
        let op = "full";
        let function = Function::Fill(Store::of(op, D::NAME, dtype)?);
        shape.validate(op)?;
        let out = GpuTensor::new(op, &shape, dtype)?;
        if let Some(plan) = function.plan(op, &shape, &[Operand::Number(value)], None)? {
            run(op, plan, &[], &[&out], None)?;
        }
        Ok(out)
    }

    fn cast(x: &GpuTensor<D>, dtype: DType) -> Result<GpuTensor<D>> {
        let op = "to_dtype";
        if x.0.dtype == dtype {
            return contiguous(op, x);
        }
        let (from, to) = (x.store(op)?, Store::of(op, D::NAME, dtype)?);
        elementwise(op, Function::Cast(from, to), dtype, &[&Arg::Ref(x)])
    }

    fn view(x: &GpuTensor<D>, layout: Layout) -> Result<GpuTensor<D>> {
        layout.check("view", x.0.storage.bytes() / x.0.dtype.size())?;
        Ok(x.with_layout(layout))
    }

    fn contiguous(x: &GpuTensor<D>) -> Result<GpuTensor<D>> {
        contiguous("contiguous", x)
    }

    fn unary<'a>(op: UnaryOp, x: impl Into<Arg<'a, GpuTensor<D>>>) -> Result<GpuTensor<D>> {
        let (name, x) = (op.name(), x.into());
        let tensor = x.tensor().ok_or_else(|| no_tensor(name))?;
        check_arithmetic(name, tensor.0.dtype, tensor.shape())?;
        let (store, dtype) = (tensor.store(name)?, tensor.0.dtype);
        elementwise(name, Function::Unary(op, store), dtype, &[&x])
    }

    fn binary<'a>(
        op: BinaryOp,
        a: impl Into<Arg<'a, GpuTensor<D>>>,
        b: impl Into<Arg<'a, GpuTensor<D>>>,
    ) -> Result<GpuTensor<D>> {
        let (name, a, b) = (op.name(), a.into(), b.into());
        let (shape, dtype) = common(name, &[&a, &b])?;
        check_arithmetic(name, dtype, shape)?;
        let store = Store::of(name, D::NAME, dtype)?;
        elementwise(name, Function::Binary(op, store), dtype, &[&a, &b])
    }

    fn ternary<'a>(
        op: TernaryOp,
        a: impl Into<Arg<'a, GpuTensor<D>>>,
        b: impl Into<Arg<'a, GpuTensor<D>>>,
        c: impl Into<Arg<'a, GpuTensor<D>>>,
    ) -> Result<GpuTensor<D>> {
        let (name, [a, b, c]) = (op.name(), [a.into(), b.into(), c.into()]);
        let first = [&a, &b, &c].into_iter().find_map(|x| x.tensor());
        let first = first.ok_or_else(|| no_tensor(name))?;
        let (store, dtype) = (first.store(name)?, first.0.dtype);
        elementwise(name, Function::Ternary(op, store), dtype, &[&a, &b, &c])
    }

    fn compare<'a>(
        op: CompareOp,
        a: impl Into<Arg<'a, GpuTensor<D>>>,
        b: impl Into<Arg<'a, GpuTensor<D>>>,
    ) -> Result<GpuTensor<D>> {
        let (name, a, b) = (op.name(), a.into(), b.into());
        let (_, dtype) = common(name, &[&a, &b])?;
        let store = Store::of(name, D::NAME, dtype)?;
        elementwise(name, Function::Compare(op, store), DType::Bool, &[&a, &b])
    }

    fn test(op: NumberTest, x: &GpuTensor<D>) -> Result<GpuTensor<D>> {
        let function = Function::Test(op, x.store(op.name())?);
        elementwise(op.name(), function, DType::Bool, &[&Arg::Ref(x)])
    }

    fn where_cond(mask: &GpuTensor<D>, a: &GpuTensor<D>, b: &GpuTensor<D>) -> Result<GpuTensor<D>> {
        let op = "where_cond";
        let function = Function::Select(mask.store(op)?, a.store(op)?);
        elementwise(op, function, a.0.dtype, &[&Arg::Ref(mask), &Arg::Ref(a), &Arg::Ref(b)])
    }

    fn reduce(op: ReduceOp, x: &GpuTensor<D>, axes: &[usize]) -> Result<GpuTensor<D>> {
        let name = op.name();
        let shape = *x.shape();
        let dtype = super::reduced_dtype(op, x.0.dtype, shape)?;
        if op.needs_elements() && x.numel() == 0 && shape.reduced(axes, true).numel() > 0 {
            return Err(Error::EmptyReduction { op: name, shape });
        }
        let out = GpuTensor::new(name, &x.shape().reduced(axes, true), dtype)?;
        parts::reduce(op, x, axes, &out)?;
        Ok(out)
    }

    fn scan(op: ScanOp, x: &GpuTensor<D>, axis: usize) -> Result<GpuTensor<D>> {
        let (name, shape) = (op.name(), *x.shape());
        shape.check_axis(name, axis)?;
        let dtype = x.0.dtype.accumulated();
        if shape.numel() == 0 {
            return GpuTensor::new(name, &shape, dtype);
        }
        x.store(name)?;
        if !dtype.is_float() && x.0.dtype != dtype {
            return Self::scan(op, &Self::cast(x, dtype)?, axis);
        }
        let out = GpuTensor::new(name, &shape, dtype)?;
        parts::scan(op, x, axis, &out)?;
        Ok(out)
    }

    fn matmul(a: &GpuTensor<D>, b: &GpuTensor<D>) -> Result<GpuTensor<D>> {
        let (op, lhs, rhs) = ("matmul", *a.shape(), *b.shape());
        check_dtype(op, a, b.0.dtype)?;
        if !a.0.dtype.is_float() && a.0.dtype != DType::I64 {
            return Err(Error::UnsupportedDType { op, dtype: a.0.dtype, shape: lhs });
        }
        let rank = lhs.ndim();
        let fits = rank >= 2
            && rhs.ndim() == rank
            && lhs.dims()[..rank - 2] == rhs.dims()[..rank - 2]
            && lhs.dim(rank - 1) == rhs.dim(rank - 2);
        if !fits {
            return Err(Error::ShapeMismatch { op, lhs, rhs });
        }
        match a.0.dtype {
            DType::I64 => super::integer_matmul::integer_matmul::<Self>(a, b),
            _ => parts::matmul(a, b),
        }
    }

    fn gather(x: &GpuTensor<D>, axis: usize, index: &GpuTensor<D>) -> Result<GpuTensor<D>> {
        let op = "gather";
        check_indices(op, x, axis, index)?;
        check_entries(op, x, axis, index)?;
        let out = GpuTensor::new(op, index.shape(), x.0.dtype)?;
        let (mut x, mut index) = (x.clone(), index.clone());
        let plan = match plan_gather(x.store(op)?, &x.0.layout, axis, &index.0.layout) {
            Err(Error::TooManyAxes { .. }) => {
                (x, index) = (contiguous(op, &x)?, contiguous(op, &index)?);
                plan_gather(x.store(op)?, &x.0.layout, axis, &index.0.layout)?
            }
            plan => plan?,
        };
        let fault = fault_of(x.shape(), axis, &index);
        run(op, plan, &[&x, &index], &[&out], Some(fault))?;
        Ok(out)
    }

    fn scatter_add(
        x: &GpuTensor<D>,
        axis: usize,
        index: &GpuTensor<D>,
        source: &GpuTensor<D>,
    ) -> Result<GpuTensor<D>> {
        let (op, dtype) = ("scatter_add", x.0.dtype);
        check_arithmetic(op, dtype, x.shape())?;
        check_dtype(op, x, source.0.dtype)?;
        check_same_shape(op, index, source)?;
        check_indices(op, x, axis, index)?;
        check_entries(op, x, axis, index)?;
        // 16-bit floats are added in `f32`; a word of bytes would be written by several threads. The bits of
        // sums are those of unsigned integers.
        let working = match dtype {
            DType::U8 | DType::I32 => DType::U32,
            dtype => dtype.at_least_f32(),
        };
        if working != dtype {
            let (wide, values) = (Self::cast(x, working)?, Self::cast(source, working)?);
            return Self::cast(&add_at(&wide, axis, index, &values)?, dtype);
        }
        add_at(x, axis, index, source)
    }

    fn fused(op: &FusedOp<'_, GpuTensor<D>>) -> Result<Results<GpuTensor<D>>> {
        fused::fused(op)
    }

    fn update(
        op: &UpdateOp,
        parameter: &mut GpuTensor<D>,
        gradient: &GpuTensor<D>,
        state: &mut [GpuTensor<D>],
    ) -> Result<()> {
        let name = op.name();
        check_update(op, parameter, gradient, state)?;
        let (dtype, shape) = (parameter.0.dtype, *parameter.shape());
        if !dtype.is_float() {
            return Err(Error::UnsupportedDType { op: name, dtype, shape });
        }
        let plan = Update::of(op, parameter.store(name)?).plan(op, &shape)?;
        let gradient = from_start(name, gradient)?;
        // All tensors are made writable before any is written, so that an error changes nothing.
        make_writable(name, parameter)?;
        state.iter_mut().try_for_each(|state| make_writable(name, state))?;
        let changed: SmallVec<[&GpuTensor<D>; 3]> =
            [&*parameter].into_iter().chain(&*state).collect();
        run(name, plan, &[&gradient], &changed, None)
    }

    fn cat(tensors: &[&GpuTensor<D>], axis: usize) -> Result<GpuTensor<D>> {
        let op = "cat";
        let shape = joined_shape(op, tensors, axis)?;
        let dtype = tensors[0].0.dtype;
        let store = tensors[0].store(op)?;
        if store.per_thread() > 1 {
            // Words of bytes would be written by several threads.
            let wide: Result<Vec<_>> = tensors.iter().map(|x| Self::cast(x, DType::U32)).collect();
            let wide = wide?;
            return Self::cast(&Self::cat(&wide.iter().collect::<Vec<_>>(), axis)?, dtype);
        }
        let out = GpuTensor::new(op, &shape, dtype)?;
        let mut start = 0;
        for x in tensors {
            let len = x.shape().dim(axis);
            if x.numel() > 0 {
                let part = out.0.layout.narrow(op, axis, start, len)?;
                run(op, copy_into(op, store, &x.0.layout, &part)?, &[x], &[&out], None)?;
            }
            start += len;
        }
        Ok(out)
    }
}

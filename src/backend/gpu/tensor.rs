//! [`Gpu`] and [`GpuTensor`], and how a plan runs on tensors.

use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Zeroable;
use smallvec::SmallVec;

use super::device::{Context, Fault, Storage};
use super::driver::Driver;
use super::kernel::Kernel;
use super::plan::Plan;
use super::plan::elementwise::{Function, Operand};
use super::shader::Store;
use crate::backend::{Arg, TensorData, no_tensor};
use crate::dtype::{DType, Element, HostData, Scalar};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::shape::Shape;

/// The backend of GPUs, by a driver. See the [module's page](super).
pub struct Gpu<D: Driver>(PhantomData<fn() -> D>);

impl<D: Driver> Clone for Gpu<D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Driver> Copy for Gpu<D> {}

impl<D: Driver> Gpu<D> {
    /// The device of this process, opened at the first call.
    ///
    /// # Errors
    /// [`Error::Device`] if there is none.
    pub fn device() -> Result<&'static Context<D>> {
        D::device()
    }
}

impl<D: Driver> Debug for Gpu<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(D::NAME)
    }
}

/// A tensor on the device of a driver. It is one pointer, because ops pass operands and results on several times.
#[derive(Debug)]
pub struct GpuTensor<D: Driver>(pub(super) Arc<View<D>>);

#[derive(Debug)]
pub(super) struct View<D: Driver> {
    pub storage: Arc<Storage<D>>,
    pub layout: Layout,
    pub dtype: DType,
}

impl<D: Driver> Clone for GpuTensor<D> {
    fn clone(&self) -> Self {
        GpuTensor(Arc::clone(&self.0))
    }
}

impl<D: Driver> TensorData for GpuTensor<D> {
    fn layout(&self) -> &Layout {
        &self.0.layout
    }

    fn dtype(&self) -> DType {
        self.0.dtype
    }
}

/// Bytes of a buffer for this many elements: whole words.
fn bytes_of(dtype: DType, numel: usize) -> usize {
    numel.saturating_mul(dtype.size()).next_multiple_of(4)
}

impl<D: Driver> GpuTensor<D> {
    /// A contiguous tensor of any content.
    pub(super) fn new(op: &'static str, shape: &Shape, dtype: DType) -> Result<Self> {
        let bytes = bytes_of(dtype, shape.numel());
        let storage = D::device()?.allocate(op, shape, bytes)?;
        Ok(GpuTensor(Arc::new(View { storage, layout: Layout::contiguous(*shape), dtype })))
    }

    pub(super) fn store(&self, op: &'static str) -> Result<Store> {
        Store::of(op, D::NAME, self.0.dtype)
    }

    pub(super) fn with_layout(&self, layout: Layout) -> Self {
        let View { ref storage, dtype, .. } = *self.0;
        GpuTensor(Arc::new(View { storage: Arc::clone(storage), layout, dtype }))
    }
}

/// Runs a plan that reads the operands and writes to the results, in the order of their bindings.
pub(super) fn run<D: Driver>(
    op: &'static str,
    plan: Plan<impl Into<Kernel>>,
    operands: &[&GpuTensor<D>],
    results: &[&GpuTensor<D>],
    fault: Option<Fault<D>>,
) -> Result<()> {
    if results.iter().all(|x| x.0.layout.numel() == 0) {
        return Ok(());
    }
    let Plan { kernel, words, grid } = plan;
    let read: SmallVec<[&Storage<D>; 5]> = operands.iter().map(|x| &*x.0.storage).collect();
    let written: SmallVec<[&Storage<D>; 4]> = results.iter().map(|x| &*x.0.storage).collect();
    D::device()?.run(op, Plan { kernel: kernel.into(), words, grid }, &read, &written, fault)
}

/// Computes an element-wise function of operands of one shape.
pub(super) fn elementwise<D: Driver>(
    op: &'static str,
    function: Function,
    dtype: DType,
    operands: &[&Arg<'_, GpuTensor<D>>],
) -> Result<GpuTensor<D>> {
    let first = operands.iter().find_map(|x| x.tensor()).ok_or_else(|| no_tensor(op))?;
    let shape = *first.shape();
    if !function.is_defined() {
        return Err(Error::UnsupportedDType { op, dtype: first.0.dtype, shape });
    }
    let out = GpuTensor::new(op, &shape, dtype)?;
    // A number needs no buffer, but its binding does.
    let tensors = operands.iter().map(|x| x.tensor().unwrap_or(first).clone());
    let mut tensors: SmallVec<[GpuTensor<D>; 3]> = tensors.collect();
    let numbers = operands.iter().map(|x| match x {
        Arg::Scalar(number) => Some(*number),
        Arg::Ref(_) | Arg::Owned(_) => None,
    });
    let numbers: SmallVec<[Option<Scalar>; 3]> = numbers.collect();
    let plan = loop {
        let described = tensors.iter().zip(&numbers).map(|(x, number)| match number {
            Some(number) => Operand::Number(*number),
            None => Operand::Tensor(&x.0.layout),
        });
        let described: SmallVec<[Operand<'_>; 3]> = described.collect();
        let plan = function.plan(op, &shape, &described, None)?;
        drop(described);
        if let Some(plan) = plan {
            break plan;
        }
        for x in &mut tensors {
            *x = contiguous(op, x)?;
        }
    };
    let fault = function.has_faults().then_some(Fault::Division(shape));
    let tensors: SmallVec<[&GpuTensor<D>; 3]> = tensors.iter().collect();
    run(op, plan, &tensors, &[&out], fault)?;
    Ok(out)
}

pub(super) fn contiguous<D: Driver>(op: &'static str, x: &GpuTensor<D>) -> Result<GpuTensor<D>> {
    if x.0.layout.is_contiguous() {
        return Ok(x.clone());
    }
    elementwise(op, Function::Copy(x.store(op)?), x.0.dtype, &[&Arg::Ref(x)])
}

/// The tensor, contiguous and from the start of its buffer on, where kernels read that know no layout.
pub(super) fn from_start<D: Driver>(op: &'static str, x: &GpuTensor<D>) -> Result<GpuTensor<D>> {
    match x.0.layout.offset() {
        0 => contiguous(op, x),
        _ => elementwise(op, Function::Copy(x.store(op)?), x.0.dtype, &[&Arg::Ref(x)]),
    }
}

/// Copies the tensor unless it is from the start of its buffer on, contiguous, and not shared.
pub(super) fn make_writable<D: Driver>(op: &'static str, x: &mut GpuTensor<D>) -> Result<()> {
    let is_shared = Arc::strong_count(&x.0).max(Arc::strong_count(&x.0.storage)) > 1;
    if x.0.layout.offset() == 0 && x.0.layout.is_contiguous() && !is_shared {
        return Ok(());
    }
    *x = elementwise(op, Function::Copy(x.store(op)?), x.0.dtype, &[&Arg::Ref(x)])?;
    Ok(())
}

/// The values of a contiguous tensor, copied once. What lies before them is read with them.
pub(super) fn values_of<D: Driver, T: Element>(
    op: &'static str,
    x: &GpuTensor<D>,
) -> Result<HostData> {
    let start = x.0.layout.offset();
    let end = start + x.numel();
    let mut stored = vec![T::Stored::zeroed(); bytes_of(T::DTYPE, end).max(4) / T::DTYPE.size()];
    D::device()?.download(op, &x.0.storage, bytemuck::cast_slice_mut(&mut stored))?;
    stored.truncate(end);
    stored.drain(..start);
    Ok(T::into_host(stored.into_iter().map(T::from_stored).collect()))
}

//! [`CpuBackend`]: layouts become contiguous runs for the kernels of `swath-kernels`, shared by
//! threads, in memory that is recycled.
//!
//! | file | what |
//! |---|---|
//! | `memory` | aligned buffers, recycled by size class |
//! | `parallel` | the one door to threads: swath's own, or those of the rayon pool of the caller |
//! | `walk` | operands of any layout as runs beside a contiguous result |
//! | `elementwise`, `table`, `choose`, `cast`, `copy`, `index`, `reduce`, `fold`, `scan`, `matmul` | the operations |
//! | `fused` | several passes in one |
//! | `update` | the optimizers' steps |
//! | `blas` | calls into a system BLAS |

pub(crate) mod blas;
mod cast;
mod choose;
mod copy;
mod elementwise;
mod fold;
mod fused;
mod index;
mod matmul;
pub(crate) mod memory;
pub(crate) mod parallel;
mod reduce;
mod scan;
mod table;
mod ternary;
#[cfg(test)]
mod tests;
mod update;
mod walk;

use bytemuck::Pod;

use super::{Arg, Backend, Results, TensorData};
use crate::dtype::{DType, Element, HostData, Scalar};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops::{
    BinaryOp, CompareOp, FusedOp, NumberTest, ReduceOp, ScanOp, TernaryOp, UnaryOp, UpdateOp,
};
use crate::shape::Shape;
use crate::shared::Shared;
use memory::Buffer;

/// The CPU, with the kernels of `swath-kernels`.
#[derive(Clone, Debug)]
pub struct CpuBackend;

/// A tensor in the CPU's memory. Cloning shares the storage.
///
/// Two pointers: a layout is ten times as long, and an op hands its operands and result on a few times.
#[derive(Clone, Debug)]
pub struct CpuTensor {
    storage: Shared<Storage>,
    /// `None` is the storage's own layout.
    view: Option<Shared<Layout>>,
}

/// Elements, and how they lie where nothing says otherwise.
#[derive(Debug)]
struct Storage {
    buffer: Buffer,
    dtype: DType,
    /// Row-major from the first element.
    layout: Layout,
}

impl Storage {
    fn new(buffer: Buffer, shape: &Shape, dtype: DType) -> Shared<Self> {
        let mut storage = Shared::new(Storage { buffer, dtype, layout: Layout::SCALAR });
        storage.get_mut().expect("just made").layout.set_contiguous(shape);
        storage
    }
}

impl TensorData for CpuTensor {
    fn layout(&self) -> &Layout {
        self.view.as_deref().unwrap_or(&self.storage.layout)
    }

    fn dtype(&self) -> DType {
        self.storage.dtype
    }
}

impl CpuTensor {
    /// The elements in row-major order, as they are stored (`bool` as bytes 0 and 1).
    ///
    /// ```
    /// use swath::{Backend, backend::cpu::CpuBackend};
    /// let x = CpuBackend::from_vec(vec![1.0, 2.0], 2)?;
    /// assert_eq!(x.as_slice::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), swath::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DTypeMismatch`]; [`Error::InvalidArgument`] if the elements do not lie in order.
    pub fn as_slice<T: Element>(&self) -> Result<&[T::Stored]> {
        self.check_slice::<T>("as_slice")?;
        Ok(self.run())
    }

    /// As [`CpuTensor::as_slice`], to write.
    ///
    /// # Errors
    /// As [`CpuTensor::as_slice`]; [`Error::InvalidArgument`] if the storage is shared;
    /// [`Error::UnsupportedDType`] for `bool`, whose bytes must stay 0 or 1.
    pub fn as_slice_mut<T: Element>(&mut self) -> Result<&mut [T::Stored]> {
        let op = "as_slice_mut";
        self.check_slice::<T>(op)?;
        if T::DTYPE == DType::Bool {
            return Err(Error::UnsupportedDType { op, dtype: T::DTYPE, shape: *self.shape() });
        }
        let (start, len) = (self.run_start(), self.numel());
        let Some(storage) = self.storage.get_mut() else {
            let reason = "the storage is shared with another tensor".to_owned();
            return Err(Error::InvalidArgument { op, reason });
        };
        Ok(&mut storage.buffer.as_slice_mut()[start..start + len])
    }

    fn check_slice<T: Element>(&self, op: &'static str) -> Result<()> {
        if self.dtype() != T::DTYPE {
            return Err(Error::DTypeMismatch {
                op,
                lhs: self.dtype(),
                rhs: T::DTYPE,
                shape: *self.shape(),
            });
        }
        if !self.is_contiguous() {
            let reason = "the elements do not lie in order; call contiguous() first".to_owned();
            return Err(Error::InvalidArgument { op, reason });
        }
        Ok(())
    }

    /// All of the storage.
    fn elements<T: Pod>(&self) -> &[T] {
        debug_assert_eq!(size_of::<T>(), self.dtype().size());
        self.storage.buffer.as_slice()
    }

    /// The same storage under another layout, which does not reach beyond it.
    fn with_layout(&self, layout: Layout) -> CpuTensor {
        CpuTensor { storage: self.storage.clone(), view: Some(Shared::new(layout)) }
    }

    fn is_contiguous(&self) -> bool {
        self.view.as_ref().is_none_or(|layout| layout.is_contiguous())
    }

    /// The elements of a contiguous layout.
    fn run<T: Pod>(&self) -> &[T] {
        debug_assert!(self.is_contiguous());
        if self.view.is_none() {
            return self.elements();
        }
        let start = self.run_start();
        &self.elements()[start..start + self.numel()]
    }

    /// Where the run begins; a layout without elements may begin anywhere.
    fn run_start(&self) -> usize {
        if self.numel() == 0 { 0 } else { self.layout().offset() }
    }
}

/// A result in the making: contiguous, its storage not yet shared.
struct Output {
    storage: Shared<Storage>,
}

impl Output {
    fn new(op: &'static str, shape: &Shape, dtype: DType) -> Result<Self> {
        let buffer = Buffer::new(op, shape, dtype)?;
        Ok(Output { storage: Storage::new(buffer, shape, dtype) })
    }

    /// As [`Output::new`], for a tensor that is loaded once and stays.
    fn exact(op: &'static str, shape: &Shape, dtype: DType) -> Result<Self> {
        let buffer = Buffer::exact(op, shape, dtype)?;
        Ok(Output { storage: Storage::new(buffer, shape, dtype) })
    }

    /// The operand's own memory, if it was given away and no one else refers to it; it holds the
    /// operand's elements in order. Otherwise the operand comes back.
    fn reuse<'a>(x: Arg<'a, CpuTensor>) -> std::result::Result<Self, Arg<'a, CpuTensor>> {
        match x {
            Arg::Owned(mut x)
                if x.is_contiguous()
                    && x.storage.buffer.bytes() == x.numel() * x.dtype().size()
                    && x.storage.is_unique() =>
            {
                if let (Some(view), Some(storage)) = (&x.view, x.storage.get_mut()) {
                    storage.layout.set_contiguous(view.shape());
                }
                Ok(Output { storage: x.storage })
            }
            other => Err(other),
        }
    }

    fn shape(&self) -> &Shape {
        self.storage.layout.shape()
    }

    fn numel(&self) -> usize {
        self.shape().numel()
    }

    fn elements<T: Pod>(&mut self) -> &mut [T] {
        debug_assert_eq!(size_of::<T>(), self.storage.dtype.size());
        self.elements_as()
    }

    fn elements_as_bytes(&mut self) -> &mut [u8] {
        self.elements_as()
    }

    fn elements_as<T: Pod>(&mut self) -> &mut [T] {
        let storage = self.storage.get_mut().expect("shared by no one until finished");
        storage.buffer.as_slice_mut()
    }

    fn finish(self) -> CpuTensor {
        CpuTensor { storage: self.storage, view: None }
    }
}

impl Backend for CpuBackend {
    type Tensor = CpuTensor;

    const NAME: &'static str = "cpu";

    fn from_host(data: HostData, shape: Shape) -> Result<CpuTensor> {
        cast::from_host(&data, &shape)
    }

    fn to_host(x: &CpuTensor) -> Result<HostData> {
        cast::to_host(x)
    }

    fn item(x: &CpuTensor) -> Result<Scalar> {
        cast::item(x)
    }

    fn full(shape: Shape, value: Scalar, dtype: DType) -> Result<CpuTensor> {
        cast::full(&shape, value, dtype)
    }

    fn cast(x: &CpuTensor, dtype: DType) -> Result<CpuTensor> {
        cast::cast(x, dtype)
    }

    fn view(x: &CpuTensor, layout: Layout) -> Result<CpuTensor> {
        let len = x.storage.buffer.bytes() / x.dtype().size();
        if layout.extent().is_some_and(|(_, high)| high >= len) {
            let reason = format!("a layout of shape {} reaches beyond the storage", layout.shape());
            return Err(Error::InvalidArgument { op: "view", reason });
        }
        Ok(x.with_layout(layout))
    }

    fn contiguous(x: &CpuTensor) -> Result<CpuTensor> {
        copy::contiguous("contiguous", x)
    }

    fn unary<'a>(op: UnaryOp, x: impl Into<Arg<'a, CpuTensor>>) -> Result<CpuTensor> {
        elementwise::unary(op, x.into())
    }

    fn binary<'a>(
        op: BinaryOp,
        a: impl Into<Arg<'a, CpuTensor>>,
        b: impl Into<Arg<'a, CpuTensor>>,
    ) -> Result<CpuTensor> {
        elementwise::binary(op, a.into(), b.into())
    }

    fn ternary<'a>(
        op: TernaryOp,
        a: impl Into<Arg<'a, CpuTensor>>,
        b: impl Into<Arg<'a, CpuTensor>>,
        c: impl Into<Arg<'a, CpuTensor>>,
    ) -> Result<CpuTensor> {
        ternary::ternary(op, [a.into(), b.into(), c.into()])
    }

    fn compare<'a>(
        op: CompareOp,
        a: impl Into<Arg<'a, CpuTensor>>,
        b: impl Into<Arg<'a, CpuTensor>>,
    ) -> Result<CpuTensor> {
        choose::compare(op, a.into(), b.into())
    }

    fn test(op: NumberTest, x: &CpuTensor) -> Result<CpuTensor> {
        choose::test(op, x)
    }

    fn where_cond(mask: &CpuTensor, a: &CpuTensor, b: &CpuTensor) -> Result<CpuTensor> {
        choose::where_cond(mask, a, b)
    }

    fn reduce(op: ReduceOp, x: &CpuTensor, axes: &[usize]) -> Result<CpuTensor> {
        reduce::reduce(op, x, axes)
    }

    fn scan(op: ScanOp, x: &CpuTensor, axis: usize) -> Result<CpuTensor> {
        scan::scan(op, x, axis)
    }

    fn matmul(a: &CpuTensor, b: &CpuTensor) -> Result<CpuTensor> {
        matmul::matmul(a, b)
    }

    fn matmul_add(a: &CpuTensor, b: &CpuTensor, c: CpuTensor) -> Result<CpuTensor> {
        matmul::matmul_add(a, b, c)
    }

    fn gather(x: &CpuTensor, axis: usize, index: &CpuTensor) -> Result<CpuTensor> {
        index::gather(x, axis, index)
    }

    fn scatter_add(
        x: &CpuTensor,
        axis: usize,
        index: &CpuTensor,
        source: &CpuTensor,
    ) -> Result<CpuTensor> {
        index::scatter_add(x, axis, index, source)
    }

    fn cat(tensors: &[&CpuTensor], axis: usize) -> Result<CpuTensor> {
        copy::cat(tensors, axis)
    }

    fn fused(op: &FusedOp, operands: &[Option<&CpuTensor>]) -> Result<Results<CpuTensor>> {
        fused::fused(op, operands)
    }

    fn update(
        op: &UpdateOp,
        parameter: &mut CpuTensor,
        gradient: &CpuTensor,
        state: &mut [CpuTensor],
    ) -> Result<()> {
        update::update(op, parameter, gradient, state)
    }

    fn read(
        shape: Shape,
        dtype: DType,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<CpuTensor> {
        cast::read(&shape, dtype, fill)
    }
}

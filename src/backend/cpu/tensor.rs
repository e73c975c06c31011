//! [`CpuTensor`], and [`Output`], one in the making.

use std::mem::replace;

use bytemuck::Pod;

use crate::backend::{Arg, TensorData};
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::runtime::memory::Buffer;
use crate::runtime::shared::Shared;
use crate::shape::Shape;

/// A tensor in the CPU's memory. Cloning shares the storage.
///
/// One pointer: an op hands its operands and result on a few times, and two that are written apart and read
/// together are read late.
#[derive(Clone, Debug)]
pub struct CpuTensor(Shared<View>);

/// How elements lie, and where.
#[derive(Debug)]
struct View {
    layout: Layout,
    dtype: DType,
    memory: Memory,
}

/// Where elements lie.
#[derive(Debug)]
enum Memory {
    /// In the tensor's own memory, row-major from its first element.
    Own(Buffer),
    /// In that of a tensor that has its own.
    Of(CpuTensor),
}

impl TensorData for CpuTensor {
    fn layout(&self) -> &Layout {
        &self.0.layout
    }

    fn dtype(&self) -> DType {
        self.0.dtype
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
        let Some(buffer) = self.buffer_mut() else {
            let reason = "the storage is shared with another tensor".to_owned();
            return Err(Error::InvalidArgument { op, reason });
        };
        Ok(&mut buffer.as_slice_mut()[start..start + len])
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

    /// The tensor whose memory it is.
    fn owner(&self) -> &CpuTensor {
        match &self.0.memory {
            Memory::Own(_) => self,
            Memory::Of(owner) => owner,
        }
    }

    pub(super) fn buffer(&self) -> &Buffer {
        match &self.owner().0.memory {
            Memory::Own(buffer) => buffer,
            Memory::Of(_) => unreachable!("an owner's memory is its own"),
        }
    }

    /// The memory, to write, if no other tensor refers to it.
    pub(super) fn buffer_mut(&mut self) -> Option<&mut Buffer> {
        match &mut self.0.get_mut()?.memory {
            Memory::Own(buffer) => Some(buffer),
            Memory::Of(owner) => owner.buffer_mut(),
        }
    }

    /// True if no other tensor refers to its memory.
    pub(super) fn is_unique(&self) -> bool {
        self.0.is_unique() && self.owner().0.is_unique()
    }

    /// All of the storage.
    pub(super) fn elements<T: Pod>(&self) -> &[T] {
        debug_assert_eq!(size_of::<T>(), self.dtype().size());
        self.buffer().as_slice()
    }

    /// The same storage under another layout, which does not reach beyond it.
    pub(super) fn with_layout(&self, layout: Layout) -> CpuTensor {
        let (dtype, memory) = (self.dtype(), Memory::Of(self.owner().clone()));
        CpuTensor(Shared::new(View { layout, dtype, memory }))
    }

    pub(super) fn is_contiguous(&self) -> bool {
        matches!(self.0.memory, Memory::Own(_)) || self.layout().is_contiguous()
    }

    /// The elements of a contiguous layout.
    pub(super) fn run<T: Pod>(&self) -> &[T] {
        debug_assert!(self.is_contiguous());
        if let Memory::Own(buffer) = &self.0.memory {
            return buffer.as_slice();
        }
        let start = self.run_start();
        &self.elements()[start..start + self.numel()]
    }

    /// Where the run begins; a layout without elements may begin anywhere.
    pub(super) fn run_start(&self) -> usize {
        if self.numel() == 0 { 0 } else { self.layout().offset() }
    }
}

/// A result in the making: contiguous, its memory its own and not yet shared.
pub(super) struct Output(CpuTensor);

impl Output {
    pub(super) fn new(op: &'static str, shape: &Shape, dtype: DType) -> Result<Self> {
        Ok(Output::in_buffer(Buffer::new(op, shape, dtype)?, shape, dtype))
    }

    /// As [`Output::new`], for a tensor that is loaded once and stays.
    pub(super) fn exact(op: &'static str, shape: &Shape, dtype: DType) -> Result<Self> {
        Ok(Output::in_buffer(Buffer::exact(op, shape, dtype)?, shape, dtype))
    }

    #[inline(always)]
    pub(super) fn in_buffer(buffer: Buffer, shape: &Shape, dtype: DType) -> Self {
        let buffer = buffer.in_words();
        let view = || View { layout: Layout::SCALAR, dtype, memory: Memory::Own(buffer()) };
        let mut view = Shared::made(view);
        view.get_mut().expect("just made").layout.set_contiguous(shape);
        Output(CpuTensor(view))
    }

    /// The operand's own memory, if it was given away and no one else refers to it; it holds the
    /// operand's elements in order. A number takes the operand's place.
    pub(super) fn reuse(x: &mut Arg<'_, CpuTensor>) -> Option<Self> {
        match x {
            Arg::Owned(x)
                if x.is_contiguous()
                    && x.buffer().bytes() == x.numel() * x.dtype().size()
                    && x.is_unique() => {}
            _ => return None,
        }
        let Arg::Owned(x) = replace(x, Arg::Scalar(Scalar::Int(0))) else { return None };
        let Memory::Of(owner) = &x.0.memory else { return Some(Output(x)) };
        let mut owner = owner.clone();
        let shape = *x.shape();
        drop(x);
        owner.0.get_mut().expect("it was unique").layout.set_contiguous(&shape);
        Some(Output(owner))
    }

    pub(super) fn shape(&self) -> &Shape {
        self.0.shape()
    }

    pub(super) fn numel(&self) -> usize {
        self.shape().numel()
    }

    pub(super) fn elements<T: Pod>(&mut self) -> &mut [T] {
        debug_assert_eq!(size_of::<T>(), self.0.dtype().size());
        self.elements_as()
    }

    pub(super) fn elements_as_bytes(&mut self) -> &mut [u8] {
        self.elements_as()
    }

    pub(super) fn elements_as<T: Pod>(&mut self) -> &mut [T] {
        self.0.buffer_mut().expect("shared by no one until finished").as_slice_mut()
    }

    pub(super) fn finish(self) -> CpuTensor {
        self.0
    }
}

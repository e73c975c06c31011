//! [`CpuTensor`], and [`Output`], a tensor before it is shared.

use std::mem::replace;

use bytemuck::Pod;

use super::written::Written;
use crate::backend::{Arg, TensorData, check_dtype};
use crate::dtype::{DType, Element, HostData, Scalar};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::runtime::memory::{self, Buffer, Foreign};
use crate::runtime::shared::Shared;
use crate::shape::Shape;

/// A tensor in the CPU's memory. Cloning shares the storage.
///
/// A tensor is one pointer, because ops pass operands and results on several times: two words that are written
/// separately and read together would miss store forwarding.
#[derive(Clone, Debug)]
pub struct CpuTensor(Shared<View>);

/// Layout, dtype and memory of a tensor.
#[derive(Debug)]
struct View {
    layout: Layout,
    dtype: DType,
    memory: Memory,
}

/// Memory of a tensor.
#[derive(Debug)]
enum Memory {
    /// Its own memory, contiguous from the first element.
    Own(Buffer),
    /// That of a value outside of the pool, contiguous from the first element and never written.
    Foreign(Foreign),
    /// The memory of another tensor, which is `Own` or `Foreign`.
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
    /// Returns the elements in row-major order, as stored (`bool` as bytes 0 and 1).
    ///
    /// ```
    /// use swath::{Backend, backend::cpu::CpuBackend};
    /// let x = CpuBackend::from_vec(vec![1.0, 2.0], 2)?;
    /// assert_eq!(x.as_slice::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), swath::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DTypeMismatch`]; [`Error::InvalidArgument`] if the tensor is not contiguous.
    pub fn as_slice<T: Element>(&self) -> Result<&[T::Stored]> {
        self.check_slice::<T>("as_slice")?;
        Ok(self.run())
    }

    /// Returns the elements for writing, like [`CpuTensor::as_slice`].
    ///
    /// # Errors
    /// Those of [`CpuTensor::as_slice`]; [`Error::InvalidArgument`] if the storage is shared;
    /// [`Error::UnsupportedDType`] for `bool`, whose bytes must stay 0 or 1.
    pub fn as_slice_mut<T: Element>(&mut self) -> Result<&mut [T::Stored]> {
        let op = "as_slice_mut";
        self.check_slice::<T>(op)?;
        if T::DTYPE == DType::Bool {
            return Err(Error::UnsupportedDType { op, dtype: T::DTYPE, shape: *self.shape() });
        }
        let (start, len) = (self.run_start(), self.numel());
        let Some(buffer) = self.buffer_mut() else {
            let reason = "the storage is shared".to_owned();
            return Err(Error::InvalidArgument { op, reason });
        };
        Ok(&mut buffer.as_slice_mut()[start..start + len])
    }

    fn check_slice<T: Element>(&self, op: &'static str) -> Result<()> {
        check_dtype(op, self, T::DTYPE)?;
        if !self.is_contiguous() {
            let reason = "the tensor is not contiguous; call contiguous() first".to_owned();
            return Err(Error::InvalidArgument { op, reason });
        }
        Ok(())
    }

    /// The tensor that owns the memory.
    fn owner(&self) -> &CpuTensor {
        match &self.0.memory {
            Memory::Own(_) | Memory::Foreign(_) => self,
            Memory::Of(owner) => owner,
        }
    }

    pub(super) fn buffer(&self) -> &Buffer {
        match &self.owner().0.memory {
            Memory::Own(buffer) => buffer,
            Memory::Foreign(foreign) => foreign.buffer(),
            Memory::Of(_) => unreachable!("an owner has its own memory"),
        }
    }

    /// The memory for writing, if nothing else shares it.
    pub(super) fn buffer_mut(&mut self) -> Option<&mut Buffer> {
        match &mut self.0.get_mut()?.memory {
            Memory::Own(buffer) => Some(buffer),
            Memory::Foreign(_) => None,
            Memory::Of(owner) => owner.buffer_mut(),
        }
    }

    /// True if nothing else shares the memory.
    pub(super) fn is_unique(&self) -> bool {
        let owner = &self.owner().0;
        self.0.is_unique() && owner.is_unique() && !matches!(owner.memory, Memory::Foreign(_))
    }

    /// True if a change in place has to copy the elements because something else shares the memory.
    /// Such copies are counted.
    pub(super) fn must_copy(&self) -> bool {
        let is_shared = !self.is_unique();
        if is_shared {
            memory::count_copy();
        }
        is_shared
    }

    /// True if the elements fill the memory in row-major order, and nothing else shares it.
    pub(super) fn is_reusable(&self) -> bool {
        let bytes = self.numel() * self.dtype().size();
        self.is_contiguous() && self.buffer().bytes() == bytes && self.is_unique()
    }

    /// The memory as a vector, if it was one, nothing else shares it, and the elements fill it in row-major order.
    pub(crate) fn take_vec<E: Element>(&mut self) -> Option<Vec<E>> {
        if !self.is_reusable() {
            return None;
        }
        self.buffer_mut()?.take_vec()
    }

    /// The elements that the layout selects from.
    pub(crate) fn storage<E: Element<Stored = E> + Pod>(&self) -> &[E] {
        self.elements()
    }

    /// The bytes of the storage for writing, if nothing else shares it.
    #[allow(dead_code, reason = "called with the feature `dlpack`")]
    pub(crate) fn storage_mut(&mut self) -> Option<&mut [u8]> {
        Some(self.buffer_mut()?.as_slice_mut())
    }

    /// All of the storage.
    pub(super) fn elements<T: Pod>(&self) -> &[T] {
        debug_assert_eq!(size_of::<T>(), self.dtype().size());
        self.buffer().as_slice()
    }

    /// A tensor in the memory of `foreign`, which has as many elements as `shape`.
    pub(crate) fn in_foreign(foreign: Foreign, shape: &Shape) -> CpuTensor {
        let (layout, dtype) = (Layout::contiguous(*shape), foreign.dtype());
        CpuTensor(Shared::new(View { layout, dtype, memory: Memory::Foreign(foreign) }))
    }

    /// The same storage with another layout, which must be within it.
    pub(super) fn with_layout(&self, layout: Layout) -> CpuTensor {
        let (dtype, memory) = (self.dtype(), Memory::Of(self.owner().clone()));
        CpuTensor(Shared::new(View { layout, dtype, memory }))
    }

    /// The same bits as elements of another dtype of the same width.
    pub(crate) fn with_dtype(&self, dtype: DType) -> CpuTensor {
        let (layout, memory) = (*self.layout(), Memory::Of(self.owner().clone()));
        CpuTensor(Shared::new(View { layout, dtype, memory }))
    }

    pub(super) fn is_contiguous(&self) -> bool {
        !matches!(self.0.memory, Memory::Of(_)) || self.layout().is_contiguous()
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

    /// The bytes of the elements of a contiguous layout.
    pub(super) fn run_bytes(&self) -> &[u8] {
        let size = self.dtype().size();
        let start = self.run_start() * size;
        &self.buffer().as_slice()[start..start + self.numel() * size]
    }

    /// Position of the first element of a contiguous layout; the offset of an empty layout is arbitrary.
    fn run_start(&self) -> usize {
        if self.numel() == 0 { 0 } else { self.layout().offset() }
    }
}

/// A result that is being computed: contiguous, in its own memory, and not shared. Its elements are arbitrary until
/// the op has written all of them: as a whole, through [`Output::elements`], or in parts, which are counted.
pub(super) struct Output {
    tensor: CpuTensor,
    written: Written,
}

impl Output {
    pub(super) fn new(op: &'static str, shape: &Shape, dtype: DType) -> Result<Self> {
        Ok(Output::in_buffer(Buffer::new(op, shape, dtype)?, shape, dtype))
    }

    /// Like [`Output::new`], without size classes, for a tensor that is loaded once and kept.
    pub(super) fn exact(op: &'static str, shape: &Shape, dtype: DType) -> Result<Self> {
        Ok(Output::in_buffer(Buffer::exact(op, shape, dtype)?, shape, dtype))
    }

    /// Takes over the memory of values, whose number is that of the shape; returns those that are better copied.
    pub(super) fn adopt(values: HostData, shape: &Shape) -> Result<Result<Self, HostData>> {
        let dtype = values.dtype();
        Ok(Buffer::adopt(values)?.map(|buffer| Output::in_buffer(buffer, shape, dtype)))
    }

    #[inline(always)]
    fn of(tensor: CpuTensor) -> Self {
        Output { tensor, written: Written::default() }
    }

    #[inline(always)]
    fn in_buffer(buffer: Buffer, shape: &Shape, dtype: DType) -> Self {
        let buffer = buffer.in_words();
        let view = || View { layout: Layout::SCALAR, dtype, memory: Memory::Own(buffer()) };
        let mut view = Shared::made(view);
        view.get_mut().expect("a new handle is unique").layout.set_contiguous(shape);
        Output::of(CpuTensor(view))
    }

    /// Takes the memory of an operand that is owned, contiguous and unshared, and that fills its memory. The
    /// memory still holds the operand's elements. A number replaces the operand.
    pub(super) fn reuse(x: &mut Arg<'_, CpuTensor>) -> Option<Self> {
        match x {
            Arg::Owned(x) if x.is_reusable() => {}
            _ => return None,
        }
        let Arg::Owned(x) = replace(x, Arg::Scalar(Scalar::Int(0))) else { return None };
        let Memory::Of(owner) = &x.0.memory else { return Some(Output::of(x)) };
        let mut owner = owner.clone();
        let (shape, dtype) = (*x.shape(), x.dtype());
        drop(x);
        let view = owner.0.get_mut().expect("checked to be unique");
        view.layout.set_contiguous(&shape);
        view.dtype = dtype;
        Some(Output::of(owner))
    }

    pub(super) fn shape(&self) -> &Shape {
        self.tensor.shape()
    }

    pub(super) fn numel(&self) -> usize {
        self.shape().numel()
    }

    pub(super) fn elements<T: Pod>(&mut self) -> &mut [T] {
        debug_assert_eq!(size_of::<T>(), self.tensor.dtype().size());
        self.buffer().as_slice_mut()
    }

    /// The elements for parts of `op`, each of which counts those that it writes: [`Output::finish`] checks the sum.
    pub(super) fn parts<T: Pod>(&mut self, op: &'static str) -> (&mut [T], &Written) {
        debug_assert_eq!(size_of::<T>(), self.tensor.dtype().size());
        self.written = Written::in_parts_of(op);
        let buffer = self.tensor.buffer_mut().expect("an output is not shared");
        (buffer.as_slice_mut(), &self.written)
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer().as_slice_mut()
    }

    fn buffer(&mut self) -> &mut Buffer {
        self.tensor.buffer_mut().expect("an output is not shared")
    }

    /// The result, of which all elements are written.
    pub(super) fn finish(self) -> CpuTensor {
        self.written.check(self.numel());
        self.tensor
    }
}

//! Exchange of memory with other code: owners of elements as storage, bytes, vectors and strided views.

use bytemuck::Pod;

use crate::autodiff::is_grad_enabled;
use crate::backend::cpu::{CpuBackend, CpuTensor, map_elements};
use crate::backend::{Backend, check_len};
use crate::dtype::{DType, Element, IS_LITTLE_ENDIAN, check_bools};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::runtime::memory::Foreign;
use crate::shape::{Shape, Strides};

use super::Tensor;

/// # Memory of others
impl<B: Backend> Tensor<B> {
    /// Makes the elements that `owner` holds, in row-major order, a tensor's storage without a copy: a `Vec`, an
    /// `Arc<[f32]>`, a memory map, the buffer of another library. The tensor and its views keep the owner, which is
    /// dropped with the last of them, on any thread. They never write to it: a change in place copies first.
    ///
    /// `as_ref` is called once. A device that does not share the CPU's memory gets a copy, and the owner is dropped.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use swath::cpu::prelude::*;
    /// let numbers: Arc<[f32]> = Arc::new([1.0, 2.0, 3.0, 4.0]);
    /// let x = Tensor::from_owner(numbers.clone(), (2, 2))?;
    /// assert_eq!(x.as_bytes()?.as_ptr(), numbers.as_ptr().cast());
    /// assert_eq!(Arc::strong_count(&numbers), 2);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the number of elements is not that of `shape`.
    pub fn from_owner<E, O>(owner: O, shape: impl Into<Shape>) -> Result<Self>
    where
        E: Element,
        O: AsRef<[E]> + Send + Sync + 'static,
    {
        Self::in_foreign("from_owner", Foreign::new(owner), &shape.into())
    }

    /// Like [`from_owner`](Tensor::from_owner), with element `[i, j]` at position
    /// `offset + i * strides[0] + j * strides[1]` of the owner's elements. Strides may be negative or 0.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let columns = vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    /// let x = Tensor::from_owner_strided(columns, (2, 3), &[1, 2], 0)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if an element is not among the owner's, or if there are not as many strides as axes.
    pub fn from_owner_strided<E, O>(
        owner: O,
        shape: impl Into<Shape>,
        strides: &[isize],
        offset: usize,
    ) -> Result<Self>
    where
        E: Element,
        O: AsRef<[E]> + Send + Sync + 'static,
    {
        let (op, shape) = ("from_owner_strided", shape.into());
        let layout = match strides.len() == shape.ndim() {
            true => Layout::new(shape, Strides::new(strides), offset),
            false => None,
        };
        let Some(layout) = layout else {
            let reason = format!("strides {strides:?} from {offset} do not fit shape {shape}");
            return Err(Error::InvalidArgument { op, reason });
        };
        let foreign = Foreign::new(owner);
        layout.check(op, foreign.len())?;
        let all = Shape::from(foreign.len());
        Ok(Tensor::from_data(B::view(Self::in_foreign(op, foreign, &all)?.data(), layout)?))
    }

    pub(crate) fn in_foreign(op: &'static str, foreign: Foreign, shape: &Shape) -> Result<Self> {
        shape.validate(op)?;
        check_len(op, foreign.len(), shape)?;
        let data = CpuTensor::in_foreign(foreign, shape);
        match B::adopt(&data) {
            Some(data) => Ok(Tensor::from_data(data)),
            None => Tensor::<CpuBackend>::from_data(data).to_backend(),
        }
    }

    /// Like [`from_owner`](Tensor::from_owner), for an owner of bytes, such as a memory map or the buffer of a column, that
    /// are the elements in row-major order, little-endian. They are copied if their address is not a multiple of the
    /// elements' size.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use swath::cpu::prelude::*;
    /// let bytes: Arc<[u8]> = Arc::new([1, 0, 0, 1]);
    /// let x = Tensor::from_owner_bytes(bytes, DType::U16, 2)?;
    /// assert_eq!(x.to_vec::<u16>()?, [1, 256]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`from_bytes`](Tensor::from_bytes).
    pub fn from_owner_bytes(
        owner: impl AsRef<[u8]> + Send + Sync + 'static,
        dtype: DType,
        shape: impl Into<Shape>,
    ) -> Result<Self> {
        let (op, shape) = ("from_owner_bytes", shape.into());
        match Foreign::of_bytes(owner, dtype) {
            Ok(foreign) if IS_LITTLE_ENDIAN => {
                check_bools(op, dtype, foreign.buffer().as_slice())?;
                Self::in_foreign(op, foreign, &shape)
            }
            Ok(other) | Err(other) => Self::from_bytes(dtype, shape, other.buffer().as_slice()),
        }
    }

    /// Creates a tensor from the bytes of its elements in row-major order, little-endian. Booleans are bytes 0 and 1.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let x = Tensor::from_bytes(DType::U32, 2, &[1, 0, 0, 0, 0, 1, 0, 0])?;
    /// assert_eq!(x.to_vec::<u32>()?, [1, 256]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless there are as many bytes as `shape` and `dtype` take;
    /// [`Error::InvalidArgument`] for a byte of a boolean other than 0 and 1.
    pub fn from_bytes(dtype: DType, shape: impl Into<Shape>, bytes: &[u8]) -> Result<Self> {
        let (op, shape) = ("from_bytes", shape.into());
        shape.validate(op)?;
        if !bytes.len().is_multiple_of(dtype.size()) {
            let reason = format!("{} bytes are not whole elements of type {dtype}", bytes.len());
            return Err(Error::InvalidArgument { op, reason });
        }
        check_len(op, bytes.len() / dtype.size(), &shape)?;
        Ok(Tensor::from_data(B::from_bytes(shape, dtype, bytes)?))
    }

    /// Returns the bytes of the elements in row-major order, little-endian, in place. Booleans are bytes 0 and 1.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// assert_eq!(Tensor::from_vec(vec![1u32, 256], 2)?.as_bytes()?, [1, 0, 0, 0, 0, 1, 0, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the elements are not contiguous (see [`contiguous`](Tensor::contiguous)), not in
    /// the CPU's memory, or stored in another byte order.
    pub fn as_bytes(&self) -> Result<&[u8]> {
        B::host_bytes(self.data()).ok_or_else(|| {
            let reason = match IS_LITTLE_ENDIAN {
                true => "the elements are not contiguous in the CPU's memory: call contiguous(), or to_backend()",
                false => "the elements are big-endian on this machine",
            };
            Error::InvalidArgument { op: "as_bytes", reason: reason.to_owned() }
        })
    }

    /// Moves the elements into a vector in row-major order. There is no copy if the tensor's memory was a vector's,
    /// of which this is the last owner, and the tensor is all of it (see [`from_vec`](Tensor::from_vec)).
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let values = vec![1.0f32; 10_000];
    /// let memory = values.as_ptr();
    /// let x = Tensor::from_vec(values, (100, 100))?;
    /// assert_eq!(x.into_vec::<f32>()?.as_ptr(), memory);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DTypeMismatch`] if `E` is not the tensor's dtype.
    pub fn into_vec<E: Element>(mut self) -> Result<Vec<E>> {
        self.check_dtype("into_vec", E::DTYPE)?;
        let data: &mut dyn std::any::Any = self.data_mut();
        let values = data.downcast_mut::<CpuTensor>().and_then(CpuTensor::take_vec::<E>);
        values.map_or_else(|| self.to_vec(), Ok)
    }
}

/// # Views
impl Tensor<CpuBackend> {
    /// Applies a function to every element of any layout, on swath's threads. The result is in row-major order; it is
    /// the same for any number of threads if `f` depends on its argument alone. `f` may be called once for elements
    /// that share their memory. For kernels on the CPU's vectors see `map_with` (feature `pulp`).
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// let y = x.t()?.map_elements(|x: f32| x as i64 % 2 == 0)?;
    /// assert_eq!(y.to_vec::<bool>()?, [false, false, true, true]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DTypeMismatch`] if `E` is not the tensor's dtype; [`Error::NoGradient`] if the tensor is tracked and
    /// gradients are recorded.
    pub fn map_elements<E: Element, R: Element>(&self, f: impl Fn(E) -> R + Sync) -> Result<Self> {
        let op = "map_elements";
        self.check_dtype(op, E::DTYPE)?;
        if self.is_tracked() && is_grad_enabled() {
            let reason = format!(
                "the operand of shape {} is tracked, and a function has no gradient: apply it in a CustomOp, or detach",
                self.shape()
            );
            return Err(Error::NoGradient { op, reason });
        }
        map_elements(op, self.data(), f).map(Tensor::from_data)
    }

    /// Borrows the elements of any layout, without a copy.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let x = tensor![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]].t()?;
    /// let view = x.view::<f32>()?;
    /// assert_eq!((view.dims(), view.strides()), (&[3, 2][..], &[1, 3][..]));
    /// assert_eq!(view.get(&[2, 1]), Some(6.0));
    /// assert!(view.iter().eq([1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DTypeMismatch`] if `E` is not the tensor's dtype.
    pub fn view<E: Element<Stored = E> + Pod>(&self) -> Result<View<'_, E>> {
        self.check_dtype("view", E::DTYPE)?;
        Ok(View { storage: self.data().storage(), layout: *self.layout() })
    }
}

/// The elements of a tensor, borrowed: see [`Tensor::view`].
#[derive(Clone, Copy, Debug)]
pub struct View<'a, E> {
    storage: &'a [E],
    layout: Layout,
}

impl<'a, E: Copy> View<'a, E> {
    /// The storage, of which the layout selects elements.
    pub fn storage(&self) -> &'a [E] {
        self.storage
    }

    /// Shape, strides and offset of the elements in the storage.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The extents of the axes.
    pub fn dims(&self) -> &[usize] {
        self.layout.dims()
    }

    /// The strides, in elements.
    pub fn strides(&self) -> &[isize] {
        self.layout.strides()
    }

    /// The elements in row-major order, if they are contiguous.
    pub fn as_slice(&self) -> Option<&'a [E]> {
        let start = if self.layout.numel() == 0 { 0 } else { self.layout.offset() };
        self.layout.is_contiguous().then(|| &self.storage[start..start + self.layout.numel()])
    }

    /// The element at an index; `None` unless it has an entry for each axis, each less than the extent.
    pub fn get(&self, index: &[usize]) -> Option<E> {
        let dims = self.dims();
        let is_inside = index.len() == dims.len() && index.iter().zip(dims).all(|(i, n)| i < n);
        is_inside.then(|| self.storage[self.layout.position(index)])
    }

    /// The elements in row-major order.
    pub fn iter(&self) -> impl Iterator<Item = E> + use<'a, E> {
        let storage = self.storage;
        self.layout.positions().map(move |position| storage[position])
    }

    /// The slices along the last axis, in row-major order of the others; one slice of one element without axes.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let x = tensor![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]].narrow(1, 1, 2)?;
    /// assert!(x.view::<f32>()?.rows()?.eq([[2.0, 3.0], [5.0, 6.0]]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the elements of a row are not adjacent.
    pub fn rows(&self) -> Result<impl Iterator<Item = &'a [E]> + use<'a, E>> {
        let (storage, mut starts) = (self.storage, self.layout);
        let mut len = 1;
        if let Some(last) = self.dims().len().checked_sub(1) {
            len = self.dims()[last];
            let stride = self.strides()[last];
            if len > 1 && stride != 1 {
                let reason =
                    format!("elements of a row are {stride} apart, not 1: call contiguous()");
                return Err(Error::InvalidArgument { op: "rows", reason });
            }
            starts = starts.without_axis(last);
        }
        let start = move |position| if len == 0 { 0 } else { position };
        Ok(starts.positions().map(move |position| &storage[start(position)..][..len]))
    }

    /// Views of `n` entries along the first axis, one after another; the last may have fewer.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
    /// let chunks = x.view::<f32>()?.chunks(2)?;
    /// assert!(chunks.map(|chunk| chunk.iter().sum::<f32>()).eq([10.0, 11.0]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `n` is 0; [`Error::InvalidShape`] without an axis.
    pub fn chunks(&self, n: usize) -> Result<impl Iterator<Item = View<'a, E>> + use<'a, E>> {
        let (view, dim) = (*self, self.first_axis("chunks", n)?);
        let starts = (0..dim.div_ceil(n)).map(move |i| i * n);
        Ok(starts.map(move |start| view.entries(start, n.min(dim - start))))
    }

    /// Views of `n` adjacent entries along the first axis, one beginning at each entry; none if there are fewer.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let x = tensor![1.0, 2.0, 4.0, 8.0];
    /// let windows = x.view::<f32>()?.windows(3)?;
    /// assert!(windows.map(|window| window.iter().sum::<f32>()).eq([7.0, 14.0]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`chunks`](View::chunks).
    pub fn windows(&self, n: usize) -> Result<impl Iterator<Item = View<'a, E>> + use<'a, E>> {
        let (view, dim) = (*self, self.first_axis("windows", n)?);
        let count = dim.checked_sub(n).map_or(0, |last| last + 1);
        Ok((0..count).map(move |start| view.entries(start, n)))
    }

    /// The extent of the first axis, of which `n` entries are taken at a time.
    fn first_axis(&self, op: &'static str, n: usize) -> Result<usize> {
        let shape = *self.layout.shape();
        if n == 0 {
            let reason = format!("expected at least 1 entry of shape {shape} at a time, got 0");
            return Err(Error::InvalidArgument { op, reason });
        }
        let first = shape.dims().first().copied();
        first.ok_or(Error::InvalidShape { op, shape, reason: "there is no first axis" })
    }

    fn entries(&self, start: usize, len: usize) -> Self {
        View { layout: self.layout.stepped(0, start, len, 1), ..*self }
    }
}

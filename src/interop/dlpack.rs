//! Memory that is shared with other libraries of the process by DLPack, versions 0 and 1: NumPy, PyTorch, JAX, CuPy.
//!
//! The structs are those of [`dlpack.h`](https://github.com/dmlc/dlpack/blob/main/include/dlpack/dlpack.h). A consumer
//! reads a managed tensor and calls its deleter once when it is done. Version 1 ([`DLManagedTensorVersioned`]) says
//! whether the memory may be written; version 0 ([`DLManagedTensor`]) does not, so that only memory of its own is
//! passed on by it. In Python both are passed in a `PyCapsule`: `docs/INTEROP.md` has an example.

use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

use crate::backend::cpu::{CpuBackend, CpuTensor};
use crate::backend::{Backend, TensorData};
use crate::dtype::{DType, Element, for_dtype, swap_little_endian};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::runtime::memory::Foreign;
use crate::shape::{MAX_RANK, Shape, Strides};
use crate::tensor::Tensor;

use format::Format;

/// Where the memory is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDevice {
    /// 1 for the CPU, 2 for CUDA; the others are in the header.
    pub device_type: i32,
    /// Index of the device; 0 for the CPU.
    pub device_id: i32,
}

/// The type of an element.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDataType {
    /// 0 for signed integers, 1 unsigned, 2 IEEE floats, 4 `bf16`, 6 `bool`; the others are in the header.
    pub code: u8,
    /// Bits of a number.
    pub bits: u8,
    /// Numbers of an element; 1 except for vectors.
    pub lanes: u16,
}

/// A tensor whose memory something else manages.
#[repr(C)]
#[derive(Debug)]
pub struct DLTensor {
    /// The memory; null if there are no elements.
    pub data: *mut c_void,
    /// Where the memory is.
    pub device: DLDevice,
    /// Number of axes.
    pub ndim: i32,
    /// The type of the elements.
    pub dtype: DLDataType,
    /// `ndim` extents.
    pub shape: *mut i64,
    /// `ndim` strides in elements; null for row-major order without gaps.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// Version of the structs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLPackVersion {
    /// Changes with the layout of the structs.
    pub major: u32,
    /// Changes with the codes of devices and types.
    pub minor: u32,
}

/// A tensor and its deleter, in version 0.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// Frees all of it, and the struct itself; absent if there is nothing to free.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// A tensor and its deleter, in version 1.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version. Only the fields before `dl_tensor` are the same in all.
    pub version: DLPackVersion,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// Frees all of it, and the struct itself; absent if there is nothing to free.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// [`READ_ONLY`], [`IS_COPIED`].
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

/// Flag: the memory must not be written.
pub const READ_ONLY: u64 = 1;

/// Flag: the memory is a copy that the producer made, and the consumer's alone.
pub const IS_COPIED: u64 = 2;

const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 1 };

const CPU: DLDevice = DLDevice { device_type: 1, device_id: 0 };

/// [`DLManagedTensor`] or [`DLManagedTensorVersioned`].
pub trait Managed: Format {}
impl<M: Format> Managed for M {}

mod format {
    use super::*;

    pub trait Format: Sized + 'static {
        /// True if the struct can say that memory is read-only.
        const HAS_FLAGS: bool;

        fn new(dl_tensor: DLTensor, manager_ctx: *mut c_void, flags: u64) -> Self;
        /// The tensor, of which nothing may be read if the version is another.
        fn tensor(&self) -> Result<&DLTensor, DLPackVersion>;
        fn context(&self) -> *mut c_void;
        fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)>;
    }

    impl Format for DLManagedTensor {
        const HAS_FLAGS: bool = false;

        fn new(dl_tensor: DLTensor, manager_ctx: *mut c_void, _flags: u64) -> Self {
            DLManagedTensor { dl_tensor, manager_ctx, deleter: Some(delete) }
        }

        fn tensor(&self) -> Result<&DLTensor, DLPackVersion> {
            Ok(&self.dl_tensor)
        }

        fn context(&self) -> *mut c_void {
            self.manager_ctx
        }

        fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
            self.deleter
        }
    }

    impl Format for DLManagedTensorVersioned {
        const HAS_FLAGS: bool = true;

        fn new(dl_tensor: DLTensor, manager_ctx: *mut c_void, flags: u64) -> Self {
            let (version, deleter) = (VERSION, Some(delete as _));
            DLManagedTensorVersioned { version, manager_ctx, deleter, flags, dl_tensor }
        }

        fn tensor(&self) -> Result<&DLTensor, DLPackVersion> {
            match self.version.major == VERSION.major {
                true => Ok(&self.dl_tensor),
                false => Err(self.version),
            }
        }

        fn context(&self) -> *mut c_void {
            self.manager_ctx
        }

        fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
            self.deleter
        }
    }
}

/// Frees what [`Handle::new`] made.
unsafe extern "C" fn delete<M: Format>(managed: *mut M) {
    // SAFETY: `Handle::new` made both boxes, and DLPack's consumer calls this once, when it is done with them.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context().cast::<Exported>()));
    }
}

/// What a managed tensor of swath's points to.
struct Exported {
    shape: [i64; MAX_RANK],
    strides: [i64; MAX_RANK],
    _tensor: CpuTensor,
}

/// A managed tensor that is owned: dropped, it runs its deleter.
#[derive(Debug)]
pub struct Handle<M: Managed>(NonNull<M>);

impl<M: Managed> Handle<M> {
    /// A managed tensor in the storage of `tensor`, which begins at `storage`.
    fn new(tensor: CpuTensor, storage: *mut u8, flags: u64) -> Self {
        let (layout, dtype) = (*tensor.layout(), tensor.dtype());
        let data = match layout.numel() {
            0 => null_mut(),
            _ => storage.wrapping_add(layout.offset() * dtype.size()).cast(),
        };
        let (mut shape, mut strides) = ([0; MAX_RANK], [0; MAX_RANK]);
        for (axis, (&dim, &stride)) in layout.dims().iter().zip(layout.strides()).enumerate() {
            (shape[axis], strides[axis]) = (dim as i64, stride as i64);
        }
        let exported =
            NonNull::from(Box::leak(Box::new(Exported { shape, strides, _tensor: tensor })));
        // SAFETY: the pointers are to fields of a box that has just been leaked.
        let [shape, strides] = unsafe {
            let exported = exported.as_ptr();
            [(&raw mut (*exported).shape).cast(), (&raw mut (*exported).strides).cast()]
        };
        let (ndim, dtype) = (layout.dims().len() as i32, type_of(dtype));
        let tensor = DLTensor { data, device: CPU, ndim, dtype, shape, strides, byte_offset: 0 };
        let managed = Box::new(M::new(tensor, exported.as_ptr().cast(), flags));
        Handle(NonNull::from(Box::leak(managed)))
    }

    /// The managed tensor, which stays the handle's.
    pub fn as_ptr(&self) -> *mut M {
        self.0.as_ptr()
    }

    /// Hands the managed tensor over: whoever gets it calls the deleter once.
    pub fn into_raw(self) -> *mut M {
        std::mem::ManuallyDrop::new(self).0.as_ptr()
    }
}

impl<M: Managed> Drop for Handle<M> {
    fn drop(&mut self) {
        // SAFETY: the handle owns the managed tensor, which was not handed over, so this is the only call.
        unsafe {
            if let Some(deleter) = self.0.as_ref().deleter() {
                deleter(self.0.as_ptr());
            }
        }
    }
}

/// # Tensors for other libraries (feature `dlpack`)
impl Tensor<CpuBackend> {
    /// Shares the elements with a consumer of DLPack, who may read them as long as it likes. Version 0 has no flag for
    /// that, so it gets a copy, which it may write. A layout of any strides is kept.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// use swath::interop::dlpack::{DLManagedTensorVersioned, READ_ONLY};
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// let handle = x.t()?.to_dlpack::<DLManagedTensorVersioned>()?;
    /// // SAFETY: the handle owns a managed tensor.
    /// let managed = unsafe { &*handle.as_ptr() };
    /// assert_eq!((managed.flags, managed.dl_tensor.ndim), (READ_ONLY, 2));
    /// assert_eq!(managed.dl_tensor.data.cast_const(), x.as_bytes()?.as_ptr().cast());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for a copy.
    pub fn to_dlpack<M: Managed>(&self) -> Result<Handle<M>> {
        if !M::HAS_FLAGS {
            return copied(self.data());
        }
        let x = self.data().clone();
        let storage = for_dtype!(x.dtype(), T => {
            x.storage::<<T as Element>::Stored>().as_ptr().cast::<u8>()
        });
        Ok(Handle::new(x, storage.cast_mut(), READ_ONLY))
    }

    /// Hands the tensor over to a consumer of DLPack, who may write the elements. They are copied if anything else shares
    /// the memory, or if several elements of a broadcast tensor do.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// use swath::interop::dlpack::DLManagedTensor;
    /// let handle = tensor![1.0, 2.0].into_dlpack::<DLManagedTensor>()?;
    /// // SAFETY: the managed tensor is handed over, and nothing else uses it.
    /// let x = unsafe { Tensor::from_dlpack(handle.into_raw())? };
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for a copy.
    pub fn into_dlpack<M: Managed>(mut self) -> Result<Handle<M>> {
        let is_broadcast = self.layout().is_broadcast();
        let storage = self.data_mut().storage_mut().map(<[u8]>::as_mut_ptr);
        match storage {
            Some(storage) if !is_broadcast => Ok(Handle::new(self.data().clone(), storage, 0)),
            _ => copied(self.data()),
        }
    }
}

/// The elements in memory of their own.
fn copied<M: Managed>(x: &CpuTensor) -> Result<Handle<M>> {
    let mut x = CpuBackend::adopt_host(CpuBackend::to_host(x)?, *x.shape())?;
    let storage = x.storage_mut().map_or(null_mut(), <[u8]>::as_mut_ptr);
    Ok(Handle::new(x, storage, IS_COPIED))
}

/// # Tensors of other libraries (feature `dlpack`)
impl<B: Backend> Tensor<B> {
    /// Takes over a managed tensor of DLPack, without a copy on backends that share the CPU's memory unless its data are
    /// not aligned to their elements. The tensor and its views keep it, and never write to it; its deleter runs once:
    /// with the last of them, or here if there is an error or a copy.
    ///
    /// [`to_dlpack`](Tensor::to_dlpack) and [`into_dlpack`](Tensor::into_dlpack) have examples.
    ///
    /// # Safety
    /// `managed` is null or points to a managed tensor as DLPack defines it, which is handed over with this call. Until
    /// its deleter runs, the memory from the lowest to the highest of its elements may be read, and nobody writes to it.
    /// The deleter may be called on any thread.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for null, another major version than 1, memory of another device than the CPU, a type
    /// that swath does not have, a negative extent, a boolean other than 0 and 1, or strides whose positions overflow;
    /// [`Error::TooManyAxes`]; [`Error::Overflow`].
    pub unsafe fn from_dlpack<M: Managed>(managed: *mut M) -> Result<Self> {
        let op = "from_dlpack";
        let refused = |reason: String| Error::InvalidArgument { op, reason };
        let managed = NonNull::new(managed).ok_or_else(|| refused("the pointer is null".into()))?;
        let handle = Handle(managed);
        // SAFETY: the caller vouches for the managed tensor, which the handle keeps.
        let managed = unsafe { managed.as_ref() };
        let tensor = managed.tensor().map_err(|DLPackVersion { major, minor }| {
            refused(format!("expected DLPack version 1, got {major}.{minor}"))
        })?;
        if tensor.device.device_type != CPU.device_type {
            let device = tensor.device.device_type;
            return Err(refused(format!(
                "expected the CPU, device type 1, got device type {device}"
            )));
        }
        let dtype = dtype_of(tensor.dtype).ok_or_else(|| {
            let DLDataType { code, bits, lanes } = tensor.dtype;
            refused(format!("no dtype for type code {code} of {bits} bits and {lanes} lanes"))
        })?;
        // SAFETY: the caller vouches for the pointers of the tensor.
        let (layout, len) = unsafe { layout_of(op, tensor)? };
        if len == 0 {
            return Tensor::from_bytes(dtype, *layout.shape(), &[]);
        }
        let size = dtype.size();
        let bytes = len.checked_mul(size).filter(|&bytes| isize::try_from(bytes).is_ok());
        let offset = usize::try_from(tensor.byte_offset).ok();
        let (Some(bytes), Some(offset), false) = (bytes, offset, tensor.data.is_null()) else {
            let DLTensor { data, byte_offset, .. } = tensor;
            return Err(refused(format!("{len} elements at {byte_offset} bytes from {data:?}")));
        };
        let first = tensor.data.cast::<u8>().cast_const().wrapping_add(offset);
        let start = first.wrapping_sub(layout.offset() * size);
        // SAFETY: the caller vouches for the memory from the lowest element, which is `layout.offset()` before the first, to
        // the highest, `len` elements in all, as long as the handle lives.
        let bytes: &'static [u8] = unsafe { std::slice::from_raw_parts(start, bytes) };
        if dtype == DType::Bool {
            let byte = layout.positions().map(|position| bytes[position]).find(|&byte| byte > 1);
            if let Some(byte) = byte {
                return Err(refused(format!("invalid bool byte {byte}: expected 0 or 1")));
            }
        }
        let all = Shape::from(len);
        let x: Self = match Foreign::of_bytes(Imported { _handle: handle, bytes }, dtype) {
            Ok(foreign) => Tensor::in_foreign(op, foreign, &all)?,
            Err(unaligned) => {
                let mut bytes = unaligned.buffer().as_slice::<u8>().to_vec();
                swap_little_endian(dtype, &mut bytes);
                Tensor::from_bytes(dtype, all, &bytes)?
            }
        };
        Ok(Tensor::from_data(B::view(x.data(), layout)?))
    }
}

/// A managed tensor that a tensor keeps.
struct Imported<M: Managed> {
    _handle: Handle<M>,
    /// In truth no longer than the handle.
    bytes: &'static [u8],
}

// SAFETY: the caller of `from_dlpack` vouches that the deleter may be called on any thread, and the bytes are only read.
unsafe impl<M: Managed> Send for Imported<M> {}
// SAFETY: as above; nothing of the handle is used but on drop.
unsafe impl<M: Managed> Sync for Imported<M> {}

impl<M: Managed> AsRef<[u8]> for Imported<M> {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

/// The layout of a tensor, from its lowest element on, and the number of elements that its storage has.
///
/// # Safety
/// `shape` and `strides` are null or have `ndim` numbers.
unsafe fn layout_of(op: &'static str, tensor: &DLTensor) -> Result<(Layout, usize)> {
    let refused = |reason: String| Error::InvalidArgument { op, reason };
    let rank =
        usize::try_from(tensor.ndim).map_err(|_| refused(format!("{} axes", tensor.ndim)))?;
    if rank > MAX_RANK {
        return Err(Error::TooManyAxes { op, rank });
    }
    let numbers = |first: *mut i64| match rank {
        0 => Some(&[][..]),
        // SAFETY: the pointer is not null, so the caller vouches for `rank` numbers.
        _ => (!first.is_null()).then(|| unsafe { std::slice::from_raw_parts(first, rank) }),
    };
    let extents = numbers(tensor.shape).ok_or_else(|| refused("the shape is null".into()))?;
    let dims = extents.iter().map(|&dim| usize::try_from(dim)).collect::<Result<Vec<_>, _>>();
    let shape = Shape::new(dims.map_err(|_| refused(format!("a negative extent in {extents:?}")))?);
    if shape.checked_numel(op)? == 0 {
        return Ok((Layout::contiguous(shape), 0));
    }
    let Some(strides) = numbers(tensor.strides) else {
        return Ok((Layout::contiguous(shape), shape.numel()));
    };
    let overflow = || refused(format!("positions of {shape} with strides {strides:?} overflow"));
    let steps = strides.iter().map(|&step| isize::try_from(step)).collect::<Result<Vec<_>, _>>();
    let steps = steps.map_err(|_| overflow())?;
    let below = shape
        .dims()
        .iter()
        .zip(&steps)
        .filter(|(_, step)| **step < 0)
        .try_fold(0usize, |below, (&dim, step)| {
            below.checked_add((dim - 1).checked_mul(step.unsigned_abs())?)
        });
    let layout = below.and_then(|below| Layout::new(shape, Strides::new(steps), below));
    let layout = layout.ok_or_else(overflow)?;
    let (_, last) = layout.extent(op)?.ok_or_else(overflow)?;
    Ok((layout, last + 1))
}

/// Every dtype with DLPack's code.
const TYPES: [(DType, u8); 13] = [
    (DType::I8, 0),
    (DType::I16, 0),
    (DType::I32, 0),
    (DType::I64, 0),
    (DType::U8, 1),
    (DType::U16, 1),
    (DType::U32, 1),
    (DType::U64, 1),
    (DType::F16, 2),
    (DType::F32, 2),
    (DType::F64, 2),
    (DType::BF16, 4),
    (DType::Bool, 6),
];

fn type_of(dtype: DType) -> DLDataType {
    let code = TYPES.iter().find(|row| row.0 == dtype).map_or(u8::MAX, |row| row.1);
    DLDataType { code, bits: 8 * dtype.size() as u8, lanes: 1 }
}

fn dtype_of(found: DLDataType) -> Option<DType> {
    TYPES.iter().map(|row| row.0).find(|&dtype| type_of(dtype) == found)
}

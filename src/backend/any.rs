//! [`AnyBackend`]: a device that is chosen at run time.
//!
//! Its tensors are those of one of the other backends, and every operation is that backend's: the results have
//! the same bits. New tensors are made on the device of [`AnyBackend::device`]; operations stay on the device of
//! their operands.
//!
//! ```
//! use swath::prelude::*;
//! use swath::{AnyBackend, Device};
//! type T = Tensor<AnyBackend>;
//! let x = T::from_vec(vec![1.0f32, 2.0, 3.0], 3)?; // on the default device, the CPU unless SWATH_DEVICE says else
//! let y = AnyBackend::with_device(Device::Reference, || T::ones(3, DType::F32))?;
//! assert_eq!(y.device(), Device::Reference);
//! let error = x.add(&y).unwrap_err().to_string();
//! assert_eq!(error, "add: operands are on the devices cpu and reference; move one with to_device");
//! assert_eq!(x.to_device(Device::Reference)?.add(&y)?.to_vec::<f32>()?, [2.0, 3.0, 4.0]);
//! # Ok::<(), Error>(())
//! ```

mod device;
#[cfg(feature = "pulp")]
mod program;
mod variant;

use std::any::Any;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

pub use device::Device;
#[cfg(feature = "pulp")]
pub use program::SimdBackend;
use smallvec::SmallVec;
pub(crate) use variant::apart;
use variant::{Variant, device_of, get, operand};

use super::convert::copy;
use super::cpu::CpuTensor;
use super::reference::ReferenceTensor;
use super::{Arg, Backend, Results, TensorData, no_tensor};
#[cfg(all(feature = "metal", target_vendor = "apple"))]
use crate::MetalBackend;
#[cfg(feature = "wgpu")]
use crate::WgpuBackend;
use crate::dtype::{DType, HostData, Scalar};
use crate::error::{Error, Result};
use crate::layout::{AxisPart, Layout, SliceItem};
use crate::ops::{
    BinaryOp, CompareOp, Extremum, FusedOp, NumberTest, OrderOp, ReduceOp, ScanOp, TernaryOp,
    UnaryOp, UpdateOp,
};
use crate::runtime::on_drop::OnDrop;
use crate::shape::Shape;
use crate::{CpuBackend, ReferenceBackend};

/// A backend chosen at run time. See the [module's page](self).
#[derive(Clone, Copy, Debug)]
pub struct AnyBackend;

/// A tensor of [`AnyBackend`]: one of another backend.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyTensor {
    /// A tensor of [`CpuBackend`].
    Cpu(CpuTensor),
    /// A tensor of [`ReferenceBackend`].
    Reference(ReferenceTensor),
    /// A tensor of `WgpuBackend`.
    #[cfg(feature = "wgpu")]
    Wgpu(<WgpuBackend as Backend>::Tensor),
    /// A tensor of `MetalBackend`.
    #[cfg(all(feature = "metal", target_vendor = "apple"))]
    Metal(<MetalBackend as Backend>::Tensor),
}

/// Evaluates an expression with `$B` bound to the backend of a device.
macro_rules! on {
    ($device:expr, $B:ident => $body:expr) => {
        match $device {
            Device::Cpu => {
                type $B = CpuBackend;
                $body
            }
            Device::Reference => {
                type $B = ReferenceBackend;
                $body
            }
            #[cfg(feature = "wgpu")]
            Device::Wgpu => {
                type $B = WgpuBackend;
                $body
            }
            #[cfg(not(feature = "wgpu"))]
            Device::Wgpu => Err(Device::Wgpu.not_built()),
            #[cfg(all(feature = "metal", target_vendor = "apple"))]
            Device::Metal => {
                type $B = MetalBackend;
                $body
            }
            #[cfg(not(all(feature = "metal", target_vendor = "apple")))]
            Device::Metal => Err(Device::Metal.not_built()),
        }
    };
}

impl AnyTensor {
    /// The device.
    pub fn device(&self) -> Device {
        match self {
            AnyTensor::Cpu(_) => Device::Cpu,
            AnyTensor::Reference(_) => Device::Reference,
            #[cfg(feature = "wgpu")]
            AnyTensor::Wgpu(_) => Device::Wgpu,
            #[cfg(all(feature = "metal", target_vendor = "apple"))]
            AnyTensor::Metal(_) => Device::Metal,
        }
    }
}

impl TensorData for AnyTensor {
    fn layout(&self) -> &Layout {
        match self {
            AnyTensor::Cpu(x) => x.layout(),
            AnyTensor::Reference(x) => x.layout(),
            #[cfg(feature = "wgpu")]
            AnyTensor::Wgpu(x) => x.layout(),
            #[cfg(all(feature = "metal", target_vendor = "apple"))]
            AnyTensor::Metal(x) => x.layout(),
        }
    }

    fn dtype(&self) -> DType {
        match self {
            AnyTensor::Cpu(x) => x.dtype(),
            AnyTensor::Reference(x) => x.dtype(),
            #[cfg(feature = "wgpu")]
            AnyTensor::Wgpu(x) => x.dtype(),
            #[cfg(all(feature = "metal", target_vendor = "apple"))]
            AnyTensor::Metal(x) => x.dtype(),
        }
    }
}

/// The default device; 0 if none was set.
static DEFAULT: AtomicU8 = AtomicU8::new(0);

thread_local! {
    static HERE: Cell<Option<Device>> = const { Cell::new(None) };
}

/// The device that `SWATH_DEVICE` names; the CPU without it.
fn of_environment() -> Result<Device> {
    static DEVICE: OnceLock<Result<Device>> = OnceLock::new();
    let read = || match std::env::var("SWATH_DEVICE") {
        Ok(name) if !name.is_empty() => name
            .parse()
            .and_then(|device: Device| device.check().map(|()| device))
            .map_err(|error| Error::Runtime(format!("SWATH_DEVICE={name}: {error}"))),
        _ => Ok(Device::Cpu),
    };
    DEVICE.get_or_init(read).clone()
}

impl AnyBackend {
    /// The device of new tensors: that of the innermost [`AnyBackend::with_device`] of this thread, else the
    /// default device.
    ///
    /// # Errors
    /// [`Error::Runtime`] if `SWATH_DEVICE` names no device or one that does not open.
    pub fn device() -> Result<Device> {
        if let Some(device) = HERE.get() {
            return Ok(device);
        }
        match DEFAULT.load(Ordering::Relaxed) {
            0 => of_environment(),
            set => Ok(Device::ALL[usize::from(set) - 1]),
        }
    }

    /// Sets the default device of all threads. Before, it is the one that the environment variable `SWATH_DEVICE`
    /// names (`cpu`, `reference`, `wgpu`, `metal`), or the CPU.
    ///
    /// # Errors
    /// [`Error::Device`] if the device was not built or does not open.
    pub fn set_default(device: Device) -> Result<()> {
        device.check()?;
        let place = Device::ALL.iter().position(|&other| other == device).unwrap_or(0);
        DEFAULT.store(place as u8 + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Runs `f` with another device for new tensors, in this thread.
    pub fn with_device<R>(device: Device, f: impl FnOnce() -> R) -> R {
        let outer = HERE.replace(Some(device));
        let _restore = OnDrop(|| HERE.set(outer));
        f()
    }

    /// Copies a tensor to a device; returns the same storage if it is there.
    ///
    /// # Errors
    /// [`Error::Device`] if the device was not built or does not open; [`Error::Unsupported`] if it lacks the dtype.
    pub fn to_device(x: &AnyTensor, device: Device) -> Result<AnyTensor> {
        if x.device() == device {
            return Ok(x.clone());
        }
        on!(device, B => copy::<Self, B>(x).map(B::wrap))
    }
}

impl Backend for AnyBackend {
    type Tensor = AnyTensor;

    const NAME: &'static str = "any";

    fn from_host(data: HostData, shape: Shape) -> Result<AnyTensor> {
        on!(Self::device()?, B => B::from_host(data, shape).map(B::wrap))
    }

    fn adopt_host(data: HostData, shape: Shape) -> Result<AnyTensor> {
        on!(Self::device()?, B => B::adopt_host(data, shape).map(B::wrap))
    }

    fn to_host(x: &AnyTensor) -> Result<HostData> {
        on!(x.device(), B => B::to_host(get::<B>("to_host", x)?))
    }

    fn item(x: &AnyTensor) -> Result<Scalar> {
        on!(x.device(), B => B::item(get::<B>("item", x)?))
    }

    fn full(shape: Shape, value: Scalar, dtype: DType) -> Result<AnyTensor> {
        on!(Self::device()?, B => B::full(shape, value, dtype).map(B::wrap))
    }

    fn cast(x: &AnyTensor, dtype: DType) -> Result<AnyTensor> {
        on!(x.device(), B => B::cast(get::<B>("to_dtype", x)?, dtype).map(B::wrap))
    }

    fn view(x: &AnyTensor, layout: Layout) -> Result<AnyTensor> {
        on!(x.device(), B => B::view(get::<B>("view", x)?, layout).map(B::wrap))
    }

    fn contiguous(x: &AnyTensor) -> Result<AnyTensor> {
        on!(x.device(), B => B::contiguous(get::<B>("contiguous", x)?).map(B::wrap))
    }

    fn unary<'a>(op: UnaryOp, x: impl Into<Arg<'a, AnyTensor>>) -> Result<AnyTensor> {
        let (name, x) = (op.name(), x.into());
        on!(device_of(name, &[&x])?, B => B::unary(op, operand::<B>(name, x)?).map(B::wrap))
    }

    fn binary<'a>(
        op: BinaryOp,
        a: impl Into<Arg<'a, AnyTensor>>,
        b: impl Into<Arg<'a, AnyTensor>>,
    ) -> Result<AnyTensor> {
        let (name, a, b) = (op.name(), a.into(), b.into());
        on!(device_of(name, &[&a, &b])?, B => {
            B::binary(op, operand::<B>(name, a)?, operand::<B>(name, b)?).map(B::wrap)
        })
    }

    fn binary_assign(op: BinaryOp, x: &mut AnyTensor, b: Arg<'_, AnyTensor>) -> Result<()> {
        on!(x.device(), B => {
            let b = operand::<B>(op.name(), b)?;
            B::get_mut(x).map_or(Ok(()), |x| B::binary_assign(op, x, b))
        })
    }

    fn ternary<'a>(
        op: TernaryOp,
        a: impl Into<Arg<'a, AnyTensor>>,
        b: impl Into<Arg<'a, AnyTensor>>,
        c: impl Into<Arg<'a, AnyTensor>>,
    ) -> Result<AnyTensor> {
        let (name, a, b, c) = (op.name(), a.into(), b.into(), c.into());
        on!(device_of(name, &[&a, &b, &c])?, B => {
            let (a, b) = (operand::<B>(name, a)?, operand::<B>(name, b)?);
            B::ternary(op, a, b, operand::<B>(name, c)?).map(B::wrap)
        })
    }

    fn compare<'a>(
        op: CompareOp,
        a: impl Into<Arg<'a, AnyTensor>>,
        b: impl Into<Arg<'a, AnyTensor>>,
    ) -> Result<AnyTensor> {
        let (name, a, b) = (op.name(), a.into(), b.into());
        on!(device_of(name, &[&a, &b])?, B => {
            B::compare(op, operand::<B>(name, a)?, operand::<B>(name, b)?).map(B::wrap)
        })
    }

    fn test(op: NumberTest, x: &AnyTensor) -> Result<AnyTensor> {
        on!(x.device(), B => B::test(op, get::<B>(op.name(), x)?).map(B::wrap))
    }

    fn where_cond(mask: &AnyTensor, a: &AnyTensor, b: &AnyTensor) -> Result<AnyTensor> {
        let op = "where_cond";
        on!(mask.device(), B => {
            B::where_cond(get::<B>(op, mask)?, get::<B>(op, a)?, get::<B>(op, b)?).map(B::wrap)
        })
    }

    fn reduce(op: ReduceOp, x: &AnyTensor, axes: &[usize]) -> Result<AnyTensor> {
        on!(x.device(), B => B::reduce(op, get::<B>(op.name(), x)?, axes).map(B::wrap))
    }

    fn scan(op: ScanOp, x: &AnyTensor, axis: usize) -> Result<AnyTensor> {
        on!(x.device(), B => B::scan(op, get::<B>(op.name(), x)?, axis).map(B::wrap))
    }

    fn arg_scan(op: Extremum, x: &AnyTensor, axis: usize) -> Result<AnyTensor> {
        on!(x.device(), B => B::arg_scan(op, get::<B>(op.name(), x)?, axis).map(B::wrap))
    }

    fn order(op: OrderOp, x: &AnyTensor, axis: usize) -> Result<(AnyTensor, AnyTensor)> {
        on!(x.device(), B => {
            let (values, indices) = B::order(op, get::<B>(op.name(), x)?, axis)?;
            Ok((B::wrap(values), B::wrap(indices)))
        })
    }

    fn search_sorted(sorted: &AnyTensor, values: &AnyTensor, right: bool) -> Result<AnyTensor> {
        let op = "searchsorted";
        on!(values.device(), B => {
            B::search_sorted(get::<B>(op, sorted)?, get::<B>(op, values)?, right).map(B::wrap)
        })
    }

    fn matmul(a: &AnyTensor, b: &AnyTensor) -> Result<AnyTensor> {
        let op = "matmul";
        on!(a.device(), B => B::matmul(get::<B>(op, a)?, get::<B>(op, b)?).map(B::wrap))
    }

    fn matmul_add(a: &AnyTensor, b: &AnyTensor, c: AnyTensor) -> Result<AnyTensor> {
        let op = "matmul";
        on!(a.device(), B => {
            let device = c.device();
            let c = B::take(c).ok_or_else(|| apart(op, B::DEVICE, device))?;
            B::matmul_add(get::<B>(op, a)?, get::<B>(op, b)?, c).map(B::wrap)
        })
    }

    fn gather(x: &AnyTensor, axis: usize, index: &AnyTensor) -> Result<AnyTensor> {
        let op = "gather";
        on!(x.device(), B => B::gather(get::<B>(op, x)?, axis, get::<B>(op, index)?).map(B::wrap))
    }

    fn scatter_add(
        x: &AnyTensor,
        axis: usize,
        index: &AnyTensor,
        source: &AnyTensor,
    ) -> Result<AnyTensor> {
        let op = "scatter_add";
        on!(x.device(), B => {
            let (index, source) = (get::<B>(op, index)?, get::<B>(op, source)?);
            B::scatter_add(get::<B>(op, x)?, axis, index, source).map(B::wrap)
        })
    }

    fn scatter(
        x: &AnyTensor,
        axis: usize,
        index: &AnyTensor,
        source: &AnyTensor,
    ) -> Result<AnyTensor> {
        let op = "scatter";
        on!(x.device(), B => {
            let (index, source) = (get::<B>(op, index)?, get::<B>(op, source)?);
            B::scatter(get::<B>(op, x)?, axis, index, source).map(B::wrap)
        })
    }

    fn slice_assign(x: &mut AnyTensor, items: &[SliceItem], source: &AnyTensor) -> Result<()> {
        let device = x.device();
        on!(device, B => {
            let source = get::<B>("slice_assign", source)?;
            B::get_mut(x).map_or(Ok(()), |x| B::slice_assign(x, items, source))
        })
    }

    fn assemble(x: &AnyTensor, axes: &[Vec<AxisPart>], fill: Scalar) -> Result<AnyTensor> {
        on!(x.device(), B => B::assemble(get::<B>("assemble", x)?, axes, fill).map(B::wrap))
    }

    fn cat(tensors: &[&AnyTensor], axis: usize) -> Result<AnyTensor> {
        let op = "cat";
        let Some(first) = tensors.first() else {
            let reason = "expected at least one tensor".to_owned();
            return Err(Error::InvalidArgument { op, reason });
        };
        on!(first.device(), B => {
            let parts: Result<SmallVec<[_; 8]>> = tensors.iter().map(|x| get::<B>(op, x)).collect();
            B::cat(&parts?, axis).map(B::wrap)
        })
    }

    fn fused(op: &FusedOp<'_, AnyTensor>) -> Result<Results<AnyTensor>> {
        on!(op.operands()[0].device(), B => {
            let results = B::fused(&op.try_map(|x| get::<B>(op.name(), x))?)?;
            Ok(results.into_iter().map(B::wrap).collect())
        })
    }

    fn update(
        op: &UpdateOp,
        parameter: &mut AnyTensor,
        gradient: &AnyTensor,
        state: &mut [AnyTensor],
    ) -> Result<()> {
        let name = op.name();
        on!(parameter.device(), B => {
            let gradient = get::<B>(name, gradient)?;
            for x in state.iter() {
                get::<B>(name, x)?;
            }
            // The state's handles are moved out and back, so that they stay the only ones.
            let empty = B::wrap(B::full(Shape::new([0]), Scalar::Int(0), DType::F32)?);
            let mut parts = SmallVec::<[<B as Backend>::Tensor; 3]>::new();
            for x in state.iter_mut() {
                parts.extend(B::take(std::mem::replace(x, empty.clone())));
            }
            let result = match B::get_mut(parameter) {
                Some(parameter) => B::update(op, parameter, gradient, &mut parts),
                None => Ok(()),
            };
            for (x, part) in state.iter_mut().zip(parts) {
                *x = B::wrap(part);
            }
            result
        })
    }

    fn read(
        shape: Shape,
        dtype: DType,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<AnyTensor> {
        on!(Self::device()?, B => B::read(shape, dtype, fill).map(B::wrap))
    }

    fn shared(x: &AnyTensor) -> &dyn Any {
        match x {
            AnyTensor::Cpu(x) => x,
            AnyTensor::Reference(x) => x,
            #[cfg(feature = "wgpu")]
            AnyTensor::Wgpu(x) => x,
            #[cfg(all(feature = "metal", target_vendor = "apple"))]
            AnyTensor::Metal(x) => x,
        }
    }

    fn beside<R>(x: &AnyTensor, f: impl FnOnce() -> R) -> R {
        Self::with_device(x.device(), f)
    }

    fn wide(x: Option<&AnyTensor>) -> DType {
        let device = x.map_or_else(Self::device, |x| Ok(x.device()));
        device.and_then(|device| on!(device, B => Ok(B::WIDE))).unwrap_or(Self::WIDE)
    }

    fn host_bytes(x: &AnyTensor) -> Option<&[u8]> {
        match x {
            AnyTensor::Cpu(x) => CpuBackend::host_bytes(x),
            _ => None,
        }
    }

    fn from_bytes(shape: Shape, dtype: DType, bytes: &[u8]) -> Result<AnyTensor> {
        on!(Self::device()?, B => B::from_bytes(shape, dtype, bytes).map(B::wrap))
    }

    fn adopt(x: &dyn Any) -> Option<AnyTensor> {
        if let Some(x) = x.downcast_ref::<AnyTensor>() {
            return Some(x.clone());
        }
        // New tensors are on the default device.
        let device = Self::device().ok()?;
        on!(device, B => B::adopt(x).map(B::wrap).ok_or_else(|| no_tensor("to_backend"))).ok()
    }
}

//! The tensors of other backends in an [`AnyTensor`], and operands that are on different devices.

use super::{AnyTensor, Device};
#[cfg(all(feature = "metal", target_vendor = "apple"))]
use crate::MetalBackend;
#[cfg(feature = "wgpu")]
use crate::WgpuBackend;
use crate::backend::{Arg, Backend, no_tensor};
use crate::error::{Error, Result};
use crate::{CpuBackend, ReferenceBackend};

/// A backend whose tensors `AnyTensor` has a variant for.
pub(super) trait Variant: Backend {
    const DEVICE: Device;
    fn wrap(x: Self::Tensor) -> AnyTensor;
    fn get(x: &AnyTensor) -> Option<&Self::Tensor>;
    fn get_mut(x: &mut AnyTensor) -> Option<&mut Self::Tensor>;
    fn take(x: AnyTensor) -> Option<Self::Tensor>;
}

macro_rules! variant {
    ($Backend:ty, $Variant:ident) => {
        impl Variant for $Backend {
            const DEVICE: Device = Device::$Variant;

            fn wrap(x: Self::Tensor) -> AnyTensor {
                AnyTensor::$Variant(x)
            }

            fn get(x: &AnyTensor) -> Option<&Self::Tensor> {
                match x {
                    AnyTensor::$Variant(x) => Some(x),
                    _ => None,
                }
            }

            fn get_mut(x: &mut AnyTensor) -> Option<&mut Self::Tensor> {
                match x {
                    AnyTensor::$Variant(x) => Some(x),
                    _ => None,
                }
            }

            fn take(x: AnyTensor) -> Option<Self::Tensor> {
                match x {
                    AnyTensor::$Variant(x) => Some(x),
                    _ => None,
                }
            }
        }
    };
}
variant!(CpuBackend, Cpu);
variant!(ReferenceBackend, Reference);
#[cfg(feature = "wgpu")]
variant!(WgpuBackend, Wgpu);
#[cfg(all(feature = "metal", target_vendor = "apple"))]
variant!(MetalBackend, Metal);

/// The error of operands on two devices.
#[cold]
pub(crate) fn apart(op: &'static str, a: Device, b: Device) -> Error {
    let reason = format!("operands are on the devices {a} and {b}; move one with to_device");
    Error::InvalidArgument { op, reason }
}

/// The tensor as one of the backend.
pub(super) fn get<'a, B: Variant>(op: &'static str, x: &'a AnyTensor) -> Result<&'a B::Tensor> {
    B::get(x).ok_or_else(|| apart(op, B::DEVICE, x.device()))
}

/// The operand as one of the backend.
pub(super) fn operand<'a, B: Variant>(
    op: &'static str,
    x: Arg<'a, AnyTensor>,
) -> Result<Arg<'a, B::Tensor>> {
    Ok(match x {
        Arg::Ref(x) => Arg::Ref(get::<B>(op, x)?),
        Arg::Owned(x) => {
            let device = x.device();
            Arg::Owned(B::take(x).ok_or_else(|| apart(op, B::DEVICE, device))?)
        }
        Arg::Scalar(number) => Arg::Scalar(number),
    })
}

/// The device of the first operand that is a tensor.
pub(super) fn device_of(op: &'static str, operands: &[&Arg<'_, AnyTensor>]) -> Result<Device> {
    operands.iter().find_map(|x| x.tensor()).map(AnyTensor::device).ok_or_else(|| no_tensor(op))
}

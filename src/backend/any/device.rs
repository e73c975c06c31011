//! [`Device`]: the names of devices.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A device that [`AnyBackend`](super::AnyBackend) can compute on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Device {
    /// [`CpuBackend`](crate::CpuBackend).
    Cpu,
    /// [`ReferenceBackend`](crate::ReferenceBackend).
    Reference,
    /// `WgpuBackend`, with the feature `wgpu`.
    Wgpu,
    /// `MetalBackend`, with the feature `metal` on Apple's systems.
    Metal,
}

impl Device {
    /// All devices, also those that were not built.
    pub const ALL: [Device; 4] = [Device::Cpu, Device::Reference, Device::Wgpu, Device::Metal];

    /// The name in `SWATH_DEVICE`.
    pub const fn name(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Reference => "reference",
            Device::Wgpu => "wgpu",
            Device::Metal => "metal",
        }
    }

    /// Fails if the device was not built or does not open.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn check(self) -> Result<()> {
        match self {
            Device::Cpu | Device::Reference => Ok(()),
            #[cfg(feature = "wgpu")]
            Device::Wgpu => crate::WgpuBackend::device().map(|_| ()),
            #[cfg(not(feature = "wgpu"))]
            Device::Wgpu => Err(self.not_built()),
            #[cfg(all(feature = "metal", target_vendor = "apple"))]
            Device::Metal => crate::MetalBackend::device().map(|_| ()),
            #[cfg(not(all(feature = "metal", target_vendor = "apple")))]
            Device::Metal => Err(self.not_built()),
        }
    }

    #[cfg(not(all(feature = "wgpu", feature = "metal", target_vendor = "apple")))]
    pub(super) fn not_built(self) -> Error {
        let (backend, reason) = (self.name(), "built without this feature of swath".to_owned());
        Error::Device { op: "device", backend, reason }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Device {
    type Err = Error;

    /// The device of a name.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for another name.
    fn from_str(name: &str) -> Result<Device> {
        Device::ALL.into_iter().find(|device| device.name() == name).ok_or_else(|| {
            let names = Device::ALL.map(Device::name).join(", ");
            Error::InvalidArgument { op: "device", reason: format!("`{name}` is none of {names}") }
        })
    }
}

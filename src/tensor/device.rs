//! Tensors on devices chosen at run time.

use super::Tensor;
use crate::backend::any::{AnyBackend, Device};
use crate::error::{Error, Result};

impl Tensor<AnyBackend> {
    /// The device.
    pub fn device(&self) -> Device {
        self.data().device()
    }

    /// Copies the tensor to a device, without a graph; returns the same storage if it is there.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the tensor is tracked: detach it first; [`Error::Device`] if the device was not
    /// built or does not open; [`Error::Unsupported`] if it lacks the dtype.
    pub fn to_device(&self, device: Device) -> Result<Self> {
        if self.is_tracked() {
            let reason = "the tensor is tracked; detach it first".to_owned();
            return Err(Error::InvalidArgument { op: "to_device", reason });
        }
        AnyBackend::to_device(self.data(), device).map(Tensor::from_data)
    }
}

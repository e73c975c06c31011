//! Tensors on devices chosen at run time.

use std::any::Any;

use super::base::Tensor;
use crate::backend::Backend;
use crate::backend::any::{AnyBackend, AnyTensor, Device, apart};
use crate::error::{Error, Result};

/// # Devices
impl Tensor<AnyBackend> {
    /// The device.
    ///
    /// ```
    /// use swath::prelude::*;
    /// use swath::{AnyBackend, Device};
    /// let x = AnyBackend::with_device(Device::Cpu, || Tensor::<AnyBackend>::ones(2, DType::F32))?;
    /// assert_eq!(x.device(), Device::Cpu);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn device(&self) -> Device {
        self.data().device()
    }

    /// Copies the tensor to a device, without a graph; returns the same storage if it is there.
    ///
    /// ```
    /// use swath::prelude::*;
    /// use swath::{AnyBackend, Device};
    /// let x = Tensor::<AnyBackend>::ones(2, DType::F32)?.to_device(Device::Reference)?;
    /// assert_eq!(x.device(), Device::Reference);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the tensor is tracked: detach it first; [`Error::Device`] if the device was not
    /// built or does not open; [`Error::Unsupported`] if it lacks the dtype.
    pub fn to_device(&self, device: Device) -> Result<Self> {
        if self.is_tracked() {
            let reason = "the tensor is tracked; detach it first".to_owned();
            return Err(Error::InvalidArgument { op: "to_device", reason });
        }
        Ok(Tensor::from_data(AnyBackend::to_device(self.data(), device)?).marked_like(self))
    }
}

impl<B: Backend> Tensor<B> {
    /// Fails if `other` is on another device: for operations that read values on the host, or no values at all.
    pub(crate) fn check_beside(&self, op: &'static str, other: &Tensor<B>) -> Result<()> {
        let [here, there] =
            [self, other].map(|x| (x.data() as &dyn Any).downcast_ref::<AnyTensor>());
        match here.zip(there).map(|(a, b)| (a.device(), b.device())) {
            Some((a, b)) if a != b => Err(apart(op, a, b)),
            _ => Ok(()),
        }
    }
}

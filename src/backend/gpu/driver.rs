//! [`Driver`]: the few calls that a backend needs of a GPU's API. The code above it knows no API.

#[cfg(feature = "metal")]
pub mod metal;
#[cfg(feature = "wgpu")]
pub mod wgpu;

use std::fmt::Debug;

use crate::error::Result;

use super::device::Context;
use super::shader::Module;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The memory could not be allocated.
    OutOfMemory,
    /// Any other failure, as the device describes it.
    Device(String),
}

/// The capabilities of a device.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// Name of the device, for people.
    pub name: String,
    /// True if shaders have 16-bit floats.
    pub f16: bool,
    /// True if shaders have 64-bit integers.
    pub i64: bool,
    /// Size in bytes of the largest buffer that a kernel can read, a multiple of four.
    pub max_buffer: usize,
    /// Maximum number of loop rounds of a thread. Mesa's CPU device ends loops after 65,535 rounds without an error.
    pub rounds: usize,
    /// Maximum number of bytes for tensors and unused buffers together; `usize::MAX` if it is not known.
    pub working_set: usize,
}

/// A device's API.
///
/// One thread at a time makes calls. Dispatches run in order, and each sees the writes of those before it.
pub trait Driver: Sized + Send + Debug + 'static {
    /// Name of the backend, for errors.
    const NAME: &'static str;

    /// A buffer in the memory of the device.
    type Buffer: Debug + Send + Sync + 'static;

    /// A compiled kernel.
    type Pipeline: Send + Sync + 'static;

    /// Returns what the machine lacks for testing the driver, if anything.
    #[doc(hidden)]
    fn missing() -> Option<&'static str> {
        None
    }

    /// The device of this process, opened at the first call.
    fn device() -> Result<&'static Context<Self>>;

    /// Allocates a buffer with arbitrary content. `bytes` is a multiple of four.
    fn allocate(&mut self, bytes: usize) -> Result<Self::Buffer, Failure>;

    /// Allocates a buffer that begins with `content`, without waiting. `bytes` is a multiple of four.
    fn upload(&mut self, content: &[u8], bytes: usize) -> Result<Self::Buffer, Failure>;

    /// Compiles a kernel.
    fn pipeline(&mut self, module: &Module) -> Result<Self::Pipeline, Failure>;

    /// Encodes a dispatch.
    fn dispatch(
        &mut self,
        pipeline: &Self::Pipeline,
        buffers: &[&Self::Buffer],
        words: &[u32],
        grid: [u32; 3],
    ) -> Result<(), Failure>;

    /// Submits the encoded dispatches to the device, without waiting.
    fn submit(&mut self) -> Result<(), Failure>;

    /// Submits, waits, and copies the starts of buffers. Each copy has a multiple of four bytes.
    fn download(&mut self, parts: &mut [(&Self::Buffer, &mut [u8])]) -> Result<(), Failure>;
}

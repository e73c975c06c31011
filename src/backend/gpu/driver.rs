//! [`Driver`]: the few calls that a device needs. All else about GPUs is above it and knows no API.

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
    /// The device's reason.
    Device(String),
}

/// What a device can do.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// Name of the device, for people.
    pub name: String,
    /// Shaders have 16-bit floats.
    pub f16: bool,
    /// Shaders have 64-bit integers.
    pub i64: bool,
    /// Size in bytes of the largest buffer that a kernel can read, a multiple of four.
    pub max_buffer: usize,
    /// Rounds of loops that a thread can run: Mesa's CPU device ends a kernel's loops after 65,535 without an error.
    pub rounds: usize,
    /// Bytes that tensors and unused buffers are to have together at most; `usize::MAX` if it is not known.
    pub working_set: usize,
}

/// A device's API.
///
/// Calls are made by one thread at a time. Dispatches run in the order in which they are made, each after
/// the writes of those before it.
pub trait Driver: Sized + Send + Debug + 'static {
    /// Name of the backend in errors.
    const NAME: &'static str;

    /// Memory of the device.
    type Buffer: Debug + Send + Sync + 'static;

    /// A kernel that is ready to run.
    type Pipeline: Send + Sync + 'static;

    /// What the machine lacks to test the driver, if anything.
    #[doc(hidden)]
    fn missing() -> Option<&'static str> {
        None
    }

    /// The device of this process, opened at the first call.
    fn device() -> Result<&'static Context<Self>>;

    /// Allocates memory of any content, in bytes, a multiple of four.
    fn allocate(&mut self, bytes: usize) -> Result<Self::Buffer, Failure>;

    /// Allocates memory, of a multiple of four bytes, that begins with this content. It does not wait.
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

    /// Hands what was encoded to the device, without waiting.
    fn submit(&mut self) -> Result<(), Failure>;

    /// Submits, waits, and copies the starts of buffers, each a multiple of four bytes.
    fn download(&mut self, parts: &mut [(&Self::Buffer, &mut [u8])]) -> Result<(), Failure>;
}

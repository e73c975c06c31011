//! Metal's calls, through objc2.
//!
//! Buffers use shared storage, which host and device both see. Command buffers retain the buffers they use.

use std::ffi::c_void;
use std::fmt::Debug;
use std::ptr::NonNull;
use std::sync::OnceLock;

use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::NSString;
use objc2_metal::{
    MTLBuffer, MTLCommandBuffer, MTLCommandBufferStatus, MTLCommandEncoder, MTLCommandQueue,
    MTLCompileOptions, MTLComputeCommandEncoder, MTLComputePipelineState,
    MTLCreateSystemDefaultDevice, MTLDevice, MTLGPUFamily, MTLLanguageVersion, MTLLibrary,
    MTLMathFloatingPointFunctions, MTLMathMode, MTLResourceOptions, MTLSize,
};

use super::super::super::device::Context;
use super::translate::Translation;
use super::{Api, CommandError, MetalDriver, Properties, Status};
use crate::error::Result;

// Without this framework, `MTLCreateSystemDefaultDevice` finds no device in a command-line program.
#[link(name = "CoreGraphics", kind = "framework")]
unsafe extern "C" {}

type Object<T> = Retained<ProtocolObject<T>>;

static DEVICE: OnceLock<Result<Context<MetalDriver<Objc>>>> = OnceLock::new();

/// The default device, and the queue of its command buffers.
#[derive(Debug)]
pub struct Objc {
    device: Object<dyn MTLDevice>,
    queue: Object<dyn MTLCommandQueue>,
}

/// A buffer in shared storage.
#[derive(Debug)]
pub struct Buffer(Object<dyn MTLBuffer>);

// SAFETY: Metal counts references atomically, and no method changes a buffer. Only `Api::read` and `Api::write` access
// its contents, and both take the only `&mut Objc`.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

/// A command buffer, with its encoder until the commit.
#[derive(Debug)]
pub struct Commands {
    buffer: Object<dyn MTLCommandBuffer>,
    encoder: Option<Object<dyn MTLComputeCommandEncoder>>,
}

// SAFETY: one thread at a time may use a command buffer and its encoder. All calls take the only `&mut Objc`, and
// `drop` owns them.
unsafe impl Send for Commands {}

impl Commands {
    fn end(&mut self) {
        if let Some(encoder) = self.encoder.take() {
            encoder.endEncoding();
        }
    }

    /// The encoder. The driver does not use it after the commit.
    fn encoder(&self) -> &ProtocolObject<dyn MTLComputeCommandEncoder> {
        self.encoder.as_ref().expect("nothing is encoded after the commit")
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        // Metal aborts the program if an encoder is released before `endEncoding`.
        self.end();
    }
}

fn size([width, height, depth]: [u32; 3]) -> MTLSize {
    MTLSize { width: width as usize, height: height as usize, depth: depth as usize }
}

/// Compiler options that keep the rounding of every operation.
fn options() -> Retained<MTLCompileOptions> {
    let options = MTLCompileOptions::new();
    options.setLanguageVersion(MTLLanguageVersion::Version2_4);
    if objc2::available!(macos = 15.0, ios = 18.0, tvos = 18.0, visionos = 2.0) {
        options.setMathMode(MTLMathMode::Safe);
        options.setMathFloatingPointFunctions(MTLMathFloatingPointFunctions::Precise);
    } else {
        #[allow(deprecated, reason = "older systems have no `setMathMode`")]
        options.setFastMathEnabled(false);
    }
    options
}

impl Api for Objc {
    type Buffer = Buffer;
    type Pipeline = Object<dyn MTLComputePipelineState>;
    type Commands = Commands;

    fn device() -> &'static OnceLock<Result<Context<MetalDriver<Self>>>> {
        &DEVICE
    }

    fn open() -> Result<(Self, Properties), String> {
        let device = MTLCreateSystemDefaultDevice().ok_or("there is no Metal device")?;
        let queue = device.newCommandQueue().ok_or("the device has no command queue")?;
        let properties = Properties {
            name: device.name().to_string(),
            i64: device.supportsFamily(MTLGPUFamily::Apple3)
                || device.supportsFamily(MTLGPUFamily::Metal3),
            max_buffer: device.maxBufferLength() as u64,
            working_set: device.recommendedMaxWorkingSetSize(),
        };
        Ok((Objc { device, queue }, properties))
    }

    fn pooled<R>(f: impl FnOnce() -> R) -> R {
        autoreleasepool(|_| f())
    }

    fn pipeline(&mut self, kernel: &Translation) -> Result<Self::Pipeline, String> {
        let text = NSString::from_str(&kernel.text);
        let library = self
            .device
            .newLibraryWithSource_options_error(&text, Some(&options()))
            .map_err(|error| error.localizedDescription().to_string())?;
        let function = library
            .newFunctionWithName(&NSString::from_str(&kernel.entry))
            .ok_or_else(|| format!("the library has no function {}", kernel.entry))?;
        self.device
            .newComputePipelineStateWithFunction_error(&function)
            .map_err(|error| error.localizedDescription().to_string())
    }

    fn max_threads(pipeline: &Self::Pipeline) -> usize {
        pipeline.maxTotalThreadsPerThreadgroup()
    }

    fn buffer(&mut self, bytes: usize) -> Option<Buffer> {
        // Metal cannot allocate a buffer of 0 bytes.
        let options = MTLResourceOptions::StorageModeShared;
        self.device.newBufferWithLength_options(bytes.max(4), options).map(Buffer)
    }

    fn write(&mut self, Buffer(buffer): &Buffer, content: &[u8]) {
        assert!(content.len() <= buffer.length(), "the content is longer than the buffer");
        // SAFETY: `contents` points to `length` bytes of shared storage, and the content fits, as checked above. The
        // two do not overlap, because a buffer's memory is never lent out. No command buffer uses it, because the
        // driver writes only to new buffers.
        unsafe {
            let to = buffer.contents().cast::<u8>().as_ptr();
            to.copy_from_nonoverlapping(content.as_ptr(), content.len());
        }
    }

    fn read(&mut self, Buffer(buffer): &Buffer, to: &mut [u8]) {
        assert!(to.len() <= buffer.length(), "more bytes are read than the buffer has");
        // SAFETY: as in `write`. The driver has waited for all committed command buffers, and none is being encoded.
        unsafe {
            let from = buffer.contents().cast::<u8>().as_ptr();
            to.as_mut_ptr().copy_from_nonoverlapping(from, to.len());
        }
    }

    fn begin(&mut self) -> Option<Commands> {
        let buffer = self.queue.commandBuffer()?;
        let encoder = Some(buffer.computeCommandEncoder()?);
        Some(Commands { buffer, encoder })
    }

    fn set_pipeline(&mut self, commands: &mut Commands, pipeline: &Self::Pipeline) {
        commands.encoder().setComputePipelineState(pipeline);
    }

    fn set_buffer(&mut self, commands: &mut Commands, index: usize, Buffer(buffer): &Buffer) {
        // SAFETY: offset 0 lies within the buffer, and `translate` has checked the index.
        unsafe { commands.encoder().setBuffer_offset_atIndex(Some(buffer), 0, index) };
    }

    fn set_words(&mut self, commands: &mut Commands, index: usize, words: &[u32]) {
        let bytes = NonNull::from(words).cast::<c_void>();
        // SAFETY: the pointer is valid for this length. Metal copies the bytes before it returns. `translate` has
        // checked the index.
        unsafe {
            commands.encoder().setBytes_length_atIndex(bytes, size_of_val(words), index);
        }
    }

    fn dispatch(&mut self, commands: &mut Commands, groups: [u32; 3], threads: [u32; 3]) {
        commands.encoder().dispatchThreadgroups_threadsPerThreadgroup(size(groups), size(threads));
    }

    fn commit(&mut self, commands: &mut Commands) {
        commands.end();
        commands.buffer.commit();
    }

    fn wait(&mut self, commands: &Commands) {
        commands.buffer.waitUntilCompleted();
    }

    fn status(&mut self, commands: &Commands) -> Status {
        match commands.buffer.status() {
            MTLCommandBufferStatus::Completed => Status::Completed,
            MTLCommandBufferStatus::Error => Status::Failed,
            _ => Status::Running,
        }
    }

    fn error(&mut self, commands: &Commands) -> Option<CommandError> {
        let error = commands.buffer.error()?;
        let description = error.localizedDescription().to_string();
        Some(CommandError { code: error.code(), description })
    }
}

//! The calls of Metal, by objc2.
//!
//! Buffers are in shared storage: the host and the device see the same memory. Command buffers retain what they use.

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

// `MTLCreateSystemDefaultDevice` needs it in a program without windows.
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

// SAFETY: Metal's objects are counted atomically, and a buffer has no methods that change it. Its contents are read and
// written in `Api::read` and `Api::write` alone, which take the one `&mut Objc` there is.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

/// A command buffer, and its encoder until it is committed.
#[derive(Debug)]
pub struct Commands {
    buffer: Object<dyn MTLCommandBuffer>,
    encoder: Option<Object<dyn MTLComputeCommandEncoder>>,
}

// SAFETY: command buffers and encoders may be used from any thread, by one at a time. All calls to them take the one
// `&mut Objc` there is, and `drop` owns them.
unsafe impl Send for Commands {}

impl Commands {
    fn end(&mut self) {
        if let Some(encoder) = self.encoder.take() {
            encoder.endEncoding();
        }
    }

    /// The encoder, which the driver uses before it commits the command buffer.
    fn encoder(&self) -> &ProtocolObject<dyn MTLComputeCommandEncoder> {
        self.encoder.as_ref().expect("nothing is encoded after the commit")
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        // Metal aborts the program if an encoder is released before its end.
        self.end();
    }
}

fn size([width, height, depth]: [u32; 3]) -> MTLSize {
    MTLSize { width: width as usize, height: height as usize, depth: depth as usize }
}

/// Options that keep every operation's rounding.
fn options() -> Retained<MTLCompileOptions> {
    let options = MTLCompileOptions::new();
    options.setLanguageVersion(MTLLanguageVersion::Version2_4);
    if objc2::available!(macos = 15.0, ios = 18.0, tvos = 18.0, visionos = 2.0) {
        options.setMathMode(MTLMathMode::Safe);
        options.setMathFloatingPointFunctions(MTLMathFloatingPointFunctions::Precise);
    } else {
        #[allow(deprecated, reason = "older systems have no other")]
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
        let device = MTLCreateSystemDefaultDevice().ok_or("no device")?;
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
            .ok_or_else(|| format!("there is no function {}", kernel.entry))?;
        self.device
            .newComputePipelineStateWithFunction_error(&function)
            .map_err(|error| error.localizedDescription().to_string())
    }

    fn max_threads(pipeline: &Self::Pipeline) -> usize {
        pipeline.maxTotalThreadsPerThreadgroup()
    }

    fn buffer(&mut self, bytes: usize) -> Option<Buffer> {
        // Metal has no buffers of no bytes.
        let options = MTLResourceOptions::StorageModeShared;
        self.device.newBufferWithLength_options(bytes.max(4), options).map(Buffer)
    }

    fn write(&mut self, Buffer(buffer): &Buffer, content: &[u8]) {
        assert!(content.len() <= buffer.length(), "the content is longer than the buffer");
        // SAFETY: `contents` is the start of `length` bytes in shared storage, which holds the content, as was checked
        // above. The content is no part of it, as nothing lends out the memory of a buffer. No command buffer uses the
        // buffer, as the driver writes to new ones only.
        unsafe {
            let to = buffer.contents().cast::<u8>().as_ptr();
            to.copy_from_nonoverlapping(content.as_ptr(), content.len());
        }
    }

    fn read(&mut self, Buffer(buffer): &Buffer, to: &mut [u8]) {
        assert!(to.len() <= buffer.length(), "more is read than the buffer has");
        // SAFETY: as in `write`. All command buffers that were committed are complete, and none is encoded, as the driver
        // has waited for them.
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
        // SAFETY: the offset 0 is within the buffer, and `translate` has checked that an encoder has this index.
        unsafe { commands.encoder().setBuffer_offset_atIndex(Some(buffer), 0, index) };
    }

    fn set_words(&mut self, commands: &mut Commands, index: usize, words: &[u32]) {
        let bytes = NonNull::from(words).cast::<c_void>();
        // SAFETY: the pointer is to as many bytes as are said, which Metal copies before it returns, and `translate` has
        // checked that an encoder has this index.
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

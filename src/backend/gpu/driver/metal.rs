//! The driver for Metal.
//!
//! ```text
//! MetalDriver<A>     encodes, commits, checks for errors; the same on every system
//!   translate        translates kernels from WGSL when a pipeline is first used
//!   Api              Metal's calls, without any logic
//!     objc           through objc2, on Apple's systems
//! ```
//!
//! 1. Kernels are translated at first use. Files next to the WGSL would not do: there are hundreds of kernels, their
//!    text is generated at run time, and a second copy could differ from it.
//! 2. Each command buffer has one serial encoder, which orders its dispatches. Command buffers run in the order in
//!    which they are committed.
//! 3. A failed command buffer leaves zeros or old values in its results, and Metal reports the failure only in its
//!    status. The driver therefore keeps each one until its status is checked, and a read waits for all of them. Any
//!    later value may depend on the lost ones, so all later dispatches and reads fail too.

#[cfg(target_vendor = "apple")]
pub mod objc;
pub mod translate;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::OnceLock;

use smallvec::SmallVec;

use super::super::device::Context;
use super::super::shader::{Module, WORDS};
use super::{Capabilities, Driver, Failure};
use crate::error::{Error, Result};
use translate::{Translation, translate};

/// The Metal calls that the driver makes.
pub trait Api: Debug + Send + Sized + 'static {
    /// An `MTLBuffer` that the host can read and write.
    type Buffer: Debug + Send + Sync + 'static;

    /// An `MTLComputePipelineState`.
    type Pipeline: Send + Sync + 'static;

    /// An `MTLCommandBuffer` with a serial `MTLComputeCommandEncoder`.
    type Commands: Debug + Send + 'static;

    /// Returns what the machine lacks for testing the driver, if anything.
    fn missing() -> Option<&'static str> {
        None
    }

    /// The static that holds the device of this process.
    fn device() -> &'static OnceLock<Result<Context<MetalDriver<Self>>>>;

    /// Opens the device.
    ///
    /// # Errors
    /// The reason, as text.
    fn open() -> Result<(Self, Properties), String>;

    /// Runs `f` in an autorelease pool, which all other calls need.
    fn pooled<R>(f: impl FnOnce() -> R) -> R;

    /// Compiles a kernel to a pipeline.
    ///
    /// # Errors
    /// The compiler's message.
    fn pipeline(&mut self, kernel: &Translation) -> Result<Self::Pipeline, String>;

    /// Maximum number of threads in a group of this pipeline.
    fn max_threads(pipeline: &Self::Pipeline) -> usize;

    /// Allocates a buffer; `None` if memory is exhausted.
    fn buffer(&mut self, bytes: usize) -> Option<Self::Buffer>;

    /// Copies bytes to the start of a buffer that no command buffer uses.
    fn write(&mut self, buffer: &Self::Buffer, content: &[u8]);

    /// Copies bytes from the start of a buffer whose command buffers are complete.
    fn read(&mut self, buffer: &Self::Buffer, to: &mut [u8]);

    /// Begins a command buffer and its encoder; `None` if Metal has none left.
    fn begin(&mut self) -> Option<Self::Commands>;

    /// Sets the pipeline of the next dispatches.
    fn set_pipeline(&mut self, commands: &mut Self::Commands, pipeline: &Self::Pipeline);

    /// Sets the buffer at an index.
    fn set_buffer(&mut self, commands: &mut Self::Commands, index: usize, buffer: &Self::Buffer);

    /// Copies words into the command buffer. The kernel sees them as the buffer at this index.
    fn set_words(&mut self, commands: &mut Self::Commands, index: usize, words: &[u32]);

    /// Encodes a dispatch of a grid of groups.
    fn dispatch(&mut self, commands: &mut Self::Commands, groups: [u32; 3], threads: [u32; 3]);

    /// Ends the encoder and commits the command buffer.
    fn commit(&mut self, commands: &mut Self::Commands);

    /// Waits until a committed command buffer is complete.
    fn wait(&mut self, commands: &Self::Commands);

    /// The state of a committed command buffer.
    fn status(&mut self, commands: &Self::Commands) -> Status;

    /// The error of a committed command buffer.
    fn error(&mut self, commands: &Self::Commands) -> Option<CommandError>;
}

/// Properties that Metal reports of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Properties {
    /// Name.
    pub name: String,
    /// True if shaders have 64-bit integers.
    pub i64: bool,
    /// `maxBufferLength`.
    pub max_buffer: u64,
    /// `recommendedMaxWorkingSetSize`; 0 if it is not known.
    pub working_set: u64,
}

/// State of a committed command buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Waiting or running.
    Running,
    /// Finished without an error.
    Completed,
    /// Finished with an error.
    Failed,
}

/// Error of a command buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    /// Value of `MTLCommandBufferError`.
    pub code: isize,
    /// Description by Metal.
    pub description: String,
}

/// `MTLCommandBufferErrorOutOfMemory`.
const OUT_OF_MEMORY: isize = 8;

/// The device, the command buffer that is being encoded, and the committed ones.
#[derive(Debug)]
pub struct MetalDriver<A: Api> {
    api: A,
    encoded: Option<Batch<A>>,
    /// Committed and not yet checked, the oldest first.
    committed: VecDeque<Batch<A>>,
    /// Why values were lost, and true if that was reported.
    lost: Option<(Failure, bool)>,
}

/// A buffer with its size.
#[derive(Debug)]
pub struct MetalBuffer<A: Api> {
    buffer: A::Buffer,
    bytes: u32,
}

/// A compiled kernel.
#[derive(Debug)]
pub struct MetalPipeline<A: Api> {
    pipeline: A::Pipeline,
    kernel: Translation,
}

/// A command buffer, and the kernels in it for error messages.
#[derive(Debug)]
struct Batch<A: Api> {
    commands: A::Commands,
    dispatches: usize,
    first: String,
    last: String,
}

impl<A: Api> Batch<A> {
    /// The failure of a command buffer that is not `Completed` or has an error.
    fn failure(&self, status: Status, error: Option<CommandError>) -> Failure {
        let reason = match error {
            Some(CommandError { code: OUT_OF_MEMORY, .. }) => return Failure::OutOfMemory,
            Some(CommandError { code, description }) => format!("{description} (code {code})"),
            None => format!("its status is {status:?}, without an error"),
        };
        let Batch { dispatches, first, last, .. } = self;
        Failure::Device(format!(
            "a command buffer of {dispatches} kernels, from {first} to {last}, failed: {reason}"
        ))
    }
}

fn open<A: Api>() -> Result<Context<MetalDriver<A>>> {
    let (api, properties) = A::pooled(A::open).map_err(|reason| Error::Device {
        op: "open",
        backend: MetalDriver::<A>::NAME,
        reason,
    })?;
    // Kernels read the sizes of buffers as 32-bit words.
    let max_buffer = usize::try_from(properties.max_buffer.min(u32::MAX.into()));
    let working_set = usize::try_from(properties.working_set).unwrap_or(usize::MAX);
    let capabilities = Capabilities {
        name: properties.name,
        f16: true,
        i64: properties.i64,
        max_buffer: max_buffer.unwrap_or(usize::MAX) / 4 * 4,
        rounds: usize::MAX,
        working_set: if working_set == 0 { usize::MAX } else { working_set },
    };
    let driver = MetalDriver { api, encoded: None, committed: VecDeque::new(), lost: None };
    Ok(Context::new(driver, capabilities))
}

impl<A: Api> MetalDriver<A> {
    /// Fails if values were lost.
    fn check(&mut self) -> Result<(), Failure> {
        let Some((failure, is_reported)) = &mut self.lost else { return Ok(()) };
        if !std::mem::replace(is_reported, true) {
            return Err(failure.clone());
        }
        Err(Failure::Device(match failure {
            Failure::OutOfMemory => {
                "values were lost when a command buffer ran out of memory".to_owned()
            }
            Failure::Device(reason) => format!("values were lost: {reason}"),
        }))
    }

    /// Checks the command buffers that are complete, or with `waits` all committed ones.
    fn check_committed(&mut self, waits: bool) {
        while let Some(batch) = self.committed.front() {
            if waits {
                self.api.wait(&batch.commands);
            }
            let status = self.api.status(&batch.commands);
            if status == Status::Running && !waits {
                return;
            }
            let error = self.api.error(&batch.commands);
            if status != Status::Completed || error.is_some() {
                let failure = batch.failure(status, error);
                self.lost.get_or_insert((failure, false));
            }
            self.committed.pop_front();
        }
    }

    fn commit(&mut self) {
        if let Some(mut batch) = self.encoded.take() {
            self.api.commit(&mut batch.commands);
            self.committed.push_back(batch);
        }
    }

    fn new_buffer(&mut self, bytes: usize) -> Result<MetalBuffer<A>, Failure> {
        let size = u32::try_from(bytes).map_err(|_| Failure::OutOfMemory)?;
        let mut buffer = self.api.buffer(bytes);
        if buffer.is_none() {
            // Command buffers retain buffers that are otherwise unused: let them finish, and try again.
            self.commit();
            self.check_committed(true);
            buffer = self.api.buffer(bytes);
        }
        buffer.map(|buffer| MetalBuffer { buffer, bytes: size }).ok_or(Failure::OutOfMemory)
    }

    fn encode(
        &mut self,
        MetalPipeline { pipeline, kernel }: &MetalPipeline<A>,
        buffers: &[&MetalBuffer<A>],
        words: &[u32],
        grid: [u32; 3],
    ) -> Result<(), Failure> {
        let count = kernel.writes.len();
        if buffers.len() != count || words.len() != WORDS {
            let reason = format!(
                "the kernel {}: expected {count} buffers and {WORDS} words, got {} and {}",
                kernel.name,
                buffers.len(),
                words.len()
            );
            return Err(Failure::Device(reason));
        }
        if grid.contains(&0) {
            return Ok(());
        }
        let api = &mut self.api;
        let batch = match &mut self.encoded {
            Some(batch) => batch,
            none => {
                let commands = api.begin();
                let commands = commands.ok_or_else(|| {
                    Failure::Device("Metal has no command buffer left".to_owned())
                })?;
                let (first, last) = (kernel.name.clone(), String::new());
                none.insert(Batch { commands, dispatches: 0, first, last })
            }
        };
        let commands = &mut batch.commands;
        api.set_pipeline(commands, pipeline);
        for (index, buffer) in buffers.iter().enumerate() {
            api.set_buffer(commands, index, &buffer.buffer);
        }
        api.set_words(commands, kernel.words_at(), words);
        let sizes: SmallVec<[u32; 8]> = kernel.sizes.iter().map(|&i| buffers[i].bytes).collect();
        if !sizes.is_empty() {
            api.set_words(commands, kernel.sizes_at(), &sizes);
        }
        api.dispatch(commands, grid, kernel.threads);
        batch.dispatches += 1;
        batch.last.clone_from(&kernel.name);
        Ok(())
    }
}

impl<A: Api> Driver for MetalDriver<A> {
    const NAME: &'static str = "metal";

    type Buffer = MetalBuffer<A>;
    type Pipeline = MetalPipeline<A>;

    fn missing() -> Option<&'static str> {
        A::missing()
    }

    fn device() -> Result<&'static Context<Self>> {
        A::device().get_or_init(open).as_ref().map_err(Clone::clone)
    }

    fn allocate(&mut self, bytes: usize) -> Result<MetalBuffer<A>, Failure> {
        A::pooled(|| self.new_buffer(bytes))
    }

    fn upload(&mut self, content: &[u8], bytes: usize) -> Result<MetalBuffer<A>, Failure> {
        A::pooled(|| {
            let buffer = self.new_buffer(bytes.max(content.len()))?;
            self.api.write(&buffer.buffer, content);
            Ok(buffer)
        })
    }

    fn pipeline(&mut self, module: &Module) -> Result<MetalPipeline<A>, Failure> {
        let kernel = translate(module)?;
        let failed = |reason| Failure::Device(format!("the kernel {}: {reason}", kernel.name));
        let pipeline = A::pooled(|| self.api.pipeline(&kernel)).map_err(failed)?;
        let threads: usize = kernel.threads.iter().map(|&n| n as usize).product();
        let most = A::max_threads(&pipeline);
        if threads > most {
            let reason = format!("expected groups of at most {most} threads, got {threads}");
            return Err(failed(reason));
        }
        Ok(MetalPipeline { pipeline, kernel })
    }

    fn dispatch(
        &mut self,
        pipeline: &MetalPipeline<A>,
        buffers: &[&MetalBuffer<A>],
        words: &[u32],
        grid: [u32; 3],
    ) -> Result<(), Failure> {
        self.check()?;
        A::pooled(|| self.encode(pipeline, buffers, words, grid))
    }

    fn submit(&mut self) -> Result<(), Failure> {
        A::pooled(|| {
            self.commit();
            self.check_committed(false);
        });
        self.check()
    }

    fn download(&mut self, parts: &mut [(&MetalBuffer<A>, &mut [u8])]) -> Result<(), Failure> {
        for (buffer, to) in &*parts {
            if to.len() > buffer.bytes as usize {
                let reason = format!("expected at most {} bytes, got {}", buffer.bytes, to.len());
                return Err(Failure::Device(reason));
            }
        }
        A::pooled(|| {
            self.commit();
            self.check_committed(true);
        });
        self.check()?;
        A::pooled(|| parts.iter_mut().for_each(|(from, to)| self.api.read(&from.buffer, to)));
        Ok(())
    }
}

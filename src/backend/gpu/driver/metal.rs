//! The driver by Metal.
//!
//! ```text
//! MetalDriver<A>     what is encoded where, when it is committed, what became of it: the same on every system
//!   translate        kernels in Metal's language, made from their WGSL when a pipeline is first used
//!   Api              the calls of Metal, without a decision among them
//!     objc           by objc2, on Apple's systems
//! ```
//!
//! 1. Kernels are translated when they are first used, rather than kept as files beside their WGSL: there are hundreds,
//!    whose text is written at run time, and a second copy could differ from it.
//! 2. Dispatches are encoded in one serial encoder for each command buffer, which orders them, and command buffers run
//!    in the order in which they are committed.
//! 3. A command buffer that failed leaves zeros or old values in its results, and Metal reports it nowhere but in its
//!    status. So each is kept until its status and its error were looked at, and a read waits for all of them. As every
//!    value may depend on what was lost, a failure is also that of all later dispatches and reads.

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

/// The calls of Metal that the driver makes.
pub trait Api: Debug + Send + Sized + 'static {
    /// An `MTLBuffer` that the host can read and write.
    type Buffer: Debug + Send + Sync + 'static;

    /// An `MTLComputePipelineState`.
    type Pipeline: Send + Sync + 'static;

    /// An `MTLCommandBuffer` with a serial `MTLComputeCommandEncoder`.
    type Commands: Debug + Send + 'static;

    /// What the machine lacks to test the driver, if anything.
    fn missing() -> Option<&'static str> {
        None
    }

    /// Where the device of this process is kept.
    fn device() -> &'static OnceLock<Result<Context<MetalDriver<Self>>>>;

    /// Opens the device.
    ///
    /// # Errors
    /// The reason.
    fn open() -> Result<(Self, Properties), String>;

    /// Runs `f` in an autorelease pool. All other calls are made in one.
    fn pooled<R>(f: impl FnOnce() -> R) -> R;

    /// Compiles a library and makes a pipeline of its function.
    ///
    /// # Errors
    /// The compiler's reason.
    fn pipeline(&mut self, kernel: &Translation) -> Result<Self::Pipeline, String>;

    /// The most threads of a group that the pipeline can have.
    fn max_threads(pipeline: &Self::Pipeline) -> usize;

    /// Allocates a buffer; `None` if there is no memory for it.
    fn buffer(&mut self, bytes: usize) -> Option<Self::Buffer>;

    /// Copies bytes to the start of a buffer that no command buffer uses.
    fn write(&mut self, buffer: &Self::Buffer, content: &[u8]);

    /// Copies bytes from the start of a buffer whose command buffers are complete.
    fn read(&mut self, buffer: &Self::Buffer, to: &mut [u8]);

    /// Begins a command buffer and its encoder; `None` if there is none.
    fn begin(&mut self) -> Option<Self::Commands>;

    /// Sets the pipeline of the next dispatch.
    fn set_pipeline(&mut self, commands: &mut Self::Commands, pipeline: &Self::Pipeline);

    /// Sets the buffer at an index.
    fn set_buffer(&mut self, commands: &mut Self::Commands, index: usize, buffer: &Self::Buffer);

    /// Copies words into the command buffer, as the buffer at an index.
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

/// A device, as it describes itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Properties {
    /// Its name.
    pub name: String,
    /// Shaders have 64-bit integers.
    pub i64: bool,
    /// `maxBufferLength`.
    pub max_buffer: u64,
    /// `recommendedMaxWorkingSetSize`; 0 if it is not known.
    pub working_set: u64,
}

/// State of a committed command buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It waits or runs.
    Running,
    /// It has run.
    Completed,
    /// It has failed.
    Failed,
}

/// Error of a command buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    /// Number of the error in `MTLCommandBufferError`.
    pub code: isize,
    /// Its description.
    pub description: String,
}

/// `MTLCommandBufferErrorOutOfMemory`.
const OUT_OF_MEMORY: isize = 8;

/// The device, the command buffer that is being encoded, and those that run.
#[derive(Debug)]
pub struct MetalDriver<A: Api> {
    api: A,
    encoded: Option<Batch<A>>,
    /// Committed and not yet looked at, the oldest first.
    committed: VecDeque<Batch<A>>,
    /// Why values were lost, and whether that was reported.
    lost: Option<(Failure, bool)>,
}

/// Memory of the device.
#[derive(Debug)]
pub struct MetalBuffer<A: Api> {
    buffer: A::Buffer,
    bytes: u32,
}

/// A kernel that is ready to run.
#[derive(Debug)]
pub struct MetalPipeline<A: Api> {
    pipeline: A::Pipeline,
    kernel: Translation,
}

/// A command buffer, and what messages say of it.
#[derive(Debug)]
struct Batch<A: Api> {
    commands: A::Commands,
    dispatches: usize,
    first: String,
    last: String,
}

impl<A: Api> Batch<A> {
    /// The failure of a command buffer whose state is not `Completed`, or which has an error.
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
    // The sizes of buffers are given to kernels as words of 32 bits.
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

    /// Looks at the command buffers that are complete, or waits for all and looks at each.
    fn look(&mut self, waits: bool) {
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
            // Command buffers keep what they use, also buffers that nothing else has any more.
            self.commit();
            self.look(true);
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
                let commands = commands
                    .ok_or_else(|| Failure::Device("there is no command buffer".to_owned()))?;
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
            let reason = format!("it needs groups of {threads} threads, the device has {most}");
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
            self.look(false);
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
            self.look(true);
        });
        self.check()?;
        A::pooled(|| parts.iter_mut().for_each(|(from, to)| self.api.read(&from.buffer, to)));
        Ok(())
    }
}

//! [`Shim`]: Metal's calls on the CPU. Kernels are compiled by g++, and run when their command buffer is committed.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use libloading::Library;
use swath::Result;
use swath::backend::gpu::testing::{
    Api, CommandError, MetalDriver, Properties, Status, Translation,
};
use swath::backend::gpu::{Context, Gpu};

use super::build;

pub type ShimBackend = Gpu<MetalDriver<Shim>>;

/// Devices. Each thread has one of them, so that as many tests run and compile at a time.
static DEVICES: [OnceLock<Result<Context<MetalDriver<Shim>>>>; 4] =
    [OnceLock::new(), OnceLock::new(), OnceLock::new(), OnceLock::new()];

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static DEVICE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % DEVICES.len();
}

#[derive(Debug)]
pub struct Shim;

/// Memory of a buffer, between guards that no kernel may write.
#[derive(Debug)]
pub struct Memory {
    words: UnsafeCell<Box<[u32]>>,
    bytes: usize,
}

// SAFETY: the words are accessed in `Shim::read`, `Shim::write` and `Commands::run` alone, which the driver of one
// device calls one at a time.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

const GUARD: usize = 64;

/// What new memory is filled with: as a float, a number that no test has.
const FILL: u32 = 0x7b5a_a57b;

impl Memory {
    fn new(bytes: usize) -> Memory {
        let words = vec![FILL; bytes.div_ceil(4) + 2 * GUARD].into_boxed_slice();
        Memory { words: UnsafeCell::new(words), bytes }
    }

    fn start(&self) -> *mut u8 {
        // SAFETY: there is no other reference to the box while this one is: nothing keeps one.
        let words = unsafe { &mut *self.words.get() };
        words[GUARD..].as_mut_ptr().cast()
    }

    /// True if the guards are as they were made.
    fn is_whole(&self) -> bool {
        // SAFETY: as in `start`.
        let words = unsafe { &*self.words.get() };
        let end = words.len() - GUARD;
        words[..GUARD].iter().chain(&words[end..]).all(|&word| word == FILL)
    }
}

/// A function `run` of `build::shared_object`.
type Run = unsafe extern "C" fn(*const u32, *const u32, *const *mut c_void) -> bool;

/// A kernel.
#[derive(Debug)]
pub struct Pipeline {
    run: Run,
    name: String,
    /// Variables of groups are there once.
    lock: Mutex<()>,
    _library: Library,
}

#[derive(Clone, Debug)]
enum Slot {
    Buffer(Arc<Memory>),
    Words(Box<[u32]>),
}

#[derive(Debug)]
struct Dispatch {
    pipeline: Arc<Pipeline>,
    slots: Vec<Option<Slot>>,
    groups: [u32; 3],
    threads: [u32; 3],
}

#[derive(Debug, Default)]
pub struct Commands {
    pipeline: Option<Arc<Pipeline>>,
    slots: Vec<Option<Slot>>,
    dispatches: Vec<Dispatch>,
    is_committed: bool,
    error: Option<String>,
}

impl Commands {
    fn set(&mut self, index: usize, slot: Slot) {
        if self.slots.len() <= index {
            self.slots.resize(index + 1, None);
        }
        self.slots[index] = Some(slot);
    }

    /// Runs a dispatch.
    fn run(dispatch: &Dispatch) -> Result<(), String> {
        let Dispatch { pipeline, slots, groups, threads } = dispatch;
        let pointers = slots.iter().map(|slot| match slot {
            Some(Slot::Buffer(memory)) => memory.start().cast::<c_void>(),
            Some(Slot::Words(words)) => words.as_ptr().cast_mut().cast(),
            None => std::ptr::null_mut(),
        });
        let pointers: Vec<*mut c_void> = pointers.collect();
        let lock = pipeline.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the function has this type, as `build` wrote it. It reads three words each of groups and threads, and
        // one pointer for each buffer of the kernel, which the driver has set. That kernels stay within their buffers
        // is what the tests are about; the guards tell if not. Words are never written, being `constant`.
        let is_uniform =
            unsafe { (pipeline.run)(groups.as_ptr(), threads.as_ptr(), pointers.as_ptr()) };
        drop(lock);
        if !is_uniform {
            return Err(format!("{}: some threads did not reach a barrier", pipeline.name));
        }
        for (index, slot) in slots.iter().enumerate() {
            if matches!(slot, Some(Slot::Buffer(memory)) if !memory.is_whole()) {
                return Err(format!("{}: wrote outside of buffer {index}", pipeline.name));
            }
        }
        Ok(())
    }
}

/// The pipeline of a kernel, loaded once in the process.
fn load(kernel: &Translation) -> Result<Arc<Pipeline>, String> {
    static LOADED: Mutex<Option<HashMap<std::path::PathBuf, Arc<Pipeline>>>> = Mutex::new(None);
    let path = build::shared_object(kernel)?;
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let loaded = loaded.get_or_insert_default();
    if let Some(pipeline) = loaded.get(&path) {
        return Ok(Arc::clone(pipeline));
    }
    // SAFETY: the object has no initialisation but that of its constants, and `run` has this type, as `build` wrote it.
    // The library is kept as long as the function.
    let (library, run) = unsafe {
        let library = Library::new(&path).map_err(|error| error.to_string())?;
        let run = *library.get::<Run>(b"run").map_err(|error| error.to_string())?;
        (library, run)
    };
    let name = kernel.name.clone();
    let pipeline = Arc::new(Pipeline { run, name, lock: Mutex::new(()), _library: library });
    loaded.insert(path, Arc::clone(&pipeline));
    Ok(pipeline)
}

impl Api for Shim {
    type Buffer = Arc<Memory>;
    type Pipeline = Arc<Pipeline>;
    type Commands = Commands;

    fn missing() -> Option<&'static str> {
        build::compiler().is_none().then_some("there is no g++")
    }

    fn device() -> &'static OnceLock<Result<Context<MetalDriver<Self>>>> {
        &DEVICES[DEVICE.with(|&device| device)]
    }

    fn open() -> Result<(Self, Properties), String> {
        let name = build::compiler().ok_or("there is no g++")?.lines().next().unwrap_or_default();
        let (max_buffer, working_set) = (1 << 30, 64 << 20);
        Ok((Shim, Properties { name: name.to_owned(), i64: true, max_buffer, working_set }))
    }

    fn pooled<R>(f: impl FnOnce() -> R) -> R {
        f()
    }

    fn pipeline(&mut self, kernel: &Translation) -> Result<Arc<Pipeline>, String> {
        load(kernel)
    }

    fn max_threads(_: &Arc<Pipeline>) -> usize {
        1024
    }

    fn buffer(&mut self, bytes: usize) -> Option<Arc<Memory>> {
        Some(Arc::new(Memory::new(bytes)))
    }

    fn write(&mut self, buffer: &Arc<Memory>, content: &[u8]) {
        assert!(content.len() <= buffer.bytes);
        // SAFETY: the buffer has as many bytes, as was checked above, and no kernel runs.
        unsafe { buffer.start().copy_from_nonoverlapping(content.as_ptr(), content.len()) };
    }

    fn read(&mut self, buffer: &Arc<Memory>, to: &mut [u8]) {
        assert!(to.len() <= buffer.bytes);
        // SAFETY: as in `write`.
        unsafe { to.as_mut_ptr().copy_from_nonoverlapping(buffer.start(), to.len()) };
    }

    fn begin(&mut self) -> Option<Commands> {
        Some(Commands::default())
    }

    fn set_pipeline(&mut self, commands: &mut Commands, pipeline: &Arc<Pipeline>) {
        commands.pipeline = Some(Arc::clone(pipeline));
    }

    fn set_buffer(&mut self, commands: &mut Commands, index: usize, buffer: &Arc<Memory>) {
        commands.set(index, Slot::Buffer(Arc::clone(buffer)));
    }

    fn set_words(&mut self, commands: &mut Commands, index: usize, words: &[u32]) {
        commands.set(index, Slot::Words(words.into()));
    }

    fn dispatch(&mut self, commands: &mut Commands, groups: [u32; 3], threads: [u32; 3]) {
        let pipeline = commands.pipeline.clone().expect("a pipeline was set");
        let slots = commands.slots.clone();
        commands.dispatches.push(Dispatch { pipeline, slots, groups, threads });
    }

    fn commit(&mut self, commands: &mut Commands) {
        commands.is_committed = true;
        for dispatch in commands.dispatches.drain(..) {
            if let Err(error) = Commands::run(&dispatch) {
                commands.error.get_or_insert(error);
            }
        }
    }

    fn wait(&mut self, commands: &Commands) {
        assert!(commands.is_committed, "nothing would ever complete");
    }

    fn status(&mut self, commands: &Commands) -> Status {
        match &commands.error {
            None => Status::Completed,
            Some(_) => Status::Failed,
        }
    }

    fn error(&mut self, commands: &Commands) -> Option<CommandError> {
        let description = commands.error.clone()?;
        Some(CommandError { code: 1, description })
    }
}

//! [`Fake`]: a device that computes nothing, records the calls of each thread, and fails where its script says.

use std::cell::RefCell;
use std::sync::OnceLock;

use swath::backend::gpu::testing::{
    Api, CommandError, MetalDriver, Properties, Status, Translation,
};
use swath::backend::gpu::{Context, Gpu};
use swath::{Result, Tensor};

pub type Metal = MetalDriver<Fake>;

pub type FakeTensor = Tensor<Gpu<Metal>>;

/// A call, with the numbers of the command buffer and of the buffer that it is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    Compile(String),
    NewBuffer { buffer: usize, bytes: usize },
    Write { buffer: usize, bytes: usize },
    Read { buffer: usize, bytes: usize },
    Begin(usize),
    SetPipeline(usize, String),
    SetBuffer { commands: usize, index: usize, buffer: usize },
    SetWords { commands: usize, index: usize, words: Vec<u32> },
    Dispatch { commands: usize, groups: [u32; 3], threads: [u32; 3] },
    Commit(usize),
    Wait(usize),
    Status(usize),
    Error(usize),
}

/// How the device behaves.
#[derive(Clone, Debug)]
pub struct Script {
    pub i64: bool,
    pub max_buffer: u64,
    pub working_set: u64,
    /// Bytes of memory that the device has.
    pub memory: usize,
    pub max_threads: usize,
    /// The reason why it does not open.
    pub closed: Option<String>,
    /// The reason why kernels do not compile.
    pub compiler: Option<String>,
    /// Numbers of command buffers with a status and an error, both of which may be as for success.
    pub outcomes: Vec<(usize, Status, Option<CommandError>)>,
    /// Command buffers run until they are waited for.
    pub is_slow: bool,
}

impl Default for Script {
    fn default() -> Script {
        Script {
            i64: true,
            max_buffer: 1 << 28,
            working_set: 1 << 30,
            memory: usize::MAX,
            max_threads: 1024,
            closed: None,
            compiler: None,
            outcomes: Vec::new(),
            is_slow: false,
        }
    }
}

/// A device of one thread.
#[derive(Debug)]
struct State {
    script: Script,
    calls: Vec<Call>,
    buffers: usize,
    commands: usize,
    /// Bytes of all buffers that something has.
    used: usize,
    waited: Vec<usize>,
    is_pooled: bool,
}

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
    static DEVICE: &'static OnceLock<Result<Context<MetalDriver<Fake>>>> =
        Box::leak(Box::new(OnceLock::new()));
}

/// Of a thread that ends, there may be no state.
fn with<R>(f: impl FnOnce(&mut State) -> R) -> Option<R> {
    STATE.try_with(|state| state.borrow_mut().as_mut().map(f)).ok().flatten()
}

fn state<R>(f: impl FnOnce(&mut State) -> R) -> R {
    with(f).expect("the test runs in `on_a_device`")
}

fn record(call: Call) {
    state(|state| {
        assert!(state.is_pooled, "{call:?} without an autorelease pool");
        state.calls.push(call);
    });
}

/// Runs a test on a device of its own. In the end, every command buffer that was committed must have been looked at.
pub fn on_a_device(script: Script, test: impl FnOnce() + Send) {
    let body = || {
        let new = State {
            script,
            calls: Vec::new(),
            buffers: 0,
            commands: 0,
            used: 0,
            waited: Vec::new(),
            is_pooled: false,
        };
        STATE.set(Some(new));
        test();
        check_all_were_looked_at();
    };
    std::thread::scope(|scope| {
        if let Err(panic) = scope.spawn(body).join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// The calls so far.
pub fn calls() -> Vec<Call> {
    state(|state| state.calls.clone())
}

/// The numbers of the command buffers that were committed.
pub fn committed() -> Vec<usize> {
    let of = |call| if let Call::Commit(commands) = call { Some(commands) } else { None };
    calls().into_iter().filter_map(of).collect()
}

/// Fails unless status and error of each committed command buffer were asked for after its commit.
pub fn check_all_were_looked_at() {
    let calls = calls();
    for commands in committed() {
        let commit = calls.iter().position(|call| *call == Call::Commit(commands));
        let after = &calls[commit.unwrap_or(0)..];
        for call in [Call::Status(commands), Call::Error(commands)] {
            assert!(after.contains(&call), "nobody has asked for {call:?}");
        }
    }
}

#[derive(Debug)]
pub struct Fake;

/// A buffer, which command buffers keep, too.
#[derive(Debug)]
pub struct Memory {
    number: usize,
    bytes: usize,
}

impl Drop for Memory {
    fn drop(&mut self) {
        with(|state| state.used -= self.bytes);
    }
}

#[derive(Debug)]
pub struct Commands {
    number: usize,
    is_committed: bool,
    kept: Vec<std::sync::Arc<Memory>>,
}

impl Api for Fake {
    type Buffer = std::sync::Arc<Memory>;
    type Pipeline = String;
    type Commands = Commands;

    fn device() -> &'static OnceLock<Result<Context<MetalDriver<Self>>>> {
        DEVICE.with(|device| *device)
    }

    fn open() -> Result<(Self, Properties), String> {
        let Script { i64, max_buffer, working_set, closed, .. } =
            state(|state| state.script.clone());
        let properties = Properties { name: "fake".to_owned(), i64, max_buffer, working_set };
        closed.map_or(Ok((Fake, properties)), Err)
    }

    fn pooled<R>(f: impl FnOnce() -> R) -> R {
        let before = state(|state| std::mem::replace(&mut state.is_pooled, true));
        let result = f();
        state(|state| state.is_pooled = before);
        result
    }

    fn pipeline(&mut self, kernel: &Translation) -> Result<String, String> {
        record(Call::Compile(kernel.name.clone()));
        state(|state| state.script.compiler.clone()).map_or(Ok(kernel.name.clone()), Err)
    }

    fn max_threads(_: &String) -> usize {
        state(|state| state.script.max_threads)
    }

    fn buffer(&mut self, bytes: usize) -> Option<Self::Buffer> {
        let number = state(|state| {
            (bytes <= state.script.memory - state.used).then(|| {
                state.used += bytes;
                state.buffers += 1;
                state.buffers - 1
            })
        })?;
        record(Call::NewBuffer { buffer: number, bytes });
        Some(std::sync::Arc::new(Memory { number, bytes }))
    }

    fn write(&mut self, buffer: &Self::Buffer, content: &[u8]) {
        assert!(content.len() <= buffer.bytes);
        record(Call::Write { buffer: buffer.number, bytes: content.len() });
    }

    fn read(&mut self, buffer: &Self::Buffer, to: &mut [u8]) {
        assert!(to.len() <= buffer.bytes);
        // Faults of kernels: there is none.
        to.fill(0xff);
        record(Call::Read { buffer: buffer.number, bytes: to.len() });
    }

    fn begin(&mut self) -> Option<Commands> {
        let number = state(|state| {
            state.commands += 1;
            state.commands - 1
        });
        record(Call::Begin(number));
        Some(Commands { number, is_committed: false, kept: Vec::new() })
    }

    fn set_pipeline(&mut self, commands: &mut Commands, pipeline: &String) {
        assert!(!commands.is_committed);
        record(Call::SetPipeline(commands.number, pipeline.clone()));
    }

    fn set_buffer(&mut self, commands: &mut Commands, index: usize, buffer: &Self::Buffer) {
        assert!(!commands.is_committed);
        commands.kept.push(buffer.clone());
        let (commands, buffer) = (commands.number, buffer.number);
        record(Call::SetBuffer { commands, index, buffer });
    }

    fn set_words(&mut self, commands: &mut Commands, index: usize, words: &[u32]) {
        assert!(!commands.is_committed);
        // The most that Metal copies.
        assert!(size_of_val(words) <= 4096);
        record(Call::SetWords { commands: commands.number, index, words: words.to_vec() });
    }

    fn dispatch(&mut self, commands: &mut Commands, groups: [u32; 3], threads: [u32; 3]) {
        assert!(!commands.is_committed && !groups.contains(&0));
        record(Call::Dispatch { commands: commands.number, groups, threads });
    }

    fn commit(&mut self, commands: &mut Commands) {
        assert!(!commands.is_committed, "a command buffer is committed once");
        commands.is_committed = true;
        record(Call::Commit(commands.number));
    }

    fn wait(&mut self, commands: &Commands) {
        assert!(commands.is_committed, "it would wait for ever");
        record(Call::Wait(commands.number));
        state(|state| state.waited.push(commands.number));
    }

    fn status(&mut self, commands: &Commands) -> Status {
        record(Call::Status(commands.number));
        let number = commands.number;
        state(|State { script, waited, .. }| {
            if script.is_slow && !waited.contains(&number) {
                return Status::Running;
            }
            let outcome = script.outcomes.iter().find(|outcome| outcome.0 == number);
            outcome.map_or(Status::Completed, |outcome| outcome.1)
        })
    }

    fn error(&mut self, commands: &Commands) -> Option<CommandError> {
        record(Call::Error(commands.number));
        let number = commands.number;
        state(|State { script, .. }| {
            script.outcomes.iter().find(|outcome| outcome.0 == number)?.2.clone()
        })
    }
}

//! Trains a small character-level transformer and samples text from it.
//!
//! ```text
//! cargo run --release --example train_gpt                     on this crate's own source
//! cargo run --release --example train_gpt -- --data PATH…     on any text
//! ```
//!
//! The same seed gives the same losses and parameters, bit for bit, on every machine and for any
//! number of threads, also if the run is interrupted and resumed. `--hash` prints a digest of them. With
//! `--micro-batches 8` the same holds for up to eight ranks, by `mpirun -n 8 … --mpi` or as threads by
//! `--local 8`.
//!
//! | file | contents |
//! |---|---|
//! | `options.rs` | the command line |
//! | `plan.rs` | the hyperparameters of a run |
//! | `data.rs` | reading text, splitting it, drawing batches |
//! | `model.rs` | the transformer |
//! | `train.rs` | the training loop and the evaluation |
//! | `state.rs` | saving and resuming |
//! | `ngram.rs` | a 4-gram model of the same text, for comparison |
//! | `history.rs`, `progress.rs`, `sample.rs` | loss curve, progress bar, generated text |

mod data;
mod history;
mod model;
mod ngram;
mod options;
mod plan;
mod progress;
mod sample;
mod state;
mod train;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use swath::Device;
use swath::distributed::World;
use swath::nn;
use swath::prelude::*;

use data::Corpus;
use ngram::FourGram;
use options::Options;
use plan::Plan;
use train::{End, Run, SAMPLE_STREAM};

/// How long a process waits for the others: longer than rank 0 takes to write a checkpoint, or to sample.
#[cfg(feature = "mpi")]
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(600);

/// Error of a run.
pub type Failure = Box<dyn std::error::Error>;

/// Prints a line. Errors are ignored, so that training goes on if standard output is closed.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}
pub(crate) use say;

fn main() -> ExitCode {
    match Options::from_command_line().and_then(|options| options.map_or(Ok(()), |o| start(&o))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("train_gpt: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs on the ranks of the options.
fn start(options: &Options) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        // A second Ctrl-C, or one after everything was saved, ends the program at once.
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })?;
    if options.mpi {
        #[cfg(feature = "mpi")]
        return start_rank(options, World::mpi()?.with_deadline(DEADLINE), &stop);
        #[cfg(not(feature = "mpi"))]
        return Err("--mpi: this program was built without it; build with --features mpi".into());
    }
    let ranks = World::local(options.local.unwrap_or(1))?;
    std::thread::scope(|scope| {
        let stop = &*stop;
        let spawn = |world: World| {
            // A boxed error may not be able to leave its thread.
            scope.spawn(move || start_rank(options, world, stop).map_err(|error| error.to_string()))
        };
        let threads: Vec<_> = ranks.into_iter().map(spawn).collect();
        let mut result = Ok(());
        for thread in threads {
            let ended = thread.join().unwrap_or_else(|_| Err("a rank panicked".to_owned()));
            result = result.and(ended);
        }
        result.map_err(Failure::from)
    })
}

/// Runs one rank on the device of the options.
fn start_rank(options: &Options, world: World, stop: &AtomicBool) -> Result<(), Failure> {
    match options.device.unwrap_or(Device::Cpu) {
        Device::Cpu => run::<CpuBackend>(options, world, stop),
        #[cfg(feature = "wgpu")]
        Device::Wgpu => run::<swath::WgpuBackend>(options, world, stop),
        #[cfg(all(feature = "metal", target_vendor = "apple"))]
        Device::Metal => run::<swath::MetalBackend>(options, world, stop),
        other => {
            other.check()?;
            Err(format!("--device: expected cpu, wgpu or metal, got {other}").into())
        }
    }
}

fn run<B: Backend>(options: &Options, world: World, stop: &AtomicBool) -> Result<(), Failure> {
    // Rank 0 alone prints.
    macro_rules! say {
        ($($text:tt)*) => {
            if world.is_root() {
                crate::say!($($text)*);
            }
        };
    }
    swath::runtime::check()?;
    if let Some(threads) = options.threads {
        swath::runtime::set_threads(threads)?;
    }
    let folder = options.folder();
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    if world.size() > 1 {
        say!("ranks    {world}");
    }
    let saved = options.resume.then(|| state::Saved::load(&folder, options)).transpose()?;
    let plan = match &saved {
        Some(saved) => saved.plan,
        None => Plan::new(options)?,
    };
    let corpus = Corpus::load(&options.data, plan.context)?;
    let prompt = match &options.prompt {
        None => corpus.default_prompt(),
        Some(text) if text.is_empty() => corpus.default_prompt(),
        Some(text) => {
            corpus.encode(text).map_err(|c| format!("--prompt: the training text has no {c:?}"))?
        }
    };
    world.agree(corpus.fingerprint())?;
    let mut run = Run::<B>::new(plan, corpus.vocabulary().len(), &world, options.shard)?;
    if let Some(saved) = saved {
        saved.restore(&mut run, &corpus)?;
        say!("going on after step {} of {}", run.steps(), plan.steps);
        if plan.steps > plan.schedule {
            let (steps, rate) = (plan.schedule, plan.final_rate());
            say!(
                "the learning rate was laid out for {steps} steps: it stays {rate:.1e} after them"
            );
        }
    } else if state::exists(&folder) {
        say!("the run saved in {} will be replaced (--resume would continue it)", folder.display());
    }
    say!("{}", swath::runtime::info());
    say!("data     {corpus}");
    let summary = nn::summary(&run.model);
    say!("model    {} parameters, {} bytes", summary.parameters(), summary.parameter_bytes());

    let start = Instant::now();
    let first = run.steps();
    let save = |run: &Run<B>| {
        state::save(&folder, run, &corpus)?;
        if run.parallel.world().is_root() { run.write_curve(&folder) } else { Ok(()) }
    };
    if run.train(&corpus, stop, save)? == End::Interrupted {
        say!("stopped after step {} of {}; to continue:", run.steps(), plan.steps);
        say!("  {}", resume_command(options));
        return Ok(());
    }
    stop.store(true, Ordering::Relaxed);
    if run.steps() > first {
        let seconds = start.elapsed().as_secs_f64();
        let tokens = ((run.steps() - first) * plan.batch * plan.context) as f64;
        say!("{} steps in {seconds:.0} s, {:.0} tokens/s", run.steps() - first, tokens / seconds);
    }

    let loss = run.loss_of(&corpus.held_out)?;
    if !world.is_root() {
        return Ok(());
    }
    let length = options.sample.unwrap_or(400);
    if length > 0 {
        let mut rng = Rng::seed(plan.seed).stream(SAMPLE_STREAM);
        let temperature = options.temperature.unwrap_or(0.8);
        let tokens =
            run.evaluating(|model| sample::sample(model, prompt, length, temperature, &mut rng))?;
        say!("\n{}\n", corpus.decode(&tokens));
    }
    let four_gram =
        FourGram::new(&corpus.training, corpus.vocabulary().len()).loss(&corpus.held_out);
    say!("loss on the held-out text, in nats per character:");
    say!("  {loss:.3}  this model, in windows of {} characters", plan.context);
    say!("  {four_gram:.3}  4-gram model (Witten-Bell), {:+.3}", four_gram - loss);
    say!("written to {}: model.safetensors, history.csv, loss.svg", folder.display());
    if options.hash {
        say!("sha256 {}", run.digest()?);
    }
    Ok(())
}

/// Returns the command that continues an interrupted run.
fn resume_command(options: &Options) -> String {
    let mut words = vec!["--resume".to_owned()];
    let mut add = |flag: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|value| [flag.to_owned(), quoted(&value)]));
    };
    add("--out", options.out.as_ref().map(|path| path.display().to_string()));
    for path in &options.data {
        add("--data", Some(path.display().to_string()));
    }
    add("--steps", options.resume.then_some(options.steps).flatten().map(|n| n.to_string()));
    add("--local", options.local.map(|n| n.to_string()));
    add("--device", options.device.map(|device| device.to_string()));
    add("--threads", options.threads.map(|n| n.to_string()));
    add("--sample", options.sample.map(|n| n.to_string()));
    add("--prompt", options.prompt.clone());
    add("--temperature", options.temperature.map(|x| x.to_string()));
    for (flag, given) in
        [("--mpi", options.mpi), ("--shard", options.shard), ("--hash", options.hash)]
    {
        words.extend(given.then(|| flag.to_owned()));
    }
    let command = match options.mpi {
        true => "mpirun … target/release/examples/train_gpt",
        false => "cargo run --release --example train_gpt --",
    };
    format!("{command} {}", words.join(" "))
}

/// Quotes a word for a shell, if it needs quotes.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resume_command_keeps_and_quotes_the_options() {
        let options = Options {
            data: vec!["a b.txt".into(), "c.txt".into()],
            prompt: Some("it's".to_owned()),
            steps: Some(9),
            hash: true,
            ..Options::default()
        };
        let command = resume_command(&options);
        let arguments = command.split_once(" -- ").unwrap().1;
        assert_eq!(arguments, r"--resume --data 'a b.txt' --data c.txt --prompt 'it'\''s' --hash");
    }
}

//! Trains a small character-level transformer and samples from it.
//!
//! ```text
//! cargo run --release --example train_gpt                     on this crate's own source
//! cargo run --release --example train_gpt -- --data PATH…     on any text
//! ```
//!
//! The same seed gives the same losses and parameters, bit for bit, on every machine and for any
//! number of threads, interrupted and resumed or not; `--hash` prints a digest of them.
//!
//! | file | what |
//! |---|---|
//! | `options.rs`, `plan.rs` | what was asked for; what a run is |
//! | `data.rs` | text, split, batches |
//! | `model.rs` | the transformer |
//! | `train.rs` | the loop |
//! | `state.rs`, `files.rs` | saving and going on |
//! | `ngram.rs` | what counting achieves on the same text |
//! | `history.rs`, `progress.rs`, `sample.rs` | what a user sees |

mod data;
mod files;
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

use swath::nn;
use swath::prelude::*;

use data::Corpus;
use ngram::FourGram;
use options::Options;
use plan::Plan;
use train::{End, Run, SAMPLE_STREAM};

/// Why a run ended early.
pub type Failure = Box<dyn std::error::Error>;

/// Prints a line. A reader that has gone away is no reason to stop training.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}
pub(crate) use say;

fn main() -> ExitCode {
    match Options::from_command_line().and_then(|options| options.map_or(Ok(()), |o| run(&o))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("train_gpt: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    swath::runtime::check()?;
    if let Some(threads) = options.threads {
        swath::runtime::set_threads(threads)?;
    }
    let folder = options.folder();
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let saved = options.resume.then(|| state::Saved::load(&folder)).transpose()?;
    let plan = match &saved {
        Some(saved) => {
            saved.plan.agrees(options)?;
            saved.plan
        }
        None => Plan::new(options)?,
    };
    let corpus = Corpus::load(&options.data, plan.context)?;
    let prompt = match &options.prompt {
        None => corpus.default_prompt(),
        Some(text) if text.is_empty() => corpus.default_prompt(),
        Some(text) => corpus
            .encode(text)
            .map_err(|c| format!("--prompt: the text to learn from has no {c:?}"))?,
    };
    let mut run = Run::new(plan, corpus.vocabulary())?;
    if let Some(saved) = saved {
        saved.restore(&mut run, &corpus)?;
        say!("going on after step {}", run.steps());
    }
    say!("{}", swath::runtime::info());
    say!("data     {corpus}");
    let summary = nn::summary(&run.model);
    say!("model    {} parameters, {} bytes", summary.parameters(), summary.parameter_bytes());

    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    ctrlc::set_handler(move || seen.store(true, Ordering::Relaxed))?;
    let start = Instant::now();
    let first = run.steps();
    let save = |run: &Run| {
        state::save(&folder, run, &corpus)?;
        run.write_curve(&folder)
    };
    if run.train(&corpus, &stop, save)? == End::Interrupted {
        say!("stopped after step {} of {}; to go on:", run.steps(), plan.steps);
        say!("  {}", resume_command(options));
        return Ok(());
    }
    let seconds = start.elapsed().as_secs_f64();
    let tokens = ((run.steps() - first) * plan.batch * plan.context) as f64;
    say!("{} steps in {seconds:.0} s, {:.0} tokens/s", run.steps() - first, tokens / seconds);

    let length = options.sample.unwrap_or(400);
    if length > 0 {
        let mut rng = Rng::seed(plan.seed).stream(SAMPLE_STREAM);
        let temperature = options.temperature.unwrap_or(0.8);
        let tokens =
            run.evaluating(|model| sample::sample(model, prompt, length, temperature, &mut rng))?;
        say!("\n{}\n", corpus.decode(&tokens));
    }
    let counted = FourGram::new(&corpus.training, corpus.vocabulary()).loss(&corpus.held_out);
    let learned = run.loss_of(&corpus.held_out)?;
    say!("held-out loss, nats per character, over all held-out text:");
    say!("  {learned:.3}  this model");
    say!("  {counted:.3}  4-gram counts (Witten-Bell), {:+.3}", counted - learned);
    say!("written to {}: model.safetensors, history.csv, loss.svg", folder.display());
    if options.hash {
        say!("sha256 {}", run.digest()?);
    }
    Ok(())
}

/// The command that goes on with an interrupted run.
fn resume_command(options: &Options) -> String {
    let mut command = String::from("cargo run --release --example train_gpt -- --resume");
    if let Some(out) = &options.out {
        command += &format!(" --out {}", out.display());
    }
    if !options.data.is_empty() {
        command += " --data";
        options.data.iter().for_each(|path| command += &format!(" {}", path.display()));
    }
    for (flag, set) in [("--hash", options.hash)] {
        if set {
            command += &format!(" {flag}");
        }
    }
    command
}

//! Trains a small character-level transformer and samples from it.
//!
//! ```text
//! cargo run --release --example train_gpt                     on this crate's own source
//! cargo run --release --example train_gpt -- --data FILE…     on any text
//! ```
//!
//! The same seed gives the same losses and parameters, bit for bit, on every machine and for any
//! number of threads; `--hash` prints a digest of them.

mod adamw;
mod chart;
mod data;
mod model;
mod options;
mod progress;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use sha2::{Digest, Sha256};
use swath::prelude::*;

use adamw::AdamW;
use data::Corpus;
use model::{Config, Gpt, T};
use options::Options;
use progress::Progress;

/// Held-out batches averaged into one figure.
const HELD_OUT_BATCHES: usize = 8;
/// The held-out loss is measured every so many steps, and at the end.
const HELD_OUT_EVERY: usize = 50;
/// Characters sampled at the end.
const SAMPLE_LENGTH: usize = 400;
/// The stream of random numbers that each use draws from.
const BATCH_STREAM: u64 = 1;
const HELD_OUT_STREAM: u64 = 2;
const SAMPLE_STREAM: u64 = 3;

/// Prints a line. A reader that has gone away is no reason to stop training.
macro_rules! say {
    ($($text:tt)*) => {{
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

/// What training leaves behind besides the model.
struct History {
    losses: Vec<f32>,
    held_out: Vec<(usize, f32)>,
}

fn run(options: &Options) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let config = Config::small();
    let corpus = Corpus::load(&options.data, config.context)?;
    swath::runtime::check()?;
    if let Some(threads) = options.threads {
        swath::runtime::set_threads(threads)?;
    }
    let mut model =
        Gpt::new(config.with_vocabulary(corpus.vocabulary()), &Rng::seed(options.seed))?;
    say!("{}", swath::runtime::info());
    say!("{corpus}; {} parameters", model.parameter_count());

    let history = train(&mut model, &corpus, options)?;

    let sample = sample(&model, &corpus, options.seed)?;
    say!("\n{sample}\n");
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/train_gpt/loss.svg");
    chart::write(&chart, &history.losses, &history.held_out)?;
    say!("loss curve: {}", chart.display());
    if options.hash {
        say!("sha256 {}", digest(&model, &history)?);
    }
    Ok(())
}

fn train(model: &mut Gpt, corpus: &Corpus, options: &Options) -> Result<History> {
    let config = model.config();
    let mut rng = Rng::seed(options.seed).stream(BATCH_STREAM);
    let mut optimizer = AdamW::new(options.steps);
    let mut history = History { losses: Vec::new(), held_out: Vec::new() };
    let mut progress = Progress::new(options.steps, config.batch * config.context);
    for step in 0..options.steps {
        let batch = corpus.training_batch(config.batch, config.context, &mut rng)?;
        let loss = model.loss(&batch.inputs, &batch.targets)?;
        history.losses.push(loss.item::<f32>()?);
        let gradients = loss.backward()?;
        optimizer.step(model.parameters_mut(), &gradients)?;
        if (step + 1) % HELD_OUT_EVERY == 0 || step + 1 == options.steps {
            history.held_out.push((step + 1, held_out_loss(model, corpus, options.seed)?));
        }
        let held_out = history.held_out.last().map(|&(_, loss)| loss);
        progress.step(history.losses[step], held_out);
    }
    progress.finish();
    Ok(history)
}

/// Mean loss of a fixed set of held-out batches, in nats per character.
fn held_out_loss(model: &Gpt, corpus: &Corpus, seed: u64) -> Result<f32> {
    let config = model.config();
    let mut rng = Rng::seed(seed).stream(HELD_OUT_STREAM);
    no_grad(|| {
        let mut total = 0.0;
        for _ in 0..HELD_OUT_BATCHES {
            let batch = corpus.held_out_batch(config.batch, config.context, &mut rng)?;
            total += model.loss(&batch.inputs, &batch.targets)?.item::<f32>()?;
        }
        Ok(total / HELD_OUT_BATCHES as f32)
    })
}

/// Text drawn one character at a time from the model's distribution, sharpened a little.
fn sample(model: &Gpt, corpus: &Corpus, seed: u64) -> Result<String> {
    let mut rng = Rng::seed(seed).stream(SAMPLE_STREAM);
    let mut tokens = corpus.prompt();
    let context = model.config().context;
    no_grad(|| {
        for _ in 0..SAMPLE_LENGTH {
            let window = &tokens[tokens.len().saturating_sub(context)..];
            let input = T::from_slice(window, (1, window.len()))?;
            let last = model.logits(&input)?.slice(s![-1])?;
            let weights = last.mul_scalar(1.0 / 0.8)?.softmax(0)?.to_vec::<f32>()?;
            tokens.push(draw(&weights, rng.uniform::<f32>()));
        }
        Ok(corpus.decode(&tokens))
    })
}

/// The index at which the running sum of `weights` passes `point` of their total.
fn draw(weights: &[f32], point: f32) -> i64 {
    let total: f32 = weights.iter().sum();
    let mut left = point * total;
    for (i, &weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return i as i64;
        }
    }
    weights.len() as i64 - 1
}

fn digest(model: &Gpt, history: &History) -> Result<String> {
    let mut hasher = Sha256::new();
    let held_out = history.held_out.iter().map(|(_, loss)| loss);
    for loss in history.losses.iter().chain(held_out) {
        hasher.update(loss.to_le_bytes());
    }
    for parameter in model.parameters() {
        for value in parameter.to_vec::<f32>()? {
            hasher.update(value.to_le_bytes());
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

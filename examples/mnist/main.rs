//! Trains a small convolutional network to read handwritten digits.
//!
//! ```text
//! cargo run --release --example mnist                      on digits that the program draws
//! cargo run --release --example mnist -- --data FOLDER     on the MNIST files in a folder
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `digits.rs` | drawing digits: strokes, rotated, shifted and noisy |
//! | `idx.rs` | reading the MNIST files |
//! | `model.rs` | the network |
//! | `pictures.rs` | the confusion matrix and sample predictions as PNG |

mod digits;
mod idx;
mod model;
mod pictures;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use swath::Device;
use swath::io::safetensors::TrainingState;
use swath::nn::{self, Module as _, loss};
use swath::optim::{AdamW, AdamWOptions, CosineSchedule, Optimizer as _, Schedule as _};
use swath::prelude::*;

/// A tensor of the CPU backend, where the images are.
pub type Tensor = swath::Tensor<CpuBackend>;

/// Error of a run.
pub type Failure = Box<dyn std::error::Error>;

const HELP: &str = "\
Trains a convolutional network on images of digits of 28 x 28 pixels, and measures it on held-out
images.

usage: mnist [OPTIONS]

  --data FOLDER   the MNIST files train-images-idx3-ubyte, train-labels-idx1-ubyte,
                  t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each as it is or with .gz;
                  by default the program draws 20,000 digits, and 2,000 held-out ones
  --steps N       training steps of 64 images (default 1000)
  --lr RATE       learning rate at the start, which falls along a cosine to 0 (default 0.002)
  --seed N        seed of all random numbers (default 42)
  --device NAME   cpu (default), or a GPU: wgpu or metal, in a build with the feature of that name
  --threads N     threads (default: all cores); results do not depend on it
  --resume        continue the run that Ctrl-C saved in --out
  --out FOLDER    output folder (default target/mnist): model.safetensors, confusion.png,
                  predictions.png
  --help          print this help

Ctrl-C finishes the current step and saves the run. A second Ctrl-C ends the program at once.";

const BATCH: usize = 64;

/// Images that are classified at once.
const EVALUATED: usize = 500;

struct Options {
    data: Option<PathBuf>,
    steps: u64,
    rate: f64,
    seed: u64,
    device: Device,
    threads: Option<usize>,
    resume: bool,
    out: PathBuf,
}

impl Options {
    /// Parses the command line; `None` after printing the help.
    fn parse() -> Result<Option<Self>, Failure> {
        use lexopt::prelude::*;
        let out = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/target/mnist"));
        let mut options = Options {
            data: None,
            steps: 1000,
            rate: 2e-3,
            seed: 42,
            device: Device::Cpu,
            threads: None,
            resume: false,
            out,
        };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("data") => options.data = Some(parser.value()?.into()),
                Long("steps") => options.steps = parser.value()?.parse()?,
                Long("lr") => options.rate = parser.value()?.parse()?,
                Long("seed") => options.seed = parser.value()?.parse()?,
                Long("device") => options.device = parser.value()?.parse()?,
                Long("threads") => options.threads = Some(parser.value()?.parse()?),
                Long("resume") => options.resume = true,
                Long("out") => options.out = parser.value()?.into(),
                Long("help") | Short('h') => {
                    say(HELP);
                    return Ok(None);
                }
                other => return Err(other.unexpected().into()),
            }
        }
        if !(options.rate.is_finite() && options.rate > 0.0) {
            return Err(format!("--lr must be finite and positive, got {}", options.rate).into());
        }
        if options.steps == 0 {
            return Err("--steps must be at least 1, got 0".into());
        }
        Ok(Some(options))
    }
}

/// Images `[n, 1, 28, 28]` from 0 to 1, and their digits `[n]`.
pub struct Images {
    /// `[n, 1, 28, 28]`.
    pub pixels: Tensor,
    /// `[n]`, of dtype `I64`.
    pub digits: Tensor,
}

impl Images {
    fn len(&self) -> usize {
        self.digits.numel()
    }

    /// The images of these indices.
    fn select(&self, indices: &[i64]) -> Result<(Tensor, Tensor)> {
        let indices = Tensor::from_slice(indices, indices.len())?;
        Ok((self.pixels.index_select(0, &indices)?, self.digits.index_select(0, &indices)?))
    }
}

/// Prints a line. Errors are ignored, so that training goes on if standard output is closed.
fn say(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn main() -> ExitCode {
    match Options::parse().and_then(|options| options.map_or(Ok(()), |options| start(&options))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mnist: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs on the device of the options.
fn start(options: &Options) -> Result<(), Failure> {
    match options.device {
        Device::Cpu => run::<CpuBackend>(options),
        #[cfg(feature = "wgpu")]
        Device::Wgpu => run::<swath::WgpuBackend>(options),
        #[cfg(all(feature = "metal", target_vendor = "apple"))]
        Device::Metal => run::<swath::MetalBackend>(options),
        other => {
            other.check()?;
            Err(format!("--device: expected cpu, wgpu or metal, got {other}").into())
        }
    }
}

fn run<B: Backend>(options: &Options) -> Result<(), Failure> {
    swath::runtime::check()?;
    if let Some(threads) = options.threads {
        swath::runtime::set_threads(threads)?;
    }
    std::fs::create_dir_all(&options.out)
        .map_err(|error| format!("cannot create {}: {error}", options.out.display()))?;
    let rng = Rng::seed(options.seed);
    let [training, held_out] = match &options.data {
        Some(folder) => idx::load(folder)?,
        None => {
            [digits::draw(20_000, &mut rng.stream(1))?, digits::draw(2_000, &mut rng.stream(2))?]
        }
    };
    let mut model = model::network::<B>(&mut rng.stream(3))?;
    let mut optimizer =
        AdamW::new(AdamWOptions { learning_rate: options.rate, ..Default::default() })?;
    let mut batches = rng.stream(4);
    let state_file = options.out.join("state.safetensors");
    let mut step = 0;
    if options.resume {
        let mut state = TrainingState::load(&state_file)?;
        if state.counter("seed")? != options.seed
            || state.counter("images")? != training.len() as u64
        {
            return Err("--resume: the saved run has another --seed or other --data".into());
        }
        state.restore(&mut model, &mut optimizer)?;
        batches = state.rng("batches")?;
        step = state.counter("step")?;
    }
    say(swath::runtime::info());
    say(format_args!("data   {} images, {} held out", training.len(), held_out.len()));
    say(format_args!("model  {} parameters", nn::summary(&model).parameters()));

    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })?;
    let schedule = CosineSchedule { peak: options.rate, floor: 0.0, steps: options.steps };
    let (start, first) = (Instant::now(), step);
    while step < options.steps {
        let indices: Vec<i64> =
            (0..BATCH).map(|_| batches.below(training.len() as u64) as i64).collect();
        let (x, digits) = training.select(&indices)?;
        let (x, digits) = (x.to_backend()?, digits.to_backend()?);
        let loss = loss::cross_entropy(&model.forward(&x)?, &digits)?;
        let gradients = loss.backward()?;
        optimizer.set_learning_rate(schedule.rate(step));
        optimizer.step(&mut model, &gradients)?;
        step += 1;
        if step % 100 == 0 || step == options.steps {
            let seconds = start.elapsed().as_secs_f64();
            let left = seconds / (step - first) as f64 * (options.steps - step) as f64;
            let loss = loss.item::<f32>()?;
            say(format_args!("step {step}/{}: loss {loss:.4}, {left:.0} s left", options.steps));
        }
        if stop.load(Ordering::Relaxed) && step < options.steps {
            TrainingState::new()
                .with_model(&model)
                .with_optimizer(&optimizer)?
                .with_rng("batches", &batches)?
                .with_counter("step", step)?
                .with_counter("seed", options.seed)?
                .with_counter("images", training.len() as u64)?
                .save(&state_file)?;
            say(format_args!(
                "stopped after step {step}; --resume with the same options continues"
            ));
            return Ok(());
        }
    }
    swath::io::safetensors::save_module(options.out.join("model.safetensors"), &model)?;
    say(format_args!("{} steps in {:.1} s", step - first, start.elapsed().as_secs_f64()));

    model.set_training(false);
    let predicted = classify(&model, &held_out)?;
    let digits = held_out.digits.to_vec::<i64>()?;
    let mut confusion = [[0usize; 10]; 10];
    for (&digit, &predicted) in digits.iter().zip(&predicted) {
        confusion[digit as usize][predicted as usize] += 1;
    }
    say("\nconfusion: a row per digit, a column per prediction");
    for (digit, row) in confusion.iter().enumerate() {
        let counts: String = row.iter().map(|count| format!("{count:6}")).collect();
        say(format_args!("{digit:3} {counts}"));
    }
    let right: usize = (0..10).map(|digit| confusion[digit][digit]).sum();
    let percent = 100.0 * right as f64 / held_out.len() as f64;
    say(format_args!("\n{percent:.2} % of {} held-out images are read correctly", held_out.len()));
    pictures::confusion(&confusion, &options.out.join("confusion.png"))?;
    pictures::predictions(&held_out, &predicted, &options.out.join("predictions.png"))?;
    say(format_args!(
        "written to {}: model.safetensors, confusion.png, predictions.png",
        options.out.display()
    ));
    Ok(())
}

/// The digits that the model sees in images.
fn classify<B: Backend>(model: &dyn nn::Module<B>, images: &Images) -> Result<Vec<i64>> {
    let mut predicted = Vec::with_capacity(images.len());
    for first in (0..images.len()).step_by(EVALUATED) {
        let x = images.pixels.narrow(0, first, EVALUATED.min(images.len() - first))?;
        let x = x.to_backend()?;
        predicted.extend(no_grad(|| model.forward(&x))?.argmax(1, false)?.to_vec::<i64>()?);
    }
    Ok(predicted)
}

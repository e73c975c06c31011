//! The command line.

use std::path::PathBuf;

use lexopt::prelude::*;

use crate::Failure;

const HELP: &str = "\
Trains a character-level transformer on text, prints a sample of what it learned, and says how
much better it predicts held-out text than counting sequences of four characters does.

usage: train_gpt [OPTIONS]

what to learn from
  --data PATH…       files, or folders of .rs, .md and .txt files; by default this crate's own source.
                     Every tenth file by sorted path is held out (of fewer than ten files, the
                     last tenth of their text).

the model
  --width N          features of a position (default 128)
  --layers N         transformer blocks (default 4)
  --heads N          attention heads, a divisor of the width (default 4)
  --context N        characters that a prediction sees (default 128)
  --dropout P        share of activations zeroed in training (default 0)

training
  --steps N          training steps (default 2000)
  --batch N          sequences a step (default 16)
  --lr RATE          highest learning rate: reached by a warm-up over the first tenth of the
                     steps, at most 100, then lowered along a cosine to a tenth (default 0.003)
  --seed N           seed of all random numbers (default 42)
  --threads N        threads (default: all cores); results do not depend on it
  --resume           go on with the run saved in --out: the rest of the curve is the same, bit for
                     bit, as without the interruption. Its sizes, data and seed cannot be changed;
                     --steps can: the learning rate keeps its course, and its last value after it.
                     A run that is done is only evaluated and sampled from.

what comes out
  --out DIR          where files go (default target/train_gpt): history.csv, loss.svg,
                     model.safetensors, and state.safetensors, which --resume reads. All are
                     replaced whole: an interrupted write leaves the last one as it was.
  --sample N         characters to sample at the end (default 400)
  --prompt TEXT      what the sample begins with (default: a line break)
  --temperature X    sharpness of sampling: below 1 likely characters get likelier (default 0.8)
  --hash             print a SHA-256 of all losses and parameters
  --help             print this

Ctrl-C ends the run after the step that it interrupts, saves it, and prints how to go on; a second
one ends it at once.";

/// What was asked for; `None` where nothing was said.
#[derive(Debug, Default)]
pub struct Options {
    pub data: Vec<PathBuf>,
    pub width: Option<usize>,
    pub layers: Option<usize>,
    pub heads: Option<usize>,
    pub context: Option<usize>,
    pub dropout: Option<f64>,
    pub steps: Option<usize>,
    pub batch: Option<usize>,
    pub rate: Option<f64>,
    pub seed: Option<u64>,
    pub threads: Option<usize>,
    pub resume: bool,
    pub out: Option<PathBuf>,
    pub sample: Option<usize>,
    pub prompt: Option<String>,
    pub temperature: Option<f64>,
    pub hash: bool,
}

impl Options {
    /// `None` if help was asked for, and printed.
    pub fn from_command_line() -> Result<Option<Self>, Failure> {
        let mut options = Options::default();
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("data") => options.data.extend(parser.values()?.map(PathBuf::from)),
                Long("width") => options.width = Some(parser.value()?.parse()?),
                Long("layers") => options.layers = Some(parser.value()?.parse()?),
                Long("heads") => options.heads = Some(parser.value()?.parse()?),
                Long("context") => options.context = Some(parser.value()?.parse()?),
                Long("dropout") => options.dropout = Some(parser.value()?.parse()?),
                Long("steps") => options.steps = Some(parser.value()?.parse()?),
                Long("batch") => options.batch = Some(parser.value()?.parse()?),
                Long("lr") => options.rate = Some(parser.value()?.parse()?),
                Long("seed") => options.seed = Some(parser.value()?.parse()?),
                Long("threads") => options.threads = Some(parser.value()?.parse()?),
                Long("resume") => options.resume = true,
                Long("out") => options.out = Some(parser.value()?.into()),
                Long("sample") => options.sample = Some(parser.value()?.parse()?),
                Long("prompt") => options.prompt = Some(parser.value()?.string()?),
                Long("temperature") => options.temperature = Some(parser.value()?.parse()?),
                Long("hash") => options.hash = true,
                Long("help") | Short('h') => {
                    crate::say!("{HELP}");
                    return Ok(None);
                }
                other => return Err(other.unexpected().into()),
            }
        }
        options.check()?;
        Ok(Some(options))
    }

    fn check(&self) -> Result<(), Failure> {
        let counts = [
            ("width", self.width),
            ("layers", self.layers),
            ("heads", self.heads),
            ("context", self.context),
            ("steps", self.steps),
            ("batch", self.batch),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, value)| *value == Some(0)) {
            return Err(format!("--{name} must be at least 1").into());
        }
        if self.steps.is_some_and(|steps| u32::try_from(steps).is_err()) {
            return Err("--steps must be below 2^32".into());
        }
        if self.temperature.is_some_and(|t| !(t.is_finite() && t >= 0.001)) {
            return Err("--temperature must be at least 0.001".into());
        }
        if self.rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
            return Err("--lr must be above 0".into());
        }
        if self.dropout.is_some_and(|p| !(0.0..1.0).contains(&p)) {
            return Err("--dropout must be in 0..1".into());
        }
        Ok(())
    }

    /// Where files go.
    pub fn folder(&self) -> PathBuf {
        let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/target/train_gpt"));
        self.out.clone().unwrap_or_else(default)
    }
}

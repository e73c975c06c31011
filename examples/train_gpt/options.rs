//! The command line.

use std::path::PathBuf;

use lexopt::prelude::*;

use swath::Device;

use crate::Failure;

const HELP: &str = "\
Trains a character-level transformer on text, prints text sampled from it, and compares its loss
on held-out text with that of a 4-gram model.

usage: train_gpt [OPTIONS]

data
  --data PATH…       files, or folders of .rs, .md and .txt files; by default this crate's own source.
                     Every tenth file by sorted path is held out. If there are fewer than ten
                     files, the last tenth of their text is held out.

model
  --width N          features per position (default 128)
  --layers N         transformer blocks (default 4)
  --heads N          attention heads; must divide the width (default 4)
  --context N        context length in characters (default 128)
  --dropout P        dropout probability (default 0)

training
  --steps N          training steps (default 2000)
  --batch N          sequences per step (default 16)
  --micro-batches N  parts of a batch whose gradients are added in a fixed order (default 1). Ranks share
                     them out, so that there may be as many ranks; the losses and parameters depend
                     on N, not on the number of ranks.
  --mpi              train on the processes that mpirun started, in a build with the feature mpi:
                     mpirun -n 2 … train_gpt --mpi --micro-batches 8
  --local N          train on N ranks that are threads of this process
  --shard            share out the optimizer's state among the ranks: 1/R of its memory on each
  --lr RATE          peak learning rate: reached by a linear warm-up over the first tenth of the
                     steps, at most 100, then decayed along a cosine to a tenth (default 0.003)
  --seed N           seed of all random numbers (default 42)
  --device NAME      cpu (default), or a GPU: wgpu or metal, in a build with the feature of that name. The losses
                     of a GPU are close to the CPU's, not the same bits.
  --threads N        threads (default: all cores); results do not depend on it
  --resume           continue the run saved in --out, with the same losses and parameters, bit for
                     bit, as without the interruption. Its sizes, data and seed cannot be changed.
                     --steps can: the schedule of the learning rate stays as it was, and its last
                     value is used after its end. A finished run is only evaluated and sampled from.

output
  --out DIR          output folder (default target/train_gpt), for history.csv, loss.svg,
                     model.safetensors, and state.safetensors, which --resume reads. Files are
                     replaced atomically: an interrupted write leaves the old file intact.
  --sample N         characters to sample at the end (default 400)
  --prompt TEXT      start of the sampled text (default: a line break)
  --temperature X    sampling temperature; below 1 favours likely characters (default 0.8)
  --hash             print a SHA-256 of all losses and parameters
  --help             print this help

Ctrl-C finishes the current step, saves the run and prints the command that continues it. A second
Ctrl-C ends the program at once.";

/// Options of the command line; `None` for those not given.
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
    pub micro_batches: Option<usize>,
    pub mpi: bool,
    pub local: Option<usize>,
    pub shard: bool,
    pub rate: Option<f64>,
    pub seed: Option<u64>,
    pub device: Option<Device>,
    pub threads: Option<usize>,
    pub resume: bool,
    pub out: Option<PathBuf>,
    pub sample: Option<usize>,
    pub prompt: Option<String>,
    pub temperature: Option<f64>,
    pub hash: bool,
}

impl Options {
    /// Parses the command line. Returns `None` if `--help` was given, after printing the help.
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
                Long("micro-batches") => options.micro_batches = Some(parser.value()?.parse()?),
                Long("mpi") => options.mpi = true,
                Long("local") => options.local = Some(parser.value()?.parse()?),
                Long("shard") => options.shard = true,
                Long("lr") => options.rate = Some(parser.value()?.parse()?),
                Long("seed") => options.seed = Some(parser.value()?.parse()?),
                Long("device") => options.device = Some(parser.value()?.parse()?),
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

    /// Returns an error that names the first option with an invalid value.
    fn check(&self) -> Result<(), Failure> {
        let counts = [
            ("width", self.width),
            ("layers", self.layers),
            ("heads", self.heads),
            ("context", self.context),
            ("steps", self.steps),
            ("batch", self.batch),
            ("micro-batches", self.micro_batches),
            ("local", self.local),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, value)| *value == Some(0)) {
            return Err(format!("--{name} must be at least 1, got 0").into());
        }
        if self.mpi && self.local.is_some() {
            return Err("--mpi and --local are two ways to choose the ranks: expected one".into());
        }
        if let Some(steps) = self.steps.filter(|&steps| u32::try_from(steps).is_err()) {
            return Err(format!("--steps must be below 2^32, got {steps}").into());
        }
        if let Some(t) = self.temperature.filter(|t| !(t.is_finite() && *t >= 0.001)) {
            return Err(format!("--temperature must be finite and at least 0.001, got {t}").into());
        }
        if let Some(rate) = self.rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            return Err(format!("--lr must be finite and positive, got {rate}").into());
        }
        if let Some(p) = self.dropout.filter(|p| !(0.0..1.0).contains(p)) {
            return Err(format!("--dropout must be at least 0 and less than 1, got {p}").into());
        }
        Ok(())
    }

    /// Returns the output folder.
    pub fn folder(&self) -> PathBuf {
        let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/target/train_gpt"));
        self.out.clone().unwrap_or_else(default)
    }
}

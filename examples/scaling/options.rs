//! The command line.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use lexopt::prelude::*;

use crate::Failure;
use crate::model::Model;

const HELP: &str = "\
Predicts the efficiency of data-parallel training on 1 to 1024 ranks from the measured time of a
step on one rank, by a model of the messages that the ranks exchange.

usage: scaling --step SECONDS (--bytes N | --parameters N) [OPTIONS]

work
  --step SECONDS          measured time of a whole step on one rank
  --bytes N               size of the gradients
  --parameters N          the same as four times as many --bytes
  --micro-batches N       micro-batches of a step (default 8), at least as many as ranks
  --weak                  weak scaling: --micro-batches and --step are those of each rank, and the
                          batch grows with the ranks. Without it the batch stays as it is.

machines
  --bandwidth N           bytes/s that a host can send while it receives as many (default 1.25e9,
                          Ethernet of 10 Gbit/s); shared by its ranks
  --latency SECONDS       time of an empty message between hosts (default 20e-6)
  --ranks-per-host N      ranks that share a host (default 1)
  --local-bandwidth N     bytes/s that a rank can send within its host while it receives as many
                          (default 5e9)
  --local-latency SECONDS time of an empty message within a host (default 2e-6)
  --memory N              bytes/s that a rank reads and writes when it adds gradients (default 1e10)

output
  --out PATH              the chart (default target/scaling.svg): efficiency over ranks, for
                          --bandwidth, a tenth of it, and ten times it
  --help                  print this help

Numbers may be written like 1.25e9, except those of ranks and micro-batches. The column sum ms
contains the agreement of the ranks, the messages, and the additions of what was received.";

/// Largest number of micro-batches: products with a number of ranks stay exact.
const MOST_MICRO_BATCHES: u64 = 1 << 32;

/// Options of the command line; `None` for those not given.
#[derive(Debug, Default)]
pub struct Options {
    pub step: Option<f64>,
    pub bytes: Option<f64>,
    pub parameters: Option<f64>,
    pub micro_batches: Option<u64>,
    pub weak: bool,
    pub bandwidth: Option<f64>,
    pub latency: Option<f64>,
    pub ranks_per_host: Option<u64>,
    pub local_bandwidth: Option<f64>,
    pub local_latency: Option<f64>,
    pub memory: Option<f64>,
    pub out: Option<PathBuf>,
}

impl Options {
    /// Parses the command line. Returns `None` if `--help` was given, after printing the help.
    pub fn from_command_line() -> Result<Option<Self>, Failure> {
        Self::parse(lexopt::Parser::from_env())
    }

    fn parse(mut parser: lexopt::Parser) -> Result<Option<Self>, Failure> {
        let mut options = Options::default();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("step") => options.step = Some(value(&mut parser, "step")?),
                Long("bytes") => options.bytes = Some(value(&mut parser, "bytes")?),
                Long("parameters") => options.parameters = Some(value(&mut parser, "parameters")?),
                Long("micro-batches") => {
                    options.micro_batches = Some(value(&mut parser, "micro-batches")?);
                }
                Long("weak") => options.weak = true,
                Long("bandwidth") => options.bandwidth = Some(value(&mut parser, "bandwidth")?),
                Long("latency") => options.latency = Some(value(&mut parser, "latency")?),
                Long("ranks-per-host") => {
                    options.ranks_per_host = Some(value(&mut parser, "ranks-per-host")?);
                }
                Long("local-bandwidth") => {
                    options.local_bandwidth = Some(value(&mut parser, "local-bandwidth")?);
                }
                Long("local-latency") => {
                    options.local_latency = Some(value(&mut parser, "local-latency")?);
                }
                Long("memory") => options.memory = Some(value(&mut parser, "memory")?),
                Long("out") => options.out = Some(parser.value()?.into()),
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
        let positive = [
            ("step", self.step),
            ("bytes", self.bytes),
            ("parameters", self.parameters),
            ("bandwidth", self.bandwidth),
            ("local-bandwidth", self.local_bandwidth),
            ("memory", self.memory),
        ];
        for (name, value) in positive {
            if let Some(value) = value.filter(|value| !(value.is_finite() && *value > 0.0)) {
                return Err(format!("--{name} must be finite and positive, got {value}").into());
            }
        }
        for (name, value) in [("latency", self.latency), ("local-latency", self.local_latency)] {
            if let Some(value) = value.filter(|value| !(value.is_finite() && *value >= 0.0)) {
                return Err(format!("--{name} must be finite and at least 0, got {value}").into());
            }
        }
        let counts = [
            ("micro-batches", self.micro_batches, MOST_MICRO_BATCHES),
            ("ranks-per-host", self.ranks_per_host, u32::MAX.into()),
        ];
        for (name, value, most) in counts {
            if let Some(value) = value.filter(|value| !(1..=most).contains(value)) {
                return Err(format!("--{name} must be from 1 to {most}, got {value}").into());
            }
        }
        Ok(())
    }

    /// Returns the model that the options describe.
    pub fn model(&self) -> Result<Model, Failure> {
        let step = self.step.ok_or("--step is missing: the seconds of a step on one rank")?;
        let bytes = match (self.bytes, self.parameters) {
            (Some(bytes), None) => bytes,
            (None, Some(parameters)) => 4.0 * parameters,
            (None, None) => return Err("--bytes or --parameters is missing".into()),
            (Some(_), Some(_)) => {
                return Err("--bytes and --parameters exclude each other".into());
            }
        };
        let micro_batches = self.micro_batches.unwrap_or(8);
        Ok(Model {
            seconds: step / micro_batches as f64,
            micro_batches,
            weak: self.weak,
            bytes,
            bandwidth: self.bandwidth.unwrap_or(1.25e9),
            latency: self.latency.unwrap_or(20e-6),
            local_bandwidth: self.local_bandwidth.unwrap_or(5e9),
            local_latency: self.local_latency.unwrap_or(2e-6),
            memory: self.memory.unwrap_or(1e10),
            ranks_per_host: self.ranks_per_host.unwrap_or(1),
        })
    }

    /// Returns the path of the chart.
    pub fn out(&self) -> PathBuf {
        let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/target/scaling.svg"));
        self.out.clone().unwrap_or_else(default)
    }
}

/// Parses the value of an option. An error names the option.
fn value<T: FromStr<Err: Display>>(parser: &mut lexopt::Parser, name: &str) -> Result<T, Failure> {
    let text = parser.value()?.string()?;
    text.parse().map_err(|error| format!("--{name}: cannot read {text:?}: {error}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(words: &str) -> String {
        let parser = lexopt::Parser::from_args(words.split(' '));
        let options = Options::parse(parser).and_then(|options| options.unwrap().model());
        options.unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_option() {
        let cases = [
            ("--step x --bytes 1", "--step: cannot read \"x\": invalid float literal"),
            ("--step 0", "--step must be finite and positive, got 0"),
            ("--bytes 1", "--step is missing: the seconds of a step on one rank"),
            ("--step 1", "--bytes or --parameters is missing"),
            ("--step 1 --bytes 1 --parameters 1", "--bytes and --parameters exclude each other"),
            ("--bandwidth inf", "--bandwidth must be finite and positive, got inf"),
            ("--latency -1", "--latency must be finite and at least 0, got -1"),
            ("--micro-batches 0", "--micro-batches must be from 1 to 4294967296, got 0"),
        ];
        for (words, expected) in cases {
            assert_eq!(message(words), expected, "{words}");
        }
    }
}

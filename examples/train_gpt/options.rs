//! The command line.

use std::path::PathBuf;

use lexopt::prelude::*;

const HELP: &str = "\
Trains a character-level transformer on text and prints a sample of what it learned.

usage: train_gpt [--data FILE…] [--steps N] [--seed N] [--threads N] [--hash]

  --data FILE…   text to learn from; by default this crate's own .rs and .md files.
                 Every tenth file by sorted path is held out (of fewer than ten files, the
                 last tenth of their text).
  --steps N      training steps (default 1000)
  --seed N       seed of all random numbers (default 42)
  --threads N    threads (default: all cores); the result does not depend on it
  --hash         print a SHA-256 of all losses and parameters
  --help         print this";

/// What was asked for.
#[derive(Debug)]
pub struct Options {
    /// Files to learn from; none means the crate's own source.
    pub data: Vec<PathBuf>,
    pub steps: usize,
    pub seed: u64,
    pub threads: Option<usize>,
    pub hash: bool,
}

impl Options {
    /// `None` if help was asked for, and printed.
    pub fn from_command_line() -> Result<Option<Self>, Box<dyn std::error::Error>> {
        let mut options =
            Options { data: Vec::new(), steps: 1000, seed: 42, threads: None, hash: false };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("data") => options.data.extend(parser.values()?.map(PathBuf::from)),
                Long("steps") => options.steps = parser.value()?.parse()?,
                Long("seed") => options.seed = parser.value()?.parse()?,
                Long("threads") => options.threads = Some(parser.value()?.parse()?),
                Long("hash") => options.hash = true,
                Long("help") | Short('h') => {
                    println!("{HELP}");
                    return Ok(None);
                }
                other => return Err(other.unexpected().into()),
            }
        }
        if options.steps == 0 {
            return Err("--steps must be at least 1".into());
        }
        Ok(Some(options))
    }
}

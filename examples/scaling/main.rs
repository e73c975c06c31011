//! Predicts from the measured time of a step on one rank how well data-parallel training scales. Nothing is sent.
//!
//! ```text
//! cargo run --release --example scaling -- --step 0.056 --bytes 3.3e6
//! ```
//!
//! A step has G micro-batches, or G a rank with weak scaling, and takes T seconds on one rank. The gradients have N
//! bytes. A host sends B bytes per second while it receives as many; a message takes L seconds beside its bytes.
//! On R ranks, one a host:
//!
//! ```text
//! compute   T / R                      with weak scaling T
//! agree     2 L + 2 (R − 1) µs         rank 0 receives a message from each other rank and answers it
//! exchange  2 (R − 1) (N / R / B + L)  the reduce-scatter and the all-gather: a slice to each other rank
//! add       (R − 1) 3 N / R / MEMORY   each rank adds R slices: an addition reads two and writes one
//! ```
//!
//! Nothing overlaps, which is pessimistic. G and R are powers of two: each rank then sends one sum of gradients, and
//! others could need several.

use std::process::ExitCode;

use lexopt::prelude::*;

/// Error of a run.
type Failure = Box<dyn std::error::Error>;

const HELP: &str = "\
Predicts the time of a training step on 1 to 1024 ranks from that on one rank.

usage: scaling --step SECONDS --bytes N [OPTIONS]

  --step SECONDS       measured time of a step on one rank
  --bytes N            size of the gradients: four times the number of parameters in f32
  --micro-batches N    micro-batches of a step, a power of two (default 8)
  --weak               each rank has as many micro-batches, and the batch grows with the ranks
  --bandwidth N        bytes per second that a host sends while it receives as many (default 1.25e9, of
                       10 Gbit Ethernet); for several ranks a host, divided by their number
  --latency SECONDS    time of an empty message (default 20e-6)";

const MOST_RANKS: u64 = 1024;

/// Bytes per second that a rank reads and writes when it adds gradients.
const MEMORY: f64 = 1e10;

/// Seconds in which rank 0 takes or sends one message of the agreement, beside the latency.
const AGREEMENT_MESSAGE: f64 = 1e-6;

struct Model {
    step: f64,
    bytes: f64,
    micro_batches: u64,
    weak: bool,
    bandwidth: f64,
    latency: f64,
}

impl Model {
    /// Returns the seconds of the agreement and of the sum over ranks.
    fn sum_seconds(&self, ranks: u64) -> f64 {
        if ranks == 1 {
            return 0.0;
        }
        let (others, slice) = ((ranks - 1) as f64, self.bytes / ranks as f64);
        let agreement = 2.0 * self.latency + 2.0 * others * AGREEMENT_MESSAGE;
        let exchange = 2.0 * others * (slice / self.bandwidth + self.latency);
        agreement + exchange + others * 3.0 * slice / MEMORY
    }

    /// Returns the row of the table for a number of ranks.
    fn row(&self, ranks: u64) -> String {
        let shares = if self.weak { 1 } else { ranks };
        let step = self.step / shares as f64 + self.sum_seconds(ranks);
        let efficiency = self.step / shares as f64 / step;
        let (speed_up, micro_batches) = (efficiency * ranks as f64, self.micro_batches / shares);
        let (step, percent) = (1e3 * step, 1e2 * efficiency);
        format!("| {ranks} | {micro_batches} | {step:.1} ms | {speed_up:.2} | {percent:.0} % |")
    }

    /// Returns the rows for all powers of two that have a micro-batch for each rank.
    fn rows(&self) -> impl Iterator<Item = String> {
        let most = if self.weak { MOST_RANKS } else { MOST_RANKS.min(self.micro_batches) };
        (0..=most.ilog2()).map(|power| self.row(1 << power))
    }

    /// Returns the seconds of a step on one rank above which two ranks are faster.
    fn break_even(&self) -> f64 {
        // Two ranks save half of the step; with weak scaling, the second of two steps.
        self.sum_seconds(2) * if self.weak { 1.0 } else { 2.0 }
    }
}

fn positive(parser: &mut lexopt::Parser) -> Result<f64, Failure> {
    match parser.value()?.parse()? {
        value if value > 0.0 && value < f64::INFINITY => Ok(value),
        value => Err(format!("expected a positive number, got {value}").into()),
    }
}

fn run() -> Result<(), Failure> {
    let (mut step, mut bytes) = (None, None);
    let (mut micro_batches, mut weak, mut bandwidth, mut latency) = (8, false, 1.25e9, 20e-6);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("step") => step = Some(positive(&mut parser)?),
            Long("bytes") => bytes = Some(positive(&mut parser)?),
            Long("micro-batches") => micro_batches = parser.value()?.parse()?,
            Long("weak") => weak = true,
            Long("bandwidth") => bandwidth = positive(&mut parser)?,
            Long("latency") => latency = positive(&mut parser)?,
            Long("help") | Short('h') => {
                println!("{HELP}");
                return Ok(());
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let step = step.ok_or("--step is missing: the seconds of a step on one rank")?;
    let bytes = bytes.ok_or("--bytes is missing: the size of the gradients")?;
    if !u64::is_power_of_two(micro_batches) {
        return Err(format!("--micro-batches must be a power of two, got {micro_batches}").into());
    }
    let model = Model { step, bytes, micro_batches, weak, bandwidth, latency };
    println!("| ranks | micro-batches a rank | step | speed-up | efficiency |");
    println!("|---|---|---|---|---|");
    model.rows().for_each(|row| println!("{row}"));
    println!("\nTwo ranks pay off for steps longer than {:.1} ms.", 1e3 * model.break_even());
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scaling: {error}");
            ExitCode::FAILURE
        }
    }
}

#[test]
fn the_page_has_the_rows_of_its_command() {
    let page = include_str!("../../docs/BEYOND_ONE_MACHINE.md");
    assert!(page.contains("--example scaling -- --step 0.056 --bytes 3.3e6\n"));
    let (step, bytes, micro_batches, weak) = (0.056, 3.3e6, 8, false);
    let model = Model { step, bytes, micro_batches, weak, bandwidth: 1.25e9, latency: 20e-6 };
    assert!(model.rows().all(|row| page.contains(&row)));
    assert!(page.contains(&format!("longer than {:.1} ms", 1e3 * model.break_even())));
}

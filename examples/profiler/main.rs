//! Trains the transformer of the example `train_gpt` for some steps on a backend of its own, which counts the
//! operations, bytes and time of every op, and prints the table.
//!
//! ```text
//! cargo run --release --example profiler [STEPS]
//! ```

mod backend;
#[allow(dead_code, reason = "the alias for the CPU backend is not used here")]
#[path = "../train_gpt/model.rs"]
mod model;

use std::time::{Duration, Instant};

use backend::{Profiled, Tally};
use model::{Gpt, Sizes};
use swath::optim::{AdamW, AdamWOptions, Optimizer};
use swath::prelude::*;

const BATCH: usize = 16;

const LEGEND: &str = "\
%        share of the step's time
MFLOP    additions, multiplications, comparisons and function values, in millions
MB       operands and results, each counted as read or written once
outside  recording, views, and reading the loss";

fn main() -> std::process::ExitCode {
    let steps = std::env::args().nth(1).map_or(Ok(20), |text| text.parse::<u32>());
    let result = match steps {
        Ok(steps) if steps > 0 => run(steps).map_err(|error| error.to_string()),
        _ => Err("usage: profiler [STEPS], a number of at least 1".to_owned()),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("profiler: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run(steps: u32) -> Result<()> {
    let sizes =
        Sizes { vocabulary: 128, width: 128, layers: 4, heads: 4, context: 128, dropout: 0.1 };
    let mut rng = Rng::seed(1);
    let mut model = Gpt::<Profiled>::new(sizes, &mut rng)?;
    let mut optimizer = AdamW::new(AdamWOptions::default())?;
    let mut tokens = || -> Result<Tensor<Profiled>> {
        let values = (0..BATCH * sizes.context).map(|_| rng.below(sizes.vocabulary as u64) as i64);
        Tensor::from_vec(values.collect::<Vec<_>>(), (BATCH, sizes.context))
    };
    let (inputs, targets) = (tokens()?, tokens()?);
    let mut step = |model: &mut Gpt<Profiled>| -> Result<f32> {
        let loss = model.loss(&inputs, &targets)?;
        let grads = loss.backward()?;
        optimizer.step(model, &grads)?;
        loss.item()
    };
    step(&mut model)?;
    backend::take();
    let start = Instant::now();
    let mut loss = 0.0;
    for _ in 0..steps {
        loss = step(&mut model)?;
    }
    let wall = start.elapsed();
    let mut parameters = 0;
    nn::for_each_tensor(&model, |_, tensor, kind| {
        parameters += if kind == nn::Kind::Parameter { tensor.numel() } else { 0 };
    });
    println!(
        "A step of training, {parameters} parameters and {BATCH} × {} tokens: {:.1} ms, mean of {steps} steps\n",
        sizes.context,
        1e3 * wall.as_secs_f64() / f64::from(steps)
    );
    report(steps, wall);
    println!("\n{LEGEND}\nThe loss after the last step is {loss:.4}.");
    Ok(())
}

fn report(steps: u32, wall: Duration) {
    let mut rows: Vec<(&str, Tally)> = backend::take().into_iter().collect();
    rows.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.time));
    println!(
        "{:<34} {:>6} {:>9} {:>6} {:>9} {:>8} {:>9} {:>7}",
        "op", "calls", "ms", "%", "MFLOP", "MB", "GFLOP/s", "GB/s"
    );
    let mut total = Tally::default();
    for (op, tally) in &rows {
        line(op, tally, steps, wall);
        total.calls += tally.calls;
        total.operations += tally.operations;
        total.bytes += tally.bytes;
        total.time += tally.time;
    }
    line("all ops", &total, steps, wall);
    let outside = wall.saturating_sub(total.time).as_secs_f64();
    println!(
        "{:<34} {:>6} {:>9.3} {:>6.1}",
        "outside ops",
        "",
        1e3 * outside / f64::from(steps),
        100.0 * outside / wall.as_secs_f64()
    );
}

fn line(op: &str, tally: &Tally, steps: u32, wall: Duration) {
    let (seconds, steps) = (tally.time.as_secs_f64(), f64::from(steps));
    let (operations, bytes) = (tally.operations as f64, tally.bytes as f64);
    println!(
        "{op:<34} {:>6.0} {:>9.3} {:>6.1} {:>9.2} {:>8.2} {:>9.1} {:>7.1}",
        tally.calls as f64 / steps,
        1e3 * seconds / steps,
        100.0 * seconds / wall.as_secs_f64(),
        1e-6 * operations / steps,
        1e-6 * bytes / steps,
        1e-9 * operations / seconds,
        1e-9 * bytes / seconds
    );
}

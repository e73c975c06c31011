//! Criterion's groups of cases, and the share of the machine's own speed that each case reaches.
//!
//! ```text
//! for each case: warm-up, the machine's speed, criterion's samples, the machine's speed
//!                share = time of the least work at the mean of the two speeds / median of the samples
//! ```
//!
//! The two speeds are measured within a second of the samples, because a machine's clock and bandwidth
//! move. The summary at the end marks the shares of cases between whose two speeds they moved.

mod limit;
mod table;
pub mod values;

use std::env;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use criterion::measurement::WallTime;
use criterion::{
    AxisScale, BenchmarkGroup, BenchmarkId, Criterion, PlotConfiguration, SamplingMode,
};
use serde_json::Value;
use swath::prelude::*;

pub use limit::Limit;

/// Largest relative change of the machine's speed during a case whose share is not marked as uncertain.
const STEADY: f64 = 0.05;

/// All benchmarks of one program, with the cases timed so far.
pub struct Suite {
    criterion: Criterion,
    rows: Vec<Row>,
}

/// A timed case.
struct Row {
    name: String,
    limit: Limit,
    /// Median of criterion's samples.
    seconds: f64,
    /// The machine's speed before and after, in bytes or operations a second.
    rates: [f64; 2],
}

impl Suite {
    /// Reads criterion's command line.
    pub fn from_args() -> Suite {
        // Few samples and resamples: there are more than 500 cases, a second each.
        let criterion = Criterion::default()
            .warm_up_time(Duration::from_millis(200))
            .measurement_time(Duration::from_millis(400))
            .sample_size(20)
            .nresamples(10_000);
        Suite { criterion: criterion.configure_from_args(), rows: Vec::new() }
    }

    /// Starts a group of cases that run on one thread, whatever number of threads is set.
    pub fn group(&mut self, name: &str) -> Group<'_> {
        let mut group = self.criterion.benchmark_group(name);
        // Samples of equal length: the short ones of linear sampling show the machine's noise the most.
        group.sampling_mode(SamplingMode::Flat);
        group.plot_config(PlotConfiguration::default().summary_scale(AxisScale::Logarithmic));
        Group { group, name: name.to_owned(), rows: &mut self.rows }
    }

    /// Sets the number of threads and starts a group: on two threads it is called `name_T2`.
    pub fn group_on(&mut self, threads: usize, name: &str) -> Result<Group<'_>> {
        swath::runtime::set_threads(threads)?;
        Ok(self.group(&format!("{name}_T{threads}")))
    }

    /// Prints the share of every timed case, and writes the table if the environment asks for it. Does neither
    /// if the cases only ran once as a test.
    pub fn finish(self) {
        self.criterion.final_summary();
        if self.rows.is_empty() {
            return;
        }
        println!("Shares of the machine's own speed");
        println!(
            "kernels: {}; products of tensors: {}\n",
            swath_kernels::isa(),
            swath::blas::info()
        );
        for row in &self.rows {
            println!("{row}");
        }
        let moved = self.rows.iter().filter(|row| row.change().abs() > STEADY).count();
        println!(
            "\n{moved} of {} rows end with ~: the machine's speed changed by more than {:.0} % from before the \
             case to after it, and the share is uncertain by as much.\n",
            self.rows.len(),
            100.0 * STEADY,
        );
        if let Err(error) = table::write(&self.rows) {
            eprintln!("SWATH_BENCH_TABLE: {error}");
        }
    }
}

impl Row {
    /// Relative change of the machine's speed from before the case to after it.
    fn change(&self) -> f64 {
        self.rates[1] / self.rates[0] - 1.0
    }

    /// Mean of the machine's speeds before and after the case.
    fn rate(&self) -> f64 {
        (self.rates[0] + self.rates[1]) / 2.0
    }

    /// Time that the limit takes over the time of the case.
    fn share(&self) -> f64 {
        self.limit.seconds(self.rate()) / self.seconds
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, share) = (self.rate(), self.share());
        let (name, limit, unit) = (&self.name, self.limit, self.limit.unit());
        write!(f, "{name:48} {:12.4} us {:5.0} % of {limit}", self.seconds * 1e6, 100.0 * share)?;
        write!(f, " at {:.1} {unit}", rate / 1e9)?;
        if self.change().abs() > STEADY {
            write!(f, " ~ {:+.0} %", 100.0 * self.change())
        } else {
            Ok(())
        }
    }
}

/// A group of cases.
pub struct Group<'a> {
    group: BenchmarkGroup<'a, WallTime>,
    name: String,
    rows: &'a mut Vec<Row>,
}

impl Group<'_> {
    /// Times `run`, which can take no less than `limit`.
    pub fn tensor(&mut self, id: &str, limit: Limit, mut run: impl FnMut() -> Result<Tensor>) {
        self.case(id, limit, || move || run().expect("shapes and dtypes fit"));
    }

    /// Times the closure that `set_up` returns, which can take no less than `limit`. Nothing is set up if the
    /// command line leaves the case out. `id` is a name, or the name of a function, a slash and a size.
    pub fn case<R, F: FnMut() -> R>(&mut self, id: &str, limit: Limit, set_up: impl FnOnce() -> F) {
        let started = SystemTime::now();
        let (mut set_up, mut run, mut before, mut calls) = (Some(set_up), None, None, 0);
        self.group.throughput(limit.throughput());
        self.group.bench_function(benchmark_id(id), |bencher| {
            let run = run.get_or_insert_with(|| set_up.take().expect("one call")());
            // The first call warms up, or is a test.
            calls += 1;
            if calls == 2 {
                before = Some(limit.rate());
            }
            bencher.iter(run);
        });
        let name = format!("{}/{id}", self.name);
        if let (Some(before), Some(seconds)) = (before, median(&name, started)) {
            self.rows.push(Row { name, limit, seconds, rates: [before, limit.rate()] });
        }
    }
}

fn benchmark_id(id: &str) -> BenchmarkId {
    match id.split_once('/') {
        Some((function, size)) => BenchmarkId::new(function, size),
        None => BenchmarkId::from_parameter(id),
    }
}

/// Median time of a case in seconds, read from the file that criterion wrote after `since`.
fn median(name: &str, since: SystemTime) -> Option<f64> {
    static HOME: LazyLock<PathBuf> = LazyLock::new(criterion_home);
    let file = HOME.join(name).join("new/estimates.json");
    let written = fs::metadata(&file).and_then(|data| data.modified()).ok()?;
    if written < since {
        return None;
    }
    let estimates: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    Some(estimates["median"]["point_estimate"].as_f64()? * 1e-9)
}

/// Folder of criterion's results, found in the way that criterion finds it.
fn criterion_home() -> PathBuf {
    let variable = |name| env::var_os(name).map(PathBuf::from);
    let target = || variable("CARGO_TARGET_DIR").or_else(target_of_cargo);
    variable("CRITERION_HOME")
        .or_else(|| Some(target()?.join("criterion")))
        .unwrap_or_else(|| PathBuf::from("target/criterion"))
}

fn target_of_cargo() -> Option<PathBuf> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps"];
    let output = Command::new(env::var_os("CARGO")?).args(arguments).output().ok()?;
    let metadata: Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(PathBuf::from(metadata["target_directory"].as_str()?))
}

//! Groups of criterion cases, and the share of the machine's limit that each case reaches.
//!
//! ```text
//! for each case: warm-up, speed of the machine, criterion's samples, speed of the machine
//!                share = time of the least work at the mean of the two speeds / median of the samples
//! ```
//!
//! Both speeds are measured within a second of the samples, because the clock and the bandwidth of a machine
//! change over time. The summary at the end marks the cases whose two speeds differ.

pub mod cases;
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

/// Largest relative change of the machine's speed during a case before its share is marked as uncertain.
const MAX_CHANGE: f64 = 0.05;

/// The benchmarks of one program.
pub struct Suite {
    criterion: Criterion,
    /// The cases timed so far.
    rows: Vec<Row>,
}

/// A timed case.
struct Row {
    name: String,
    limit: Limit,
    /// Median of criterion's samples, in seconds.
    seconds: f64,
    /// Speed of the machine before and after the case, in bytes or operations per second.
    rates: [f64; 2],
}

impl Suite {
    /// Reads criterion's command line.
    pub fn from_args() -> Suite {
        // Few samples and resamples, because there are more than 500 cases of a second each.
        let criterion = Criterion::default()
            .warm_up_time(Duration::from_millis(200))
            .measurement_time(Duration::from_millis(400))
            .sample_size(20)
            .nresamples(10_000);
        Suite { criterion: criterion.configure_from_args(), rows: Vec::new() }
    }

    /// Starts a group of cases. Kernels on slices run on the calling thread, whatever number of threads is
    /// set.
    pub fn group(&mut self, name: &str) -> Group<'_> {
        let mut group = self.criterion.benchmark_group(name);
        // Flat sampling: linear sampling also takes short samples, which are the noisiest.
        group.sampling_mode(SamplingMode::Flat);
        group.plot_config(PlotConfiguration::default().summary_scale(AxisScale::Logarithmic));
        Group { group, name: name.to_owned(), rows: &mut self.rows }
    }

    /// Sets the number of threads and starts a group, called `name_T2` on two threads.
    pub fn group_on(&mut self, threads: usize, name: &str) -> Result<Group<'_>> {
        swath::runtime::set_threads(threads)?;
        Ok(self.group(&format!("{name}_T{threads}")))
    }

    /// Prints the share of every timed case and writes the table if the environment asks for it. Does neither
    /// if `cargo test` ran each case once.
    pub fn finish(self) {
        self.criterion.final_summary();
        if self.rows.is_empty() {
            return;
        }
        println!("Shares of the machine's limit");
        println!(
            "kernels: {}; products of tensors: {}\n",
            swath_kernels::isa(),
            swath::blas::info()
        );
        for row in &self.rows {
            println!("{row}");
        }
        let changed = self.rows.iter().filter(|row| row.change().abs() > MAX_CHANGE).count();
        println!(
            "\n{changed} of {} rows end with ~: the speed of the machine changed by more than {:.0} % during \
             the case, and the share is uncertain by as much.\n",
            self.rows.len(),
            100.0 * MAX_CHANGE,
        );
        if let Err(error) = table::write(&self.rows) {
            eprintln!("SWATH_BENCH_TABLE: {error}");
        }
    }
}

impl Row {
    /// Returns the relative change of the machine's speed during the case.
    fn change(&self) -> f64 {
        self.rates[1] / self.rates[0] - 1.0
    }

    /// Returns the mean of the machine's speeds before and after the case.
    fn rate(&self) -> f64 {
        (self.rates[0] + self.rates[1]) / 2.0
    }

    /// Returns the time of the limit divided by the time of the case.
    fn share(&self) -> f64 {
        self.limit.seconds(self.rate()) / self.seconds
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, share) = (self.rate(), self.share());
        let (name, limit, unit) = (&self.name, self.limit, self.limit.unit());
        write!(f, "{name:50} {:12.4} us {:5.0} % of {limit}", self.seconds * 1e6, 100.0 * share)?;
        write!(f, " at {:.1} {unit}", rate / 1e9)?;
        if self.change().abs() > MAX_CHANGE {
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
    /// Times `run`, whose least work is `limit`.
    pub fn tensor(&mut self, id: &str, limit: Limit, mut run: impl FnMut() -> Result<Tensor>) {
        self.case(id, limit, || move || run().expect("shapes and dtypes match"));
    }

    /// Times the closure that `set_up` returns, whose least work is `limit`. `set_up` is not called if the
    /// command line excludes the case. `id` is a name, or the name of a function, a slash and a size.
    pub fn case<R, F: FnMut() -> R>(&mut self, id: &str, limit: Limit, set_up: impl FnOnce() -> F) {
        let started = SystemTime::now();
        let (mut set_up, mut run, mut before, mut calls) = (Some(set_up), None, None, 0);
        self.group.throughput(limit.throughput());
        self.group.bench_function(benchmark_id(id), |bencher| {
            let run = run.get_or_insert_with(|| set_up.take().expect("called once")());
            // The first call is the warm-up, or the only one under `cargo test`.
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

/// Returns criterion's name of a case.
fn benchmark_id(id: &str) -> BenchmarkId {
    match id.split_once('/') {
        Some((function, size)) => BenchmarkId::new(function, size),
        None => BenchmarkId::from_parameter(id),
    }
}

/// Returns the median time of a case in seconds, from the file that criterion wrote; `None` if it was last
/// written before `since`.
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

/// Returns the folder of criterion's results, searched for in the order that criterion uses.
fn criterion_home() -> PathBuf {
    let variable = |name| env::var_os(name).map(PathBuf::from);
    let target = || variable("CARGO_TARGET_DIR").or_else(cargo_target);
    variable("CRITERION_HOME")
        .or_else(|| Some(target()?.join("criterion")))
        .unwrap_or_else(|| PathBuf::from("target/criterion"))
}

/// Returns the target folder that `cargo metadata` reports.
fn cargo_target() -> Option<PathBuf> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps"];
    let output = Command::new(env::var_os("CARGO")?).args(arguments).output().ok()?;
    let metadata: Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(PathBuf::from(metadata["target_directory"].as_str()?))
}

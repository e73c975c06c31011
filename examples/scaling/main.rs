//! Predicts how well data-parallel training scales, from one measured step time, a bandwidth and a
//! latency. Nothing is trained and nothing is sent.
//!
//! ```text
//! cargo run --release --example scaling -- --step 0.056 --bytes 3.3e6
//! cargo run --release --example scaling -- --step 0.8 --parameters 124e6 --weak
//! ```
//!
//! Prints a table over the number of ranks and the step time from which two ranks are faster than
//! one, and draws the efficiency as an SVG chart.
//!
//! | file | contents |
//! |---|---|
//! | `options.rs` | the command line |
//! | `model.rs` | the cost model of a step |
//! | `sum.rs` | the time of the sum over ranks |
//! | `draw.rs` | the chart |

mod draw;
mod model;
mod options;
mod sum;

use std::process::ExitCode;

use model::{MOST_RANKS, Model};
use options::Options;

/// Error of a run.
pub type Failure = Box<dyn std::error::Error>;

/// Prints a line. Errors are ignored: standard output may be closed.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}
pub(crate) use say;

fn main() -> ExitCode {
    match Options::from_command_line().and_then(|options| options.map_or(Ok(()), |o| run(&o))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scaling: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let model = options.model()?;
    say!("{}", title(&model));
    say!("{}\n", network(&model));
    print_table(&model);
    print_break_even(&model);
    let path = options.out();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("--out: cannot create {}: {error}", folder.display()))?;
    }
    let svg = draw::to_svg(&model)?;
    swath::io::replace_file(&path, |file| file.write_all(svg.as_bytes()))?;
    say!("written to {}", path.display());
    Ok(())
}

/// Describes the work in one line.
pub fn title(model: &Model) -> String {
    let (scaling, a_rank) = match model.weak {
        true => ("weak", " a rank"),
        false => ("strong", ""),
    };
    let step = 1e3 * model.cost(1).total();
    let (count, es) = (model.micro_batches, if model.micro_batches == 1 { "" } else { "es" });
    let bytes = quantity(model.bytes, "B");
    format!(
        "{scaling} scaling: a step of {step:.1} ms on one rank, \
         {count} micro-batch{es}{a_rank}, gradients of {bytes}"
    )
}

/// Describes the network in one line.
fn network(model: &Model) -> String {
    let between = format!(
        "{} and {:.1} µs between hosts",
        quantity(model.bandwidth, "B/s"),
        1e6 * model.latency
    );
    match model.ranks_per_host {
        1 => format!("network: {between}, 1 rank a host"),
        ranks => format!(
            "network: {between}; {} and {:.1} µs within a host of {ranks} ranks",
            quantity(model.local_bandwidth, "B/s"),
            1e6 * model.local_latency,
        ),
    }
}

fn print_table(model: &Model) {
    say!("       micro-batches");
    say!("ranks         a rank   compute ms       sum ms      step ms  speed-up  efficiency");
    for ranks in model.rank_counts() {
        let cost = model.cost(ranks);
        say!(
            "{ranks:>5}  {:>13}  {:>11.3}  {:>11.3}  {:>11.3}  {:>8.2}  {:>8.1} %",
            cost.micro_batches,
            1e3 * cost.compute,
            1e3 * cost.sum,
            1e3 * cost.total(),
            model.speed_up(ranks),
            1e2 * model.efficiency(ranks),
        );
    }
    if model.most_ranks() < MOST_RANKS {
        say!("TooManyRanks above {}: each rank needs a micro-batch", model.most_ranks());
    }
    say!("");
}

fn print_break_even(model: &Model) {
    let bytes = quantity(model.bytes, "B");
    let bandwidth = match model.ranks_per_host {
        1 => quantity(model.bandwidth, "B/s"),
        _ => format!("{} within a host", quantity(model.local_bandwidth, "B/s")),
    };
    match model.break_even() {
        Some(seconds) => {
            let least = 1e3 * seconds;
            say!(
                "pays from {least:.3} ms: at {bandwidth}, gradients of {bytes} break even \
                 (2 ranks as fast as one)\nif a step takes {least:.3} ms on one rank; \
                 a longer step gains"
            );
        }
        None => say!("never pays: 2 ranks need at least 2 micro-batches"),
    }
}

/// Formats a value with three significant digits and a decimal prefix: `3.3 MB`.
pub fn quantity(value: f64, unit: &str) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (scale, prefix) = prefixes.into_iter().find(|(s, _)| value >= *s).unwrap_or((1.0, ""));
    let scaled = value / scale;
    let power = match scaled {
        100.0.. => 1.0,
        10.0.. => 10.0,
        _ => 100.0,
    };
    format!("{} {prefix}{unit}", (scaled * power).round() / power)
}

#[cfg(test)]
mod tests {
    use super::quantity;

    #[test]
    fn quantities_have_three_significant_digits() {
        assert_eq!(quantity(3_300_000.0, "B"), "3.3 MB");
        assert_eq!(quantity(1.25e8, "B/s"), "125 MB/s");
        assert_eq!(quantity(12_345.0, "B"), "12.3 kB");
        assert_eq!(quantity(7.0, "B"), "7 B");
    }
}

//! Times a few operations by size on the reference backend, on the CPU backend with portable kernels, with those of this
//! machine on one thread, and on all threads: which of them pays from which size on.
//!
//! ```text
//! cargo run --release --example crossover
//! cargo run --release --example crossover --features openblas      products by a library
//! ```
//!
//! The instruction set and the number of threads are settings of a process, so that the program starts itself for each
//! column. Times are medians.

#[path = "../gpu_check/median.rs"]
mod median;

use std::process::{Command, ExitCode};

use median::median;
use swath::prelude::*;

/// Error of a run.
type Failure = Box<dyn std::error::Error>;

/// Elements of an operand.
const SIZES: [usize; 6] = [1 << 6, 1 << 9, 1 << 12, 1 << 15, 1 << 18, 1 << 21];

const OPERATIONS: [&str; 5] = ["add", "exp", "sum of rows", "softmax", "matmul"];

/// A column: its title, the name in the child's arguments, and the environment.
type Column = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const COLUMNS: [Column; 4] = [
    ("reference", "reference", &[]),
    ("portable", "cpu", &[("SWATH_ISA", "scalar"), ("SWATH_THREADS", "1")]),
    ("one thread", "cpu", &[("SWATH_THREADS", "1")]),
    ("all threads", "cpu", &[]),
];

fn main() -> ExitCode {
    let result = match std::env::args().nth(1).as_deref() {
        None => table(),
        Some("reference") => times::<ReferenceBackend>(),
        Some("cpu") => times::<CpuBackend>(),
        Some(other) => Err(format!("unexpected argument {other}").into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("crossover: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the times of each operation and size in microseconds, or a dash where the reference would take too long.
fn times<B: Backend>() -> Result<(), Failure> {
    let is_slow = B::NAME == ReferenceBackend::NAME;
    for operation in OPERATIONS {
        for size in SIZES {
            let n = size.isqrt();
            let mut rng = Rng::seed(1);
            let a = Tensor::<B>::rand((n, n), 0.0..1.0, &mut rng)?;
            let b = Tensor::<B>::rand((n, n), 0.0..1.0, &mut rng)?;
            if is_slow && (size > 1 << 18 || operation == "matmul" && size > 1 << 15) {
                println!("-");
                continue;
            }
            let seconds = median(0.2, || match operation {
                "add" => a.add(&b),
                "exp" => a.exp(),
                "sum of rows" => a.sum(Some(&[1]), false),
                "softmax" => a.softmax(1),
                _ => a.matmul(&b),
            })?;
            println!("{:.2}", 1e6 * seconds);
        }
    }
    Ok(())
}

/// Starts the program for each column and prints all of them.
fn table() -> Result<(), Failure> {
    println!("{}\n", swath::runtime::info());
    let mut columns = Vec::new();
    for (title, backend, variables) in COLUMNS {
        let mut command = Command::new(std::env::current_exe()?);
        let output = command.arg(backend).envs(variables.iter().copied()).output()?;
        if !output.status.success() {
            return Err(format!("{title}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let text = String::from_utf8(output.stdout)?;
        columns.push(text.lines().map(str::to_owned).collect::<Vec<_>>());
    }
    print!("| microseconds | elements |");
    COLUMNS.iter().for_each(|(title, ..)| print!(" {title} |"));
    println!("\n|---|---|{}", "---|".repeat(COLUMNS.len()));
    for (i, operation) in OPERATIONS.iter().enumerate() {
        for (j, size) in SIZES.iter().enumerate() {
            let n = size.isqrt();
            print!("| {operation} | {n} x {n} |");
            columns.iter().for_each(|column| print!(" {} |", column[i * SIZES.len() + j]));
            println!();
        }
    }
    Ok(())
}

//! Compares each GPU of this build with the CPU: every function, reduction and arithmetic operation, and one or two of
//! each other kind, in `f32` with gradients, in `f16` and in `i64`. Measures the size from which the GPU is faster. The
//! tests, `cargo test --test gpu`, compare everything else.
//!
//! ```text
//! cargo run --release --example gpu_check --features wgpu [-- --quick]
//! cargo run --release --example gpu_check --features metal [-- --quick]      on Apple's systems
//! cargo run --release --example gpu_check                                    without a GPU
//! ```
//!
//! The error is the largest difference of the two results, relative to the largest magnitude of the CPU's. Times are
//! medians. The GPU's time includes waiting for the call, but not copying the result. The crossover is the smallest
//! measured size from which on the GPU is always faster.
//!
//! Without a GPU it times a few operations on the reference backend, on the CPU with portable kernels, with those of this
//! machine on one thread, and on all threads. The instruction set and the number of threads are settings of a process,
//! so the program starts itself for each of these columns.

mod cases;

use std::process::{Command, ExitCode};
use std::time::Instant;

use cases::{Case, Inputs, Kind, T};
use swath::prelude::*;
use swath::{AnyBackend, Device};

/// Error of a run.
type Failure = Box<dyn std::error::Error>;

/// The GPUs, and whether this build has them.
const GPUS: [(Device, bool); 2] = [
    (Device::Metal, cfg!(all(feature = "metal", target_vendor = "apple"))),
    (Device::Wgpu, cfg!(feature = "wgpu")),
];

/// Number of rows of the matrices on the CPU alone.
const CPU_SIZES: [usize; 6] = [8, 22, 64, 181, 512, 1448];

const CPU_OPERATIONS: [&str; 5] = ["add", "exp", "sum of rows", "softmax", "matmul"];

/// A column of the CPU's table: its title and the environment.
type Column = (&'static str, &'static [(&'static str, &'static str)]);

const CPU_COLUMNS: [Column; 4] = [
    ("reference", &[("SWATH_DEVICE", "reference")]),
    ("portable", &[("SWATH_ISA", "scalar"), ("SWATH_THREADS", "1")]),
    ("one thread", &[("SWATH_THREADS", "1")]),
    ("all threads", &[]),
];

fn main() -> ExitCode {
    match run(std::env::args().nth(1).as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gpu_check: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(option: Option<&str>) -> Result<(), Failure> {
    match option {
        None | Some("--quick") => {}
        Some("column") => return print_column(),
        Some(other) => return Err(format!("unexpected argument {other}").into()),
    }
    println!("{}\n", swath::runtime::info());
    let mut gpus = GPUS.into_iter().filter(|&(_, is_built)| is_built).peekable();
    if gpus.peek().is_none() {
        return print_cpu_table();
    }
    let sizes: &[usize] = if option.is_some() { &[16, 64] } else { &[32, 64, 128, 256, 512, 1024] };
    let results: Vec<_> = gpus.map(|(gpu, _)| compare(gpu, sizes)).collect();
    results.into_iter().collect()
}

/// Prints a row for each case. Fails if the GPU computes one wrong.
fn compare(gpu: Device, sizes: &[usize]) -> Result<(), Failure> {
    gpu.check()?;
    print!("{gpu}\n\n{:<34} {:>9}", "operation", "error");
    sizes.iter().for_each(|n| print!(" {:>17}", format!("{n} x {n}")));
    println!(" {:>9}", "crossover");
    let one = AnyBackend::with_device(gpu, || T::ones(1, DType::F32))?;
    let mut wrong = 0;
    for case in cases::all() {
        for &kind in case.kinds {
            if !has(gpu, kind.dtype())? {
                continue;
            }
            let (mut worst, mut times, mut crossover) = (0f64, String::new(), None);
            for &n in sizes {
                let here = AnyBackend::with_device(Device::Cpu, || case.inputs(kind, n))?;
                let there: Vec<T> = here.iter().map(|x| x.to_device(gpu)).collect::<Result<_>>()?;
                let there = there.try_into().expect("as many as there are here");
                worst = error_of((&case, kind), &here, &there)?.max(worst);
                let cpu = median(0.04, || case.run(kind, &here))?;
                // A value is read once all that was encoded before has run.
                let gpu = median(0.04, || case.run(kind, &there).and(one.item::<f32>()))?;
                times += &format!(" {:>8.1} {:>8.1}", 1e6 * cpu, 1e6 * gpu);
                crossover = if gpu < cpu { crossover.or(Some(n)) } else { None };
            }
            let is_wrong = worst > kind.tolerance();
            wrong += usize::from(is_wrong);
            let name = match kind {
                Kind::F32 => case.name.clone(),
                kind => format!("{}, {kind:?}", case.name).to_lowercase(),
            };
            let crossover = crossover.map_or("-".to_owned(), |n| n.to_string());
            let mark = if is_wrong { " WRONG" } else { "" };
            println!("{name:<34} {worst:>9.1e}{times} {crossover:>9}{mark}");
        }
    }
    println!("\ntimes in µs, CPU and GPU; {wrong} operations are wrong");
    match wrong {
        0 => Ok(()),
        _ => Err(format!("{wrong} operations of {gpu} differ from the CPU").into()),
    }
}

/// Returns whether a GPU computes with a dtype.
fn has(gpu: Device, dtype: DType) -> Result<bool> {
    let sum = AnyBackend::with_device(gpu, || T::ones(1, dtype).and_then(|x| x.add(&x)));
    match sum {
        Ok(_) => Ok(true),
        Err(Error::Unsupported { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the largest difference, relative to the largest magnitude. Two NaN are equal, and so are equal infinities.
fn error_of((case, kind): (&Case, Kind), here: &Inputs, there: &Inputs) -> Result<f64> {
    let values = |inputs| {
        let y = case.run(kind, inputs)?.to_device(Device::Cpu)?;
        y.to_dtype(DType::F64)?.to_vec::<f64>()
    };
    let (expected, result) = (values(here)?, values(there)?);
    let finite = expected.iter().filter(|x| x.is_finite());
    let scale = finite.fold(1e-30f64, |scale, x| scale.max(x.abs()));
    let errors = result.iter().zip(&expected).map(|(x, y)| {
        let error = (x - y).abs() / scale;
        match error.is_nan() {
            _ if x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan() => 0.0,
            true => f64::INFINITY,
            false => error,
        }
    });
    Ok(errors.fold(0.0, f64::max))
}

/// Starts the program for each column and prints all of them.
fn print_cpu_table() -> Result<(), Failure> {
    let mut columns = Vec::new();
    for (title, variables) in CPU_COLUMNS {
        let mut command = Command::new(std::env::current_exe()?);
        let output = command.arg("column").envs(variables.iter().copied()).output()?;
        if !output.status.success() {
            return Err(format!("{title}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let text = String::from_utf8(output.stdout)?;
        columns.push(text.lines().map(str::to_owned).collect::<Vec<_>>());
    }
    let titles = CPU_COLUMNS.map(|(title, _)| title).join(" | ");
    println!("| microseconds | elements | {titles} |\n|---|---|{}", "---|".repeat(columns.len()));
    let rows = CPU_OPERATIONS.iter().flat_map(|name| CPU_SIZES.map(|n| (name, n)));
    for (i, (name, n)) in rows.enumerate() {
        let times: Vec<&str> = columns.iter().map(|column| column[i].as_str()).collect();
        println!("| {name} | {n} x {n} | {} |", times.join(" | "));
    }
    Ok(())
}

/// Prints the times of a column in microseconds, or a dash where the reference would take too long.
fn print_column() -> Result<(), Failure> {
    let is_slow = AnyBackend::device()? == Device::Reference;
    let cases = cases::all();
    for name in CPU_OPERATIONS {
        let case = cases.iter().find(|case| case.name == name).ok_or(name)?;
        for n in CPU_SIZES {
            if is_slow && (n > 512 || name == "matmul" && n > 181) {
                println!("-");
                continue;
            }
            let inputs = case.inputs(Kind::F32, n)?;
            let seconds = median(0.2, || case.run(Kind::F32, &inputs))?;
            println!("{:.2}", 1e6 * seconds);
        }
    }
    Ok(())
}

/// Returns the median time in seconds of all calls within `seconds`, at least three, after a warm-up of half that time.
fn median<R>(seconds: f64, mut call: impl FnMut() -> Result<R>) -> Result<f64> {
    let start = Instant::now();
    let mut times = Vec::new();
    while start.elapsed().as_secs_f64() < 1.5 * seconds || times.len() < 3 {
        let is_warm = start.elapsed().as_secs_f64() > seconds / 2.0;
        let start = Instant::now();
        call()?;
        if is_warm {
            times.push(start.elapsed().as_secs_f64());
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

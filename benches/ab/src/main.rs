//! The speed of this tree beside that of an older commit: both are built, with the project's own profile,
//! and run in turn, row by row.
//!
//! ```text
//! cargo run --release --manifest-path benches/ab/Cargo.toml -- [OPTION…]
//! ```
//!
//! * `--base REVISION`: the commit to compare with; e4cd599 unless given. It is checked out below
//!   `target/ab`.
//! * `--threads 1,2`: a table for each of these numbers of threads.
//! * `--filter TEXT`: the rows of which group and name, as in `reductions: sum f32 [64]`, contain the text;
//!   with commas between several texts, one of them.
//!
//! The variable `SWATH_ISA` chooses the instruction set of both.
//!
//! A row is timed so:
//!
//! ```text
//! both programs set the row up; calls: as many as take the faster one 5 ms
//! 11 times: one program times its calls, then the other; each goes first every other time
//! ratio = median of this tree's times / median of the base's
//! ```
//!
//! A row above 1.10 is set up and timed once more, and both ratios are printed: where memory comes to
//! lie, and what else the machine does, moves a ratio by some percent.

mod trees;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

type Error = Box<dyn std::error::Error>;

const BASE: &str = "e4cd599";
/// Minimum length of a sample in seconds.
const SAMPLE: f64 = 5e-3;
/// Samples of each program.
const SAMPLES: usize = 11;
/// Ratio above which a row is measured again.
const SLOWER: f64 = 1.10;

fn main() -> Result<(), Error> {
    let [mut base, mut threads, mut filter] = [BASE, "1,2", ""].map(str::to_owned);
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or(format!("{option} needs a value"));
        match option.as_str() {
            "--base" => base = value?,
            "--threads" => threads = value?,
            "--filter" => filter = value?,
            _ => {
                return Err(format!("no option {option}; benches/ab/src/main.rs has a list").into());
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let (base, tree) = trees::check_out(&root, &base)?;
    let [base_rows, rows] =
        [trees::build(&root, &tree, &base)?, trees::build(&root, &root, "now")?];
    println!("{} beside {base}", trees::describe(&root)?);
    for threads in threads.split(',') {
        let mut programs = [Program::start(&base_rows, threads)?, Program::start(&rows, threads)?];
        let names = programs[0].ask("list")?;
        if names != programs[1].ask("list")? {
            return Err("the two programs have different rows: one of them is an old build".into());
        }
        println!(
            "\n## Threads: {threads}\n\n| row | {base}, µs | now, µs | ratio |\n|---|---:|---:|---:|"
        );
        let mut ratios: Vec<(&str, f64)> = Vec::new();
        for (row, name) in names.split('\t').enumerate() {
            if !filter.split(',').any(|text| name.contains(text.trim())) {
                continue;
            }
            let [base, now] = measure(&mut programs, row)?;
            let mut ratio = format!("{:.3}", now / base);
            if now / base > SLOWER {
                let [base, now] = measure(&mut programs, row)?;
                ratio += &format!(", again {:.3}", now / base);
            }
            println!("| {name} | {:.3} | {:.3} | {ratio} |", 1e6 * base, 1e6 * now);
            ratios.push((name, now / base));
        }
        print_means(&ratios);
    }
    Ok(())
}

/// Prints the geometric mean of the ratios of each group and of all rows.
fn print_means(ratios: &[(&str, f64)]) {
    println!("\n| group | rows | geometric mean of the ratios |\n|---|---:|---:|");
    let print = |group: &str, ratios: &[(&str, f64)]| {
        let sum: f64 = ratios.iter().map(|(_, ratio)| ratio.ln()).sum();
        println!("| {group} | {} | {:.3} |", ratios.len(), (sum / ratios.len() as f64).exp());
    };
    let group = |(name, _): &(&str, f64)| name.split(": ").next().unwrap_or_default().to_owned();
    for rows in ratios.chunk_by(|a, b| group(a) == group(b)) {
        print(&group(&rows[0]), rows);
    }
    print("all", ratios);
}

/// Measures a row: the median seconds of a call of each program.
fn measure(programs: &mut [Program; 2], row: usize) -> Result<[f64; 2], Error> {
    let mut fastest = f64::INFINITY;
    for program in programs.iter_mut() {
        fastest = fastest.min(program.ask(&format!("row {row}"))?.parse()?);
    }
    let calls = (SAMPLE / fastest).ceil().clamp(1.0, 1e7) as usize;
    let mut times = [Vec::new(), Vec::new()];
    for sample in 0..SAMPLES {
        for of in [sample % 2, 1 - sample % 2] {
            let seconds: f64 = programs[of].ask(&format!("time {calls}"))?.parse()?;
            times[of].push(seconds / calls as f64);
        }
    }
    Ok(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }))
}

/// A program of rows that runs and waits for requests; `rows/main.rs` is its other end.
struct Program {
    process: Child,
    replies: BufReader<ChildStdout>,
}

impl Program {
    fn start(path: &Path, threads: &str) -> Result<Program, Error> {
        let mut command = Command::new(path);
        command.env("SWATH_THREADS", threads).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let replies = process.stdout.take().ok_or("the program has no standard output")?;
        Ok(Program { process, replies: BufReader::new(replies) })
    }

    /// Sends a line and returns the line that the program answers.
    fn ask(&mut self, request: &str) -> Result<String, Error> {
        let requests = self.process.stdin.as_mut().ok_or("the program has no standard input")?;
        writeln!(requests, "{request}")?;
        let mut line = String::new();
        match self.replies.read_line(&mut line)? {
            0 => Err("a program of rows has ended; its error stands above".into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It waits for a request that will not come.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

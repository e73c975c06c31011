//! The speed of this tree beside that of an older commit: both are built, with the project's own profile,
//! and run in turn, row by row.
//!
//! ```text
//! cargo run --release --manifest-path benches/ab/Cargo.toml -- [OPTION…]
//! ```
//!
//! * `--base REVISION`: the commit to compare with; 44796f4 unless given. It is checked out below
//!   `target/ab`.
//! * `--threads 1,2`: a table for each of these numbers of threads.
//! * `--filter TEXT`: the rows of which group and name, as in `reductions: sum f32 [64]`, contain the text;
//!   with commas between several texts, one of them.
//! * `--isa NAME`: the instruction set of both.
//! * `--alternations N`: how often the two run in turn; 11 unless given.
//! * `--out FILE`: what is printed goes there too.
//! * `--list`: names the rows and stops.
//!
//! A row is timed so:
//!
//! ```text
//! both programs set the row up; calls: as many as take the faster one 5 ms
//! 11 times: one program times its calls, then the other; each goes first every other time
//! ratio = median of this tree's times / median of the base's
//! ```
//!
//! What is above 1.10 is set up and timed once more, and both ratios are printed: where memory comes to
//! lie, and what else the machine does, moves a ratio by some percent.

mod child;
mod report;
mod trees;

use child::Child;
use report::{Report, Row};
use std::path::Path;
use std::time::Instant;

type Error = Box<dyn std::error::Error>;

const BASE: &str = "44796f4";
/// Least length of a sample, in seconds.
const SAMPLE: f64 = 5e-3;

struct Options {
    base: String,
    threads: Vec<usize>,
    filter: Vec<String>,
    isa: Option<String>,
    alternations: usize,
    out: Option<String>,
    list: bool,
}

impl Options {
    fn from_args() -> Result<Options, Error> {
        let mut options = Options {
            base: BASE.into(),
            threads: vec![1, 2],
            filter: Vec::new(),
            isa: None,
            alternations: 11,
            out: None,
            list: false,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{option} needs a value"));
            let words = |text: String| -> Vec<String> {
                text.split(',').map(|word| word.trim().to_owned()).collect()
            };
            match option.as_str() {
                "--base" => options.base = value()?,
                "--threads" => {
                    let numbers = words(value()?).into_iter().map(|word| word.parse());
                    options.threads = numbers.collect::<Result<_, _>>()?;
                }
                "--filter" => options.filter = words(value()?),
                "--isa" => options.isa = Some(value()?),
                "--alternations" => options.alternations = value()?.parse::<usize>()?.max(1),
                "--out" => options.out = Some(value()?),
                "--list" => options.list = true,
                _ => {
                    return Err(
                        format!("no option {option}; benches/ab/src/main.rs has a list").into()
                    );
                }
            }
        }
        Ok(options)
    }

    fn wants(&self, row: &str) -> bool {
        self.filter.is_empty() || self.filter.iter().any(|text| row.contains(text.as_str()))
    }
}

fn main() -> Result<(), Error> {
    let options = Options::from_args()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let now = trees::build(&root, &root, "now")?;
    if options.list {
        for name in Child::start(&now, 1, None)?.list()? {
            println!("{name}");
        }
        return Ok(());
    }
    let (base_name, base_tree) = trees::check_out(&root, &options.base)?;
    let base = trees::build(&root, &base_tree, &base_name)?;

    let start = Instant::now();
    let mut report = Report::new(&base_name, &trees::describe(&root)?, options.isa.as_deref());
    for &threads in &options.threads {
        let isa = options.isa.as_deref();
        let mut programs = [Child::start(&base, threads, isa)?, Child::start(&now, threads, isa)?];
        let names = programs[0].list()?;
        if names != programs[1].list()? {
            return Err("the two programs have different rows: one of them is an old build".into());
        }
        report.table(threads);
        for (number, name) in names.iter().enumerate().filter(|(_, name)| options.wants(name)) {
            let mut row = Row { name: name.clone(), ..measure(&mut programs, number, &options)? };
            if row.ratio() > report::SLOWER {
                row.again = Some(measure(&mut programs, number, &options)?.ratio());
            }
            report.row(row);
        }
    }
    report.end(start.elapsed());
    if let Some(path) = &options.out {
        std::fs::write(path, report.text())?;
    }
    Ok(())
}

/// Both programs on one row: the median seconds of a call.
fn measure(programs: &mut [Child; 2], number: usize, options: &Options) -> Result<Row, Error> {
    let mut fastest = f64::INFINITY;
    for program in programs.iter_mut() {
        fastest = fastest.min(program.set_up(number)?);
    }
    let calls = (SAMPLE / fastest).ceil().clamp(1.0, 1e7) as usize;
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..options.alternations {
        for of in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
            times[of].push(programs[of].time(calls)? / calls as f64);
        }
    }
    let [base, now] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    Ok(Row { name: String::new(), base, now, again: None })
}

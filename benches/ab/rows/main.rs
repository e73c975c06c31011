//! The program that `benches/ab` builds against each of the two trees: it names its rows and times them
//! as it is asked to on standard input.
//!
//! ```text
//! list        a line "group<TAB>row" for each row, then "end"
//! row K       sets row K up, and answers with the seconds that a call takes, roughly
//! time N      calls it N times, and answers with the seconds that they took
//! ```
//!
//! It is limited to what both trees have in common: methods of `Tensor`, layers, optimizers, and functions
//! of slices.

mod elementwise;
mod in_place;
mod layout;
mod products;
mod reductions;
mod rowwise;
mod slices;
mod training;

use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::Instant;
use swath::prelude::*;

type T = Tensor<CpuBackend>;

/// Something that can be called again and again.
type Call = Box<dyn FnMut()>;

struct Row {
    group: &'static str,
    name: String,
    set_up: Box<dyn Fn() -> Result<Call>>,
}

/// All rows, in the order in which they are printed.
struct Rows(Vec<Row>);

impl Rows {
    fn add(
        &mut self,
        group: &'static str,
        name: impl Into<String>,
        set_up: impl Fn() -> Result<Call> + 'static,
    ) {
        self.0.push(Row { group, name: name.into(), set_up: Box::new(set_up) });
    }
}

/// A call that makes a tensor and drops it.
fn call(function: impl Fn() -> Result<T> + 'static) -> Result<Call> {
    Ok(Box::new(move || {
        black_box(function().expect("shapes and dtypes fit"));
    }))
}

/// Normally distributed elements, the same in both trees.
fn normal(shape: impl Into<Shape>, dtype: DType) -> Result<T> {
    T::randn(shape, &mut Rng::seed(1))?.to_dtype(dtype)
}

/// Seconds of so many calls.
fn time(call: &mut Call, calls: usize) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        call();
    }
    start.elapsed().as_secs_f64()
}

/// Seconds a call takes, once caches and recycled memory are warm.
fn seconds_of(call: &mut Call) -> f64 {
    call();
    let mut calls = 1;
    loop {
        let taken = time(call, calls);
        if taken > 1e-3 {
            return taken / calls as f64;
        }
        calls *= 2;
    }
}

fn main() -> Result<()> {
    let mut rows = Rows(Vec::new());
    elementwise::rows(&mut rows);
    in_place::rows(&mut rows);
    layout::rows(&mut rows);
    reductions::rows(&mut rows);
    rowwise::rows(&mut rows);
    products::rows(&mut rows);
    training::rows(&mut rows);
    // Functions of slices know no threads.
    if swath::runtime::info().threads == 1 {
        slices::rows(&mut rows);
    }

    let mut current: Option<Call> = None;
    let mut answer = std::io::stdout();
    for request in std::io::stdin().lock().lines() {
        let request = request.expect("standard input can be read");
        let (word, number) = request.split_once(' ').unwrap_or((&request, "0"));
        let number: usize = number.parse().expect("a number after the word");
        let reply = match word {
            "list" => {
                let lines = rows.0.iter().map(|row| format!("{}\t{}\n", row.group, row.name));
                lines.collect::<String>() + "end"
            }
            "row" => {
                // The last row's memory first, so that there is never that of two.
                drop(current.take());
                let mut call = (rows.0[number].set_up)()?;
                let seconds = seconds_of(&mut call);
                current = Some(call);
                format!("{seconds:e}")
            }
            "time" => {
                let call = current.as_mut().expect("a row is set up before it is timed");
                // The other program has had the caches, and threads sleep.
                if number > 1 {
                    time(call, number.div_ceil(10));
                }
                format!("{:e}", time(call, number))
            }
            _ => panic!("no request {request}"),
        };
        writeln!(answer, "{reply}").and_then(|()| answer.flush()).expect("there is a reader");
    }
    Ok(())
}

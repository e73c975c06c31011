//! The program that `benches/ab` builds against each of the two trees. It answers requests on standard input, each
//! by a line:
//!
//! ```text
//! list        the rows, as "group: name" with tabs between them
//! row K       sets row K up: roughly the seconds that a call takes
//! time N      calls it N times: the seconds that they took
//! ```
//!
//! It is limited to what both trees have in common: methods of `Tensor`, layers and optimizers.

mod convolution;
mod elementwise;
mod layout;
mod products;
mod reductions;
mod rowwise;
mod training;

use std::fmt::Display;
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::Instant;
use swath::prelude::*;

type T = Tensor<CpuBackend>;

/// Something that can be called again and again.
type Call = Box<dyn FnMut()>;

/// All rows, in the order in which they are printed: "group: name", and what makes the call.
struct Rows(Vec<(String, Box<dyn Fn() -> Result<Call>>)>);

impl Rows {
    fn add(
        &mut self,
        group: &str,
        name: impl Display,
        set_up: impl Fn() -> Result<Call> + 'static,
    ) {
        self.0.push((format!("{group}: {name}"), Box::new(set_up)));
    }

    /// Adds a row for a function of tensors.
    fn of<const N: usize, R>(
        &mut self,
        group: &str,
        name: impl Display,
        inputs: impl Fn() -> Result<[T; N]> + 'static,
        function: impl Fn(&[T; N]) -> Result<R> + Clone + 'static,
    ) {
        self.add(group, name, move || {
            let (inputs, function) = (inputs()?, function.clone());
            Ok(Box::new(move || {
                black_box(function(&inputs).expect("shapes and dtypes fit"));
            }))
        });
    }

    /// Adds a row for a function, and one for it and the gradients of all inputs.
    fn with_backward<const N: usize>(
        &mut self,
        group: &str,
        name: impl Display,
        inputs: impl Fn() -> Result<[T; N]> + Clone + 'static,
        function: impl Fn(&[T; N]) -> Result<T> + Clone + 'static,
    ) {
        self.of(group, &name, inputs.clone(), function.clone());
        let tracked = move || Ok(inputs()?.map(|x| x.requires_grad()));
        self.of(group, format!("{name}, backward too"), tracked, move |inputs| {
            function(inputs)?.sum(None, false)?.backward()
        });
    }
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
    layout::rows(&mut rows);
    reductions::rows(&mut rows);
    rowwise::rows(&mut rows);
    products::rows(&mut rows);
    convolution::rows(&mut rows);
    training::rows(&mut rows);

    let mut current: Option<Call> = None;
    let mut answer = std::io::stdout();
    for request in std::io::stdin().lock().lines() {
        let request = request.expect("standard input can be read");
        let (word, number) = request.split_once(' ').unwrap_or((&request, "0"));
        let number: usize = number.parse().expect("a number after the word");
        let reply = match word {
            "list" => rows.0.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join("\t"),
            "row" => {
                // The last row's memory first, so that there is never that of two.
                drop(current.take());
                let mut call = (rows.0[number].1)()?;
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

//! Interleaved timing.

use std::time::Instant;

const REPETITIONS: usize = 31;
const SAMPLE: f64 = 0.5e-3;

/// How the cases run.
pub struct Plan {
    /// That everybody uses, of all who can; the crates have been told by a variable.
    pub threads: usize,
    /// Without the others.
    pub alone: bool,
    /// Each case once.
    pub once: bool,
}

/// A crate and one call of it.
pub type Rival<'a> = (&'a str, Box<dyn FnMut() + 'a>);

/// Times the rivals in turn: the first one's seconds a call, and each one's time over the first's.
pub fn ratios<'a>(mut rivals: Vec<Rival<'a>>, once: bool) -> (f64, Vec<(&'a str, f64)>) {
    let mut calls = Vec::new();
    for (_, run) in &mut rivals {
        time(run, 1);
        let seconds = time(run, 1).max(1e-8);
        calls.push(if once { 1 } else { (SAMPLE / seconds).clamp(1.0, 1e5) as usize });
    }
    let mut own = Vec::new();
    let mut ratios = vec![Vec::new(); rivals.len()];
    for _ in 0..if once { 1 } else { REPETITIONS } {
        let mut seconds = Vec::new();
        for ((_, run), &calls) in rivals.iter_mut().zip(&calls) {
            seconds.push(time(run, calls) / calls as f64);
        }
        own.push(seconds[0]);
        for (ratios, time) in ratios.iter_mut().zip(&seconds) {
            ratios.push(time / seconds[0]);
        }
    }
    let names = rivals.into_iter().map(|(name, _)| name);
    (median(own), names.zip(ratios.into_iter().map(median)).collect())
}

/// Times the rivals in turn and prints the first one's time and the others' over it.
pub fn race(name: &str, rivals: Vec<Rival>, once: bool) {
    let (own, others) = ratios(rivals, once);
    print!("{name:35} {:9.2} us  ", own * 1e6);
    for (rival, ratio) in &others[1..] {
        print!(" {rival} {ratio:.2}");
    }
    println!();
}

/// The middle value.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn time(run: &mut dyn FnMut(), calls: usize) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        run();
    }
    start.elapsed().as_secs_f64()
}

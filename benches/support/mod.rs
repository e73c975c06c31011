//! What the benchmarks share: a case is timed between yardsticks, again and again, and its share of
//! the machine's peak is the median of the ratios.
//!
//! ```text
//! for each repetition: yardstick, case, yardstick       a fraction of a millisecond each
//!                      ratio = case / mean of the two
//! ```
//!
//! This is an own harness because a machine's clock and bandwidth move from one millisecond to the
//! next (other tenants, turbo): figures of two loops that ran one after the other, which is all that
//! the usual harnesses offer, are not comparable. Ratios within one repetition are, to about 2 %.
//!
//! `cargo bench -- WORD…` runs the cases whose name contains a word; `cargo bench -- --test` runs
//! each case once, to see that it works. One thread, unless a case says otherwise.

use std::hint::black_box;
use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use swath_kernels::peak;

/// Repetitions whose median counts.
const REPETITIONS: usize = 31;
/// Length of a timed run of a case, unless one call is longer.
const SAMPLE: f64 = 1e-3;
/// Length of a timed run of a yardstick.
const YARDSTICK_SAMPLE: f64 = 0.2e-3;
/// The f32 peak, in GFLOP/s, of the machine that times are scaled to.
pub const REFERENCE_PEAK: f64 = 247.0;

/// Two inputs and a result.
pub type Kernel = fn(&[f32], &[f32], &mut [f32]);

/// A piece of work that can be repeated: `run` does `amount` of something (bytes, operations).
pub struct Work<'a> {
    pub amount: f64,
    pub run: Box<dyn FnMut() + 'a>,
}

impl<'a> Work<'a> {
    pub fn new(amount: usize, run: impl FnMut() + 'a) -> Work<'a> {
        Work { amount: amount as f64, run: Box::new(run) }
    }

    /// The peak of fused multiply-adds of `f32` on one thread, in floating-point operations.
    pub fn fma_f32() -> Work<'a> {
        Work::new(peak::fma::<f32>(1000), || _ = peak::fma::<f32>(1000))
    }

    /// As [`Work::fma_f32`] for `f64`.
    pub fn fma_f64() -> Work<'a> {
        Work::new(peak::fma::<f64>(1000), || _ = peak::fma::<f64>(1000))
    }

    /// Reading `n` elements, in bytes.
    pub fn read(n: usize) -> Work<'a> {
        let x = values(n);
        Work::new(4 * n, move || _ = black_box(peak::read(black_box(&x))))
    }

    /// `kernel` on two inputs and a result of `n` elements, which so many threads share, in bytes.
    pub fn on_threads(threads: usize, n: usize, bytes: usize, kernel: Kernel) -> Work<'a> {
        let share = || (values(n / threads), values(n / threads), values(n / threads));
        let mut shares: Vec<_> = (0..threads).map(|_| share()).collect();
        let rounds = Work::rounds(bytes);
        Work::new(bytes * rounds, move || {
            std::thread::scope(|scope| {
                let mut shares = shares.iter_mut();
                let mine = shares.next();
                let run = move |(a, b, y): &mut (Values, Values, Values)| {
                    for _ in 0..rounds {
                        kernel(black_box(a), black_box(b), y);
                        black_box(&mut *y);
                    }
                };
                for share in shares {
                    scope.spawn(move || run(share));
                }
                mine.into_iter().for_each(run);
            });
        })
    }

    /// How often [`Work::on_threads`] goes over so many bytes before it returns: threads are spawned
    /// anew, so often that it does not count.
    pub fn rounds(bytes: usize) -> usize {
        ((1 << 27) / bytes).max(1)
    }

    /// Calls that take about `seconds`.
    fn calls_in(&mut self, seconds: f64) -> usize {
        self.time(1);
        let once = self.time(1).max(1e-9);
        // A second look, now that the first call's cold misses are gone and the clock's grain small.
        let calls = (0.1 * seconds / once).clamp(1.0, 1e6) as usize;
        let once = self.time(calls) / calls as f64;
        (seconds / once.max(1e-9)).clamp(1.0, 1e7) as usize
    }

    /// Seconds of so many calls.
    fn time(&mut self, calls: usize) -> f64 {
        let start = Instant::now();
        for _ in 0..calls {
            (self.run)();
        }
        start.elapsed().as_secs_f64()
    }
}

/// Medians of a case and of the yardsticks that ran beside it.
pub struct Measured {
    /// Seconds a call.
    pub seconds: f64,
    /// Amount a second.
    pub rate: f64,
    /// Of each yardstick: its own amount a second, and the case's rate over it in the same
    /// repetition.
    pub yardsticks: Vec<(f64, f64)>,
}

/// The command line.
pub struct Bench {
    once: bool,
    words: Vec<String>,
}

impl Bench {
    /// Reads the command line and prints what all cases have in common.
    pub fn from_args(title: &str) -> Bench {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
        // `cargo bench` passes --bench; without it the program is being tested.
        let once = has("--test") || !has("--bench");
        let words = arguments.iter().filter(|argument| !argument.starts_with('-')).cloned();
        println!("\n{title}: kernels run on {}", swath_kernels::isa());
        if once {
            println!("each case runs once: the figures mean nothing");
        }
        Bench { once, words: words.collect() }
    }

    /// Times `case` between the yardsticks; `None` if the command line leaves it out.
    pub fn measure(&self, name: &str, mut case: Work, yardsticks: &mut [Work]) -> Option<Measured> {
        if !self.words.is_empty() && !self.words.iter().any(|word| name.contains(word.as_str())) {
            return None;
        }
        let repetitions = if self.once { 1 } else { REPETITIONS };
        let calls = |work: &mut Work, seconds| if self.once { 1 } else { work.calls_in(seconds) };
        let case_calls = calls(&mut case, SAMPLE);
        let yardstick_calls: Vec<usize> =
            yardsticks.iter_mut().map(|work| calls(work, YARDSTICK_SAMPLE)).collect();

        let mut times = Vec::new();
        let mut rates = vec![Vec::new(); yardsticks.len()];
        let mut ratios = vec![Vec::new(); yardsticks.len()];
        for _ in 0..repetitions {
            let mut run_yardsticks = || -> Vec<f64> {
                let yardsticks = yardsticks.iter_mut().zip(&yardstick_calls);
                yardsticks
                    .map(|(work, &calls)| work.amount * calls as f64 / work.time(calls))
                    .collect()
            };
            let before = run_yardsticks();
            let time = case.time(case_calls) / case_calls as f64;
            let after = run_yardsticks();
            times.push(time);
            for (i, (before, after)) in before.into_iter().zip(after).enumerate() {
                let rate = (before + after) / 2.0;
                rates[i].push(rate);
                ratios[i].push(case.amount / time / rate);
            }
        }
        let seconds = median(times);
        Some(Measured {
            seconds,
            rate: case.amount / seconds,
            yardsticks: rates.into_iter().map(median).zip(ratios.into_iter().map(median)).collect(),
        })
    }
}

/// The middle value.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// `n` different values in [-4, 4), without a pattern that a branch predictor could learn.
pub fn values(n: usize) -> Values {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 21) as f32 - 4.0
    };
    // Start on a cache line, and not all on the same line of their pages: loads that follow stores
    // to the same offset of another page wait for them.
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let line = COUNT.fetch_add(5, Ordering::Relaxed) % 64;
    let memory: Vec<f32> = (0..n + 65 * 16).map(|_| next()).collect();
    let start = memory.as_ptr().align_offset(64) + line * 16;
    Values { memory, range: start..start + n }
}

/// A slice that starts on a cache line.
pub struct Values {
    memory: Vec<f32>,
    range: Range<usize>,
}

impl Deref for Values {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.memory[self.range.clone()]
    }
}

impl DerefMut for Values {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.memory[self.range.clone()]
    }
}

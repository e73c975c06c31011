//! Limits: the least work that a case can be, and the speed at which the machine does it, which is measured
//! by the loops of [`peak`].

use std::fmt;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use criterion::Throughput;
use swath_kernels::peak;

use super::values::{Values, values};

/// Shortest timed run of a loop, in seconds.
const RUN_SECONDS: f64 = 4e-3;
/// Timed runs of a loop, of which the median is taken.
const RUNS: usize = 5;

/// A loop of [`peak`] over two inputs and an output.
type Loop = fn(&[f32], &[f32], &mut [f32]);

/// Kind of work.
#[derive(Clone, Copy)]
enum Work {
    FmaF32,
    FmaF64,
    Read,
    Copy,
    Triad,
}

impl Work {
    /// Returns the loops that do the work, with ordinary and with non-temporal stores. The fastest is taken.
    fn loops(self) -> &'static [Loop] {
        match self {
            Work::FmaF32 => &[|_, _, _| _ = peak::fma::<f32>(1000)],
            Work::FmaF64 => &[|_, _, _| _ = peak::fma::<f64>(1000)],
            Work::Read => &[|a, _, _| _ = black_box(peak::read(a))],
            Work::Copy => &[|a, _, y| peak::copy(a, y), |a, _, y| peak::copy_streaming(a, y)],
            Work::Triad => &[peak::triad, peak::triad_streaming],
        }
    }

    /// True for each array of a [`Loop`] that the work uses.
    fn arrays(self) -> [bool; 3] {
        match self {
            Work::FmaF32 | Work::FmaF64 => [false; 3],
            Work::Read => [true, false, false],
            Work::Copy => [true, false, true],
            Work::Triad => [true; 3],
        }
    }

    /// Returns the bytes of the arrays used, each of `n` elements of `f32`.
    fn bytes(self, n: usize) -> usize {
        4 * n * self.arrays().iter().filter(|used| **used).count()
    }
}

/// The least work that a case can be, and the number of threads that share it.
#[derive(Clone, Copy)]
pub struct Limit {
    work: Work,
    threads: usize,
    /// Bytes, or floating-point operations.
    amount: usize,
    /// Elements of each array on which the speed is measured, over all threads.
    elements: usize,
}

impl Limit {
    /// Floating-point operations, as fused multiply-adds of `f32`.
    pub fn fma_f32(threads: usize, operations: usize) -> Limit {
        Limit { work: Work::FmaF32, threads, amount: operations, elements: 0 }
    }

    /// Floating-point operations, as fused multiply-adds of `f64`.
    pub fn fma_f64(threads: usize, operations: usize) -> Limit {
        Limit { work: Work::FmaF64, ..Limit::fma_f32(threads, operations) }
    }

    /// Reading `n` elements of `f32`.
    pub fn read(threads: usize, n: usize) -> Limit {
        Limit::memory(Work::Read, threads, n)
    }

    /// Reading `n` elements of `f32` and writing as many.
    pub fn copy(threads: usize, n: usize) -> Limit {
        Limit::memory(Work::Copy, threads, n)
    }

    /// Reading `n` elements of `f32` from each of two arrays and writing as many.
    pub fn triad(threads: usize, n: usize) -> Limit {
        Limit::memory(Work::Triad, threads, n)
    }

    fn memory(work: Work, threads: usize, n: usize) -> Limit {
        Limit { work, threads, amount: work.bytes(n), elements: n }
    }

    /// Measures the speed on arrays of `n` elements instead, such as arrays that do not fit the caches.
    pub fn measured_on(self, n: usize) -> Limit {
        Limit { elements: n, ..self }
    }

    /// Returns the work in criterion's terms.
    pub fn throughput(&self) -> Throughput {
        match self.work {
            Work::FmaF32 | Work::FmaF64 => Throughput::Elements(self.amount as u64),
            _ => Throughput::BytesDecimal(self.amount as u64),
        }
    }

    /// Returns the unit of [`rate`](Self::rate) divided by 10⁹.
    pub fn unit(&self) -> &'static str {
        match self.work {
            Work::FmaF32 | Work::FmaF64 => "GFLOP/s",
            _ => "GB/s",
        }
    }

    /// Returns the name of the kind of work.
    pub fn name(&self) -> &'static str {
        match self.work {
            Work::FmaF32 => "the f32 FMA peak",
            Work::FmaF64 => "the f64 FMA peak",
            Work::Read => "one read",
            Work::Copy => "one copy",
            Work::Triad => "one triad",
        }
    }

    /// Returns the seconds that the work takes at a rate in bytes or operations per second.
    pub fn seconds(&self, rate: f64) -> f64 {
        self.amount as f64 / rate
    }

    /// Measures the rate of the machine, in bytes or operations per second.
    pub fn rate(&self) -> f64 {
        let share = self.elements / self.threads;
        let array = |used| values(if used { share } else { 0 });
        let mut arrays: Vec<_> = (0..self.threads).map(|_| self.work.arrays().map(array)).collect();
        let amount = match self.work {
            Work::FmaF32 => peak::fma::<f32>(1000),
            Work::FmaF64 => peak::fma::<f64>(1000),
            _ => self.work.bytes(share),
        };
        let seconds =
            self.work.loops().iter().map(|peak_loop| seconds_per_pass(*peak_loop, &mut arrays));
        (amount * self.threads) as f64 / seconds.fold(f64::INFINITY, f64::min)
    }
}

/// Prints the kind of work and the number of threads, without the amount.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if self.threads > 1 { write!(f, " by {} threads", self.threads) } else { Ok(()) }
    }
}

/// Returns the seconds per pass of a loop that each thread runs over arrays of its own: the median of several
/// runs.
fn seconds_per_pass(peak_loop: Loop, arrays: &mut [[Values; 3]]) -> f64 {
    let mut passes = 1;
    // The shorter of two times is compared: another program may take the core during one of them.
    let mut twice = |passes| [(); 2].map(|()| time(peak_loop, &mut arrays[0], passes));
    while twice(passes).into_iter().fold(f64::INFINITY, f64::min) < RUN_SECONDS {
        passes *= 2;
    }
    let mut run = || {
        let barrier = &Barrier::new(arrays.len());
        thread::scope(|scope| {
            let start = |arrays| {
                scope.spawn(move || {
                    barrier.wait();
                    time(peak_loop, arrays, passes)
                })
            };
            let threads: Vec<_> = arrays.iter_mut().map(start).collect();
            let times =
                threads.into_iter().map(|thread| thread.join().expect("the loop does not panic"));
            times.fold(0.0, f64::max) / passes as f64
        })
    };
    let mut seconds: Vec<f64> = (0..RUNS).map(|_| run()).collect();
    seconds.sort_by(f64::total_cmp);
    seconds[RUNS / 2]
}

/// Returns the seconds that `passes` passes of a loop take.
fn time(peak_loop: Loop, [a, b, y]: &mut [Values; 3], passes: usize) -> f64 {
    let start = Instant::now();
    for _ in 0..passes {
        peak_loop(black_box(a), black_box(b), y);
        black_box(&mut *y);
    }
    start.elapsed().as_secs_f64()
}

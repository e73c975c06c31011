//! Reductions of a `[4096, 1024]` matrix of `f32` through `Tensor`, on one thread and on two: the time
//! over that of one read of as many bytes by as many threads, and the target for it; then slices in the
//! caches, over a read from there.

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod support;

use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Thread;

use support::{Bench, Work, values};
use swath::prelude::*;
use swath_kernels as kernels;
use swath_kernels::peak;

const ROWS: usize = 4096;
const COLUMNS: usize = 1024;

type T = Tensor<CpuBackend>;

/// A reduction; times over one read that are wanted on one thread and on two.
type Case = (&'static str, fn(&T) -> Result<T>, Option<[f64; 2]>);

const ONE_READ: Option<[f64; 2]> = Some([1.05, 1.1]);
const PLACE: Option<[f64; 2]> = Some([1.1, 1.15]);

const CASES: [Case; 24] = [
    ("sum", |x| x.sum(None, false), ONE_READ),
    ("sum axis 1", |x| x.sum_axis(1, false), ONE_READ),
    ("sum axis 0", |x| x.sum_axis(0, false), Some([1.05, 1.15])),
    ("mean", |x| x.mean(None, false), ONE_READ),
    ("mean axis 1", |x| x.mean_axis(1, false), ONE_READ),
    ("max", |x| x.max(None, false), ONE_READ),
    ("max axis 1", |x| x.max_axis(1, false), ONE_READ),
    ("max axis 0", |x| x.max_axis(0, false), None),
    ("min", |x| x.min(None, false), ONE_READ),
    ("min axis 1", |x| x.min_axis(1, false), ONE_READ),
    ("argmax axis 1", |x| x.argmax(1, false), PLACE),
    ("argmin axis 1", |x| x.argmin(1, false), PLACE),
    ("argmax axis 0", |x| x.argmax(0, false), None),
    ("argmax all", T::argmax_all, None),
    ("variance axis 1", |x| x.variance_axis(1, false, 1), Some([1.3, 1.3])),
    ("variance axis 0", |x| x.variance_axis(0, false, 1), None),
    ("variance all", |x| x.variance(None, false, 1), None),
    ("norm axis 1", |x| x.norm_axis(2.0, 1, false), None),
    ("prod axis 1", |x| x.prod_axis(1, false), None),
    ("logsumexp axis 1", |x| x.logsumexp_axis(1, false), None),
    ("sum of rows of 8", |x| rows_of_8(x)?.sum_axis(1, false), None),
    ("max of rows of 8", |x| rows_of_8(x)?.max_axis(1, false), None),
    ("variance of rows of 8", |x| rows_of_8(x)?.variance_axis(1, false, 1), None),
    ("logsumexp of rows of 8", |x| rows_of_8(x)?.logsumexp_axis(1, false), None),
];

fn rows_of_8(x: &T) -> Result<T> {
    x.reshape((ROWS * COLUMNS / 8, 8))
}

fn main() -> Result<()> {
    let bench = Bench::from_args("reduce");
    println!(
        "{:26} {:>7} {:>12} {:>8} {:>14} {:>7}",
        "", "threads", "time", "GB/s", "over one read", "target"
    );
    let elements = ROWS * COLUMNS;
    let x = T::from_slice(&values(elements), (ROWS, COLUMNS))?;
    for threads in [1, 2] {
        swath::runtime::set_threads(threads)?;
        for (name, reduce, targets) in CASES {
            let case = Work::new(4 * elements, || {
                black_box(reduce(black_box(&x)).expect("the axis exists"));
            });
            let read = if threads == 1 { Work::read(FAR) } else { read_by_two(FAR) };
            report(&bench, name, threads, case, read, targets.map(|targets| targets[threads - 1]));
        }
    }

    for size in [4096, 262_144] {
        let (x, y) = (values(size), values(size));
        type OfSlice = fn(&[f32]) -> f32;
        let cases: [(&str, OfSlice); 5] = [
            ("sum", kernels::sum),
            ("max", |x| kernels::max(x).unwrap_or(0.0)),
            ("argmax", |x| kernels::argmax(x).unwrap_or(0) as f32),
            ("variance", |x| kernels::variance(x, 1)),
            ("norm2", kernels::norm2),
        ];
        for (name, reduce) in cases {
            let case = Work::new(4 * size, || _ = black_box(reduce(black_box::<&[f32]>(&x))));
            report(&bench, &format!("slice {name} {size}"), 1, case, Work::read(size), None);
        }
        let dot =
            Work::new(8 * size, || _ = black_box(kernels::dot(black_box::<&[f32]>(&x), &y[..])));
        report(&bench, &format!("slice dot {size}"), 1, dot, Work::read(size), None);
    }
    Ok(())
}

fn report(bench: &Bench, name: &str, threads: usize, case: Work, read: Work, target: Option<f64>) {
    if let Some(measured) = bench.measure(name, case, &mut [read]) {
        let target = target.map_or(String::new(), |target| format!("{target:.2}"));
        println!(
            "{name:26} {threads:7} {:9.1} us {:8.1} {:14.3} {target:>7}",
            measured.seconds * 1e6,
            measured.rate / 1e9,
            1.0 / measured.yardsticks[0].1,
        );
    }
}

/// Elements of a read: more than the caches hold, so that neither it nor the case finds there what it
/// has read the last time; and so many that what waking a second thread costs is a small part.
const FAR: usize = 8 * ROWS * COLUMNS;

/// Reading `n` elements, in bytes, half of them by a second thread.
fn read_by_two(n: usize) -> Work<'static> {
    /// Rounds asked for, and done; `usize::MAX` asks the thread to end.
    #[derive(Default)]
    struct Rounds {
        asked: AtomicUsize,
        done: AtomicUsize,
    }
    struct Helper(Arc<Rounds>, Thread);
    impl Drop for Helper {
        fn drop(&mut self) {
            self.0.asked.store(usize::MAX, Ordering::Release);
            self.1.unpark();
        }
    }

    let rounds = Arc::new(Rounds::default());
    let of_thread = Arc::clone(&rounds);
    let thread = std::thread::spawn(move || {
        let half = values(n - n / 2);
        for round in 1.. {
            // Not awake between: the case needs both cores.
            while of_thread.asked.load(Ordering::Acquire) < round {
                std::thread::park();
            }
            if of_thread.asked.load(Ordering::Acquire) == usize::MAX {
                return;
            }
            black_box(peak::read(black_box(&half)));
            of_thread.done.store(round, Ordering::Release);
        }
    });
    let helper = Helper(rounds, thread.thread().clone());
    let half = values(n / 2);
    let mut round = 0;
    Work::new(4 * n, move || {
        round += 1;
        helper.0.asked.store(round, Ordering::Release);
        helper.1.unpark();
        black_box(peak::read(black_box(&half)));
        while helper.0.done.load(Ordering::Acquire) < round {
            spin_loop();
        }
    })
}

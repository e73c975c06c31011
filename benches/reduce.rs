//! Reductions of a `[4096, 1024]` matrix of `f32`, through `Tensor` and as slice calls: GB/s and the
//! share of the bandwidth of one pass that reads the same data; sums and dots of slices in the
//! caches.

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod support;

use std::hint::black_box;
use support::{Bench, Work, values};
use swath::prelude::*;
use swath_kernels as kernels;

const ROWS: usize = 4096;
const COLUMNS: usize = 1024;

type T = Tensor<CpuBackend>;

fn main() -> Result<()> {
    swath::runtime::set_threads(1)?;
    let bench = Bench::from_args("reduce");
    println!("{:26} {:>12} {:>8} {:>13}", "", "time", "GB/s", "of bandwidth");

    for size in [4096, 262_144] {
        let (x, y) = (values(size), values(size));
        let sum = Work::new(4 * size, || _ = black_box(kernels::sum(black_box::<&[f32]>(&x))));
        report(&bench, &format!("slice sum {size}"), sum, size);
        let max = Work::new(4 * size, || _ = black_box(kernels::max(black_box::<&[f32]>(&x))));
        report(&bench, &format!("slice max {size}"), max, size);
        let dot =
            Work::new(8 * size, || _ = black_box(kernels::dot(black_box::<&[f32]>(&x), &y[..])));
        report(&bench, &format!("slice dot {size}"), dot, size);
    }

    let x = T::from_slice(&values(ROWS * COLUMNS), (ROWS, COLUMNS))?;
    type Case = (&'static str, fn(&T) -> Result<T>);
    let cases: [Case; 6] = [
        ("sum", |x| x.sum(None, false)),
        ("sum axis 0", |x| x.sum(Some(&[0]), false)),
        ("sum axis 1", |x| x.sum(Some(&[1]), false)),
        ("max", |x| x.max(None, false)),
        ("max axis 0", |x| x.max(Some(&[0]), false)),
        ("max axis 1", |x| x.max(Some(&[1]), false)),
    ];
    for (name, reduce) in cases {
        let case = Work::new(4 * ROWS * COLUMNS, || {
            black_box(reduce(black_box(&x)).expect("the axis exists"));
        });
        report(&bench, name, case, ROWS * COLUMNS);
    }
    Ok(())
}

fn report(bench: &Bench, name: &str, case: Work, elements: usize) {
    if let Some(measured) = bench.measure(name, case, &mut [Work::read(elements)]) {
        println!(
            "{name:26} {:9.1} us {:8.1} {:13.3}",
            measured.seconds * 1e6,
            measured.rate / 1e9,
            measured.yardsticks[0].1,
        );
    }
}

//! Layouts through `Tensor`, on one thread and on two: GB/s of the bytes that must be touched, and the
//! time over that of the machine's own copy or triad of as many bytes in the same repetition, with
//! ordinary or with non-temporal stores, whichever is faster. The last column is what is aimed at.

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod support;

use std::hint::black_box;
use support::{Bench, Kernel, Work, values};
use swath::prelude::*;
use swath_kernels::peak;

fn main() -> Result<()> {
    let bench = Bench::from_args("layout");
    println!("{:40} {:>12} {:>8} {:>12} {:>8}", "", "time", "GB/s", "over limit", "target");
    for threads in [1, 2] {
        swath::runtime::set_threads(threads)?;
        let name = |case: &str| format!("{case} T{threads}");
        for size in [1024, 4096] {
            let n = size * size;
            let matrix = || Tensor::<CpuBackend>::from_slice(&values(n), (size, size));
            let (a, b) = (matrix()?, matrix()?);
            let transposed = a.t()?;
            if size == 1024 {
                let row = Tensor::<CpuBackend>::from_slice(&values(size), size)?;
                let column = row.unsqueeze(1)?;
                for (case, other) in [("a + row 1024", &row), ("a + column 1024", &column)] {
                    report(&bench, &name(case), threads, n, Limit::Copy, Some(1.05), || {
                        a.add(other)
                    });
                }
                let scalar = || a.add_scalar(0.5);
                report(
                    &bench,
                    &name("a + scalar 1024"),
                    threads,
                    n,
                    Limit::Copy,
                    Some(1.05),
                    scalar,
                );
                let sum = || transposed.add(&b);
                report(&bench, &name("a.t() + b 1024"), threads, n, Limit::Triad, Some(1.3), sum);
                let flat = a.reshape((n / 4, 4))?;
                let row = row.narrow(0, 0, 4)?;
                let sum = || flat.add(&row);
                let case = name("rows of 4 + row");
                report(&bench, &case, threads, n, Limit::Copy, None, sum);
                let [left, right] = [flat.narrow(1, 0, 1)?, flat.narrow(1, 1, 3)?];
                let (left, right) = (left.contiguous()?, right.contiguous()?);
                let joined = || Tensor::cat(&[&left, &right], 1);
                report(
                    &bench,
                    &name("cat of 1 and 3 columns"),
                    threads,
                    n,
                    Limit::Copy,
                    None,
                    joined,
                );
                continue;
            }
            let sum = || transposed.add(&b);
            report(&bench, &name("a.t() + b 4096"), threads, n, Limit::Triad, Some(1.9), sum);
            let copy = || transposed.contiguous();
            report(
                &bench,
                &name("a.t() contiguous 4096"),
                threads,
                n,
                Limit::Copy,
                Some(1.6),
                copy,
            );
            let images = a.reshape((32, 64, 128, 64))?.permute(&[0, 2, 1, 3])?;
            let copy = || images.contiguous();
            let case = name("permute(0, 2, 1, 3) [32, 64, 128, 64]");
            report(&bench, &case, threads, n, Limit::Copy, Some(1.2), copy);
            for width in [2, 3, 4, 16] {
                let heads = n / (32 * 256 * width);
                let short = a.reshape(n)?.narrow(0, 0, 32 * 256 * width * heads)?;
                let short = short.reshape((32, 256, heads, width))?.permute(&[0, 2, 1, 3])?;
                let case = name(&format!("permute(0, 2, 1, 3), runs of {width}"));
                let copy = || short.contiguous();
                report(&bench, &case, threads, n, Limit::Copy, None, copy);
            }
            for (rows, cols) in [(3, 65_536), (2, 2), (4, 4)] {
                let matrices = n / (rows * cols);
                let narrow = a.reshape(n)?.narrow(0, 0, matrices * rows * cols)?;
                let narrow = narrow.reshape((matrices, rows, cols))?.permute(&[0, 2, 1])?;
                let case = name(&format!("[n, {rows}, {cols}].permute(0, 2, 1)"));
                let copy = || narrow.contiguous();
                report(&bench, &case, threads, n, Limit::Copy, None, copy);
            }
            let backwards = a.flip(1)?.t()?;
            let sum = || backwards.add(&b);
            report(&bench, &name("a.flip(1).t() + b 4096"), threads, n, Limit::Triad, None, sum);
            let sum = || a.add(&b);
            report(&bench, &name("a + b 4096"), threads, n, Limit::Triad, Some(1.1), sum);
        }
    }
    Ok(())
}

/// What the machine does as often as the case has elements.
#[derive(Clone, Copy)]
enum Limit {
    Copy,
    Triad,
}

/// Times `case`, of `n` elements, beside the limit.
fn report(
    bench: &Bench,
    name: &str,
    threads: usize,
    n: usize,
    limit: Limit,
    target: Option<f64>,
    case: impl Fn() -> Result<Tensor<CpuBackend>>,
) {
    let (bytes, kernels): (usize, [Kernel; 2]) = match limit {
        Limit::Copy => (8 * n, [|a, _, y| peak::copy(a, y), |a, _, y| peak::copy_streaming(a, y)]),
        Limit::Triad => (12 * n, [peak::triad, peak::triad_streaming]),
    };
    let mut limits = kernels.map(|kernel| Work::on_threads(threads, n, bytes, kernel));
    // As often in a row as the limit, so that both find in the caches what they left there.
    let rounds = Work::rounds(bytes);
    let case = Work::new(bytes * rounds, || {
        for _ in 0..rounds {
            black_box(case().expect("shapes fit"));
        }
    });
    if let Some(measured) = bench.measure(name, case, &mut limits) {
        let target = target.map_or("–".to_owned(), |target| format!("{target:.2}"));
        let share = measured.yardsticks.iter().map(|limit| limit.1).fold(f64::INFINITY, f64::min);
        println!(
            "{name:40} {:9.1} us {:8.1} {:12.3} {target:>8}",
            measured.seconds * 1e6 / rounds as f64,
            measured.rate / 1e9,
            1.0 / share,
        );
    }
}

//! Layouts through `Tensor`: the sum of a transposed and a contiguous matrix beside the sum of two
//! contiguous ones; GB/s of the bytes that must be touched, the share of a triad's bandwidth at the
//! same size, and the time over that of the contiguous sum in the same repetition.

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod support;

use std::hint::black_box;
use support::{Bench, Work, values};
use swath::prelude::*;

fn main() -> Result<()> {
    swath::runtime::set_threads(1)?;
    let bench = Bench::from_args("layout");
    println!(
        "{:26} {:>12} {:>8} {:>13} {:>16}",
        "", "time", "GB/s", "of bandwidth", "over contiguous"
    );
    for size in [256, 1024] {
        let matrix = || Tensor::<CpuBackend>::from_slice(&values(size * size), (size, size));
        let (a, b) = (matrix()?, matrix()?);
        let row = Tensor::<CpuBackend>::from_slice(&values(size), size)?;
        let column = row.unsqueeze(1)?;
        let cases = [
            ("a + b", a.clone(), b.clone()),
            ("a.t() + b", a.t()?, b.clone()),
            ("a.t() + b.t()", a.t()?, b.t()?),
            ("a + row", a.clone(), row),
            ("a + column", a.clone(), column),
        ];
        for (name, x, y) in cases {
            report(&bench, &format!("{name} {size}"), [&x, &y], [&a, &b])?;
        }
    }
    Ok(())
}

type Pair<'a> = [&'a Tensor<CpuBackend>; 2];

/// Times the sum of `pair` beside that of `contiguous`.
fn report(bench: &Bench, name: &str, pair: Pair, contiguous: Pair) -> Result<()> {
    let elements = pair[0].numel();
    let sum = |[x, y]: Pair| {
        black_box(black_box(x).add(black_box(y)).expect("shapes fit"));
    };
    // What an operand that is repeated does not move, counts neither in the case nor in the triad.
    let bytes = 4 * (pair[0].numel() + pair[1].numel() + elements);
    let mut beside = [Work::triad(elements), Work::new(12 * elements, || sum(contiguous))];
    let case = Work::new(bytes, || sum(pair));
    if let Some(measured) = bench.measure(name, case, &mut beside) {
        let over = 1.0 / (measured.yardsticks[1].1 * 12.0 * elements as f64 / bytes as f64);
        println!(
            "{name:26} {:9.1} us {:8.1} {:13.3} {over:16.3}",
            measured.seconds * 1e6,
            measured.rate / 1e9,
            measured.yardsticks[0].1,
        );
    }
    Ok(())
}

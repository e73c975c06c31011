//! Reductions of `f32`: of a `[4096, 1024]` tensor, for which the limit is reading as many elements from
//! memory, then of slices in the caches, for which the limit is reading them from there.

#[allow(dead_code, reason = "each benchmark uses only a part of the module")]
mod support;

use std::hint::black_box;

use support::values::values;
use support::{Limit, Suite};
use swath::prelude::*;
use swath_kernels as kernels;

const ROWS: usize = 4096;
const COLUMNS: usize = 1024;

/// Elements that do not fit the caches: the array on which reading from memory is measured.
const LARGE: usize = 8 * ROWS * COLUMNS;

type T = Tensor<CpuBackend>;

fn main() -> Result<()> {
    let mut suite = Suite::from_args();
    let x = T::from_slice(&values(ROWS * COLUMNS), (ROWS, COLUMNS))?;
    let short = x.reshape((ROWS * COLUMNS / 8, 8))?;
    for threads in [1, 2] {
        let mut group = suite.group_on(threads, "reduce")?;
        let limit = Limit::read(threads, ROWS * COLUMNS).measured_on(LARGE);
        let mut case = |name: &str, run: &dyn Fn() -> Result<T>| group.tensor(name, limit, run);
        case("sum", &|| x.sum(None, false));
        case("sum axis 1", &|| x.sum_axis(1, false));
        case("sum axis 0", &|| x.sum_axis(0, false));
        case("mean", &|| x.mean(None, false));
        case("mean axis 1", &|| x.mean_axis(1, false));
        case("max", &|| x.max(None, false));
        case("max axis 1", &|| x.max_axis(1, false));
        case("max axis 0", &|| x.max_axis(0, false));
        case("min", &|| x.min(None, false));
        case("min axis 1", &|| x.min_axis(1, false));
        case("argmax axis 1", &|| x.argmax(1, false));
        case("argmin axis 1", &|| x.argmin(1, false));
        case("argmax axis 0", &|| x.argmax(0, false));
        case("argmax all", &|| x.argmax_all());
        case("variance axis 1", &|| x.variance_axis(1, false, 1));
        case("variance axis 0", &|| x.variance_axis(0, false, 1));
        case("variance all", &|| x.variance(None, false, 1));
        case("norm axis 1", &|| x.norm_axis(2.0, 1, false));
        case("prod axis 1", &|| x.prod_axis(1, false));
        case("logsumexp axis 1", &|| x.logsumexp_axis(1, false));
        case("sum of rows of 8", &|| short.sum_axis(1, false));
        case("max of rows of 8", &|| short.max_axis(1, false));
        case("variance of rows of 8", &|| short.variance_axis(1, false, 1));
        case("logsumexp of rows of 8", &|| short.logsumexp_axis(1, false));
    }

    let mut group = suite.group("reduce_slice");
    for size in [4096, 262_144] {
        let (x, y) = (values(size), values(size));
        let mut case = |name: &str, arrays: usize, run: &dyn Fn(&[f32]) -> f32| {
            let limit = Limit::read(1, arrays * size).measured_on(size);
            group.case(&format!("{name}/{size}"), limit, || || run(black_box(&x)));
        };
        case("sum", 1, &kernels::sum);
        case("max", 1, &|x| kernels::max(x).unwrap_or(0.0));
        case("argmax", 1, &|x| kernels::argmax(x).unwrap_or(0) as f32);
        case("variance", 1, &|x| kernels::variance(x, 1));
        case("norm2", 1, &kernels::norm2);
        case("dot", 2, &|x| kernels::dot(x, &y[..]));
    }
    drop(group);
    suite.finish();
    Ok(())
}

//! Sorting, selection, quantiles, counts and samples of `f32`. The limit is reading the elements once.

#[allow(dead_code, reason = "each benchmark uses only a part of the module")]
mod support;

use support::values::values;
use support::{Limit, Suite};
use swath::prelude::*;

const LONG: usize = 1 << 20;

/// Logits of a batch over the vocabulary of GPT-2.
const BATCH: usize = 64;
const VOCABULARY: usize = 50_257;

type T = Tensor<CpuBackend>;

fn main() -> Result<()> {
    let mut suite = Suite::from_args();
    let line = T::from_slice(&values(LONG), LONG)?;
    let rows = line.reshape((1024, 1024))?;
    let logits = T::from_slice(&values(BATCH * VOCABULARY), (BATCH, VOCABULARY))?;
    let weights = logits.softmax(-1)?;
    let numbers = line.mul(100.0)?.abs()?.to_dtype(DType::I64)?;
    let (sorted, _) = line.narrow(0, 0, 1000)?.sort(0, false)?;
    for threads in [1, 2] {
        let mut group = suite.group_on(threads, "order")?;
        let limit = Limit::read(threads, LONG);
        let mut case = |name: &str, run: &dyn Fn() -> Result<T>| group.tensor(name, limit, run);
        case("sort of 1048576", &|| Ok(line.sort(0, false)?.0));
        case("sort of 1024 rows of 1024", &|| Ok(rows.sort(1, false)?.0));
        case("sort of 1024 columns of 1024", &|| Ok(rows.sort(0, false)?.0));
        case("median of 1024 rows of 1024", &|| rows.median(1, false));
        case("cummax of 1024 rows of 1024", &|| Ok(rows.cummax(1)?.0));
        case("unique of 1048576", &|| Ok(numbers.unique()?.0));
        case("bincount of 1048576", &|| numbers.bincount(0));
        case("histogram of 1048576 in 100 bins", &|| line.histogram(100, -4.0..4.0));
        case("searchsorted of 1048576 in 1000", &|| line.searchsorted(&sorted));
        let limit = Limit::read(threads, BATCH * VOCABULARY);
        let mut case = |name: &str, run: &dyn Fn() -> Result<T>| group.tensor(name, limit, run);
        case("topk of 10 of 64 rows of 50257", &|| Ok(logits.topk(10, -1)?.0));
        case("topk of 1000 of 64 rows of 50257", &|| Ok(logits.topk(1000, -1)?.0));
        case("multinomial of 64 rows of 50257", &|| weights.multinomial(1, &mut Rng::seed(1)));
    }
    suite.finish();
    Ok(())
}

//! Costs of a call and of a node of the graph, which are most of the time of small tensors: an addition of 8
//! elements, and a chain of 10,000 multiplications of one element, so that 100 µs are 10 ns a node. The limit
//! is the same arithmetic on one array.

#[allow(dead_code, reason = "each benchmark uses only a part of the module")]
mod support;

use support::cases::{FACTOR, NODES};
use support::values::values;
use support::{Group, Limit, Suite};
use swath::AnyBackend;
use swath::prelude::*;

type T = Tensor<CpuBackend>;

fn main() -> Result<()> {
    let mut suite = Suite::from_args();
    overheads(suite.group_on(1, "overheads")?)?;
    suite.finish();
    Ok(())
}

/// Times the calls with untracked operands, then with tracked ones.
fn overheads(mut group: Group) -> Result<()> {
    let (a, b) = (T::from_slice(&values(8), 8)?, T::ones(8, DType::F32)?);
    let x = T::ones(1, DType::F32)?;
    let (triad, copy) = (Limit::triad(1, 8), Limit::copy(1, NODES));
    group.tensor("add of 8", triad, || a.add(&b));
    group.case("add of 8 by AnyBackend", triad, || {
        let there = |x: &T| x.to_backend::<AnyBackend>().expect("the CPU is there");
        let (a, b) = (there(&a), there(&b));
        move || a.add(&b).expect("shapes and dtypes match")
    });
    group.tensor("chain", copy, || chain(&x));

    let [a, b, x] = [a, b, x].map(|tensor| tensor.requires_grad());
    group.tensor("add of 8 tracked", triad, || a.add(&b));
    group.tensor("chain tracked", copy, || chain(&x));
    group.case("chain backward", copy, || {
        let run = || chain(&x)?.backward();
        move || run().expect("the chain is tracked")
    });
    Ok(())
}

/// Multiplies `x` by a number again and again.
fn chain(x: &T) -> Result<T> {
    (0..NODES).try_fold(x.clone(), |y, _| y.mul_scalar(FACTOR))
}

//! Optimizers, schedules, clipping, accumulation.

mod learning;
mod leaves;
mod options;
mod schedules;
mod steps;
mod torch;

use swath::prelude::*;

type T = Tensor<CpuBackend>;

fn randn(shape: impl Into<Shape>, seed: u64) -> T {
    T::randn(shape, &mut Rng::seed(seed)).unwrap()
}

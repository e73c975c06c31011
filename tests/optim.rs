//! Optimizers, schedules, clipping, accumulation.

#[path = "optim/learning.rs"]
mod learning;
#[path = "optim/schedules.rs"]
mod schedules;
#[path = "optim/steps.rs"]
mod steps;
#[path = "optim/torch.rs"]
mod torch;
#[path = "nn/vectors.rs"]
mod vectors;

use swath::prelude::*;

type T = Tensor<CpuBackend>;

fn randn(shape: impl Into<Shape>, seed: u64) -> T {
    T::randn(shape, &mut Rng::seed(seed)).unwrap()
}

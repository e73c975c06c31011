//! What training refuses, and what it keeps: options, norms, frozen parameters, files, ranks, settings.

mod files;
mod freezing;
mod options;
mod runtime;

use swath::prelude::*;

type T = Tensor<CpuBackend>;

fn text<V>(result: Result<V>) -> String {
    result.err().expect("should be an error").to_string()
}

fn randn(shape: impl Into<Shape>, seed: u64) -> T {
    T::randn(shape, &mut Rng::seed(seed)).unwrap()
}

//! Layers, losses and the tree of a model's parts.

mod images;
mod init;
mod layers;
mod losses;
mod torch;
mod tree;

use swath::nn::{self, Kind, Visit};
use swath::prelude::*;

type T = Tensor<CpuBackend>;

fn randn(shape: impl Into<Shape>, seed: u64) -> T {
    T::randn(shape, &mut Rng::seed(seed)).unwrap()
}

/// The model's parameters by path.
fn parameters(model: &(impl Visit<CpuBackend> + ?Sized)) -> Vec<(String, T)> {
    let mut found = Vec::new();
    nn::for_each_tensor(model, |path, tensor, kind| {
        if kind == Kind::Parameter {
            found.push((path.to_owned(), tensor.clone()));
        }
    });
    found
}

fn paths(model: &(impl Visit<CpuBackend> + ?Sized)) -> Vec<String> {
    let mut found = Vec::new();
    nn::for_each_tensor(model, |path, _, _| found.push(path.to_owned()));
    found
}

//! Layers, losses and the tree that a model is.

#[path = "nn/init.rs"]
mod init;
#[path = "nn/layers.rs"]
mod layers;
#[path = "nn/losses.rs"]
mod losses;
#[path = "nn/torch.rs"]
mod torch;
#[path = "nn/tree.rs"]
mod tree;
#[path = "nn/vectors.rs"]
mod vectors;

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

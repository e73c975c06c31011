//! The network: two convolutions with batch normalization and pooling, and two linear layers.

use swath::nn::{
    Activation, BatchNorm2d, Conv2d, ConvLayerOptions, Flatten, Linear, MaxPool2d, Sequential,
};
use swath::prelude::*;
use swath::{ConvOptions, Padding, PoolOptions};

/// Returns a network from images `[n, 1, 28, 28]` to logits `[n, 10]`.
pub fn network<B: Backend>(rng: &mut Rng) -> Result<Sequential<B>> {
    let conv = ConvOptions { padding: Padding::Same, ..Default::default() };
    // Batch normalization subtracts the mean, and a bias with it.
    let options = ConvLayerOptions { conv, bias: false, ..Default::default() };
    Ok(Sequential::new()
        .push(Conv2d::with_options(1, 16, [3, 3], options, rng)?)
        .push(BatchNorm2d::new(16)?)
        .push(Activation::Relu)
        .push(MaxPool2d(PoolOptions::default()))
        .push(Conv2d::with_options(16, 32, [3, 3], options, rng)?)
        .push(BatchNorm2d::new(32)?)
        .push(Activation::Relu)
        .push(MaxPool2d(PoolOptions::default()))
        .push(Flatten)
        .push(Linear::new(32 * 7 * 7, 64, rng)?)
        .push(Activation::Relu)
        .push(Linear::new(64, 10, rng)?))
}

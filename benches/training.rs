//! Training steps of a GPT (width 128, 4 heads, 4 layers, context 128, batch 16, vocabulary 128, AdamW) and
//! of a perceptron (784-256-128-10, batch 64, Adam). The limit is the time of the matrix products alone at
//! the peak of fused multiply-adds. `benches/peers/training.py` runs this program and PyTorch in turn.

#[allow(dead_code, reason = "each benchmark uses only a part of the module")]
mod support;

#[path = "../examples/train_gpt/model.rs"]
mod model;

use swath::nn::{Func, Linear, Module, Sequential, Visit};
use swath::optim::{self, Adam, AdamOptions, AdamW, AdamWOptions, Optimizer};
use swath::prelude::*;

use model::{Gpt, Sizes};
use support::{Limit, Suite};

type T = Tensor<CpuBackend>;

/// Draws `count` tokens less than `below`.
fn tokens(count: usize, below: u64, rng: &mut Rng) -> Vec<i64> {
    (0..count).map(|_| rng.below(below) as i64).collect()
}

/// One training step: loss, gradients, update.
fn train<M: Visit<CpuBackend>>(
    model: &mut M,
    optimizer: &mut impl Optimizer<CpuBackend>,
    loss: impl Fn(&M) -> Result<T>,
) {
    let mut step = || -> Result<()> {
        let loss = loss(model)?;
        loss.item::<f32>()?;
        let gradients = loss.backward()?;
        optimizer.step(model, &gradients)
    };
    step().expect("shapes and dtypes match");
}

/// Floating-point operations of the GPT's matrix products per step: 3 (the forward pass once, the backward
/// pass twice as much) × 2 (multiplication and addition) × 2048 positions × multiplications per position.
/// These are 12 width² a block for the weights, 2 context · width a block for attention scores and values,
/// masked ones included, and width · vocabulary for the head.
const GPT_OPERATIONS: usize = 3 * 2 * 2048 * (4 * (12 * 128 * 128 + 2 * 128 * 128) + 128 * 128);

/// Returns a closure that trains the GPT for one step.
fn gpt() -> Result<impl FnMut()> {
    let rng = &mut Rng::seed(1);
    let sizes =
        Sizes { vocabulary: 128, width: 128, layers: 4, heads: 4, context: 128, dropout: 0.0 };
    let mut model = Gpt::new(sizes, rng)?;
    let options = AdamWOptions {
        learning_rate: 3e-3,
        betas: [0.9, 0.95],
        weight_decay: 0.1,
        decays: optim::matrices,
        ..AdamWOptions::default()
    };
    let mut optimizer = AdamW::new(options)?;
    let ids = T::from_vec(tokens(16 * 128, 128, rng), (16, 128))?;
    let next = T::from_vec(tokens(16 * 128, 128, rng), (16, 128))?;
    Ok(move || train(&mut model, &mut optimizer, |model| model.loss(&ids, &next)))
}

/// [`GPT_OPERATIONS`] of the perceptron, without the gradient of the images, which is not computed.
const MLP_OPERATIONS: usize = 2 * 64 * (3 * (784 * 256 + 256 * 128 + 128 * 10) - 784 * 256);

/// Returns a closure that trains the perceptron for one step.
fn mlp() -> Result<impl FnMut()> {
    let rng = &mut Rng::seed(1);
    let mut model = Sequential::new()
        .push(Linear::new(784, 256, rng)?)
        .push(Func::new(T::relu))
        .push(Linear::new(256, 128, rng)?)
        .push(Func::new(T::relu))
        .push(Linear::new(128, 10, rng)?);
    let mut optimizer = Adam::new(AdamOptions::default())?;
    let images = T::randn((64, 784), rng)?;
    let labels = T::from_vec(tokens(64, 10, rng), 64)?;
    Ok(move || {
        train(&mut model, &mut optimizer, |model| {
            model.forward(&images)?.cross_entropy(&labels, CrossEntropy::default())
        })
    })
}

fn main() -> Result<()> {
    let mut suite = Suite::from_args();
    for threads in [1, 2] {
        let mut group = suite.group_on(threads, "training")?;
        let limit = |operations| Limit::fma_f32(threads, operations);
        group.case("gpt", limit(GPT_OPERATIONS), || gpt().expect("the sizes are valid"));
        group.case("mlp", limit(MLP_OPERATIONS), || mlp().expect("the sizes are valid"));
    }
    suite.finish();
    Ok(())
}

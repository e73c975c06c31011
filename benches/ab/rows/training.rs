//! The training steps of `benches/training.rs`, of a GPT and a perceptron, and steps of optimizers alone.

use crate::{Call, Rows, T, normal};
use model::{Gpt, Sizes};
use swath::nn::{Func, Linear, Module, Sequential, Visit};
use swath::optim::{self, Adam, AdamOptions, AdamW, AdamWOptions, Optimizer, Sgd, SgdOptions};
use swath::prelude::*;

fn ids(count: usize, below: u64, rng: &mut Rng) -> Vec<i64> {
    (0..count).map(|_| rng.below(below) as i64).collect()
}

fn step<M: Visit<CpuBackend> + 'static>(
    mut model: M,
    mut optimizer: impl Optimizer<CpuBackend> + 'static,
    loss: impl Fn(&M) -> Result<T> + 'static,
) -> Call {
    let mut train = move || -> Result<()> {
        let loss = loss(&model)?;
        loss.item::<f32>()?;
        let gradients = loss.backward()?;
        optimizer.step(&mut model, &gradients)
    };
    Box::new(move || train().expect("a training step"))
}

fn gpt() -> Result<Call> {
    let rng = &mut Rng::seed(1);
    let sizes =
        Sizes { vocabulary: 128, width: 128, layers: 4, heads: 4, context: 128, dropout: 0.0 };
    let model = Gpt::new(sizes, rng)?;
    let options = AdamWOptions {
        learning_rate: 3e-3,
        betas: [0.9, 0.95],
        weight_decay: 0.1,
        decays: optim::matrices,
        ..AdamWOptions::default()
    };
    let inputs = T::from_vec(ids(16 * 128, 128, rng), (16, 128))?;
    let next = T::from_vec(ids(16 * 128, 128, rng), (16, 128))?;
    Ok(step(model, AdamW::new(options)?, move |model| model.loss(&inputs, &next)))
}

fn perceptron() -> Result<Call> {
    let rng = &mut Rng::seed(1);
    let model: Sequential = Sequential::new()
        .push(Linear::new(784, 256, rng)?)
        .push(Func::new(T::relu))
        .push(Linear::new(256, 128, rng)?)
        .push(Func::new(T::relu))
        .push(Linear::new(128, 10, rng)?);
    let images = normal((64, 784), DType::F32)?;
    let labels = T::from_vec(ids(64, 10, rng), 64)?;
    Ok(step(model, Adam::new(AdamOptions::default())?, move |model| {
        model.forward(&images)?.cross_entropy(&labels, CrossEntropy::default())
    }))
}

/// A step of an optimizer, with the gradients of a sum of squares.
fn update(mut optimizer: impl Optimizer<CpuBackend> + 'static, size: usize) -> Result<Call> {
    let mut model: Linear = Linear::new(size, size, &mut Rng::seed(1))?;
    let x: T = normal((4, size), DType::F32)?;
    let gradients = model.forward(&x)?.square()?.mean(None, false)?.backward()?;
    Ok(Box::new(move || optimizer.step(&mut model, &gradients).expect("a gradient for each")))
}

pub fn rows(rows: &mut Rows) {
    for size in [64, 512] {
        rows.add("in place", format!("Sgd step {size}x{size}"), move || {
            update(Sgd::new(SgdOptions { learning_rate: 1e-6, ..Default::default() })?, size)
        });
        rows.add("in place", format!("AdamW step {size}x{size}"), move || {
            update(AdamW::new(AdamWOptions { learning_rate: 1e-6, ..Default::default() })?, size)
        });
    }
    rows.add("training", "GPT step", gpt);
    rows.add("training", "perceptron step", perceptron);
}

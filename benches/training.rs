//! Training steps: a GPT (width 128, 4 heads, 4 layers, context 128, batch 16, vocabulary 128, AdamW) and
//! a perceptron (784-256-128-10, batch 64, Adam), on the threads of `SWATH_THREADS`.
//!
//! Prints the median step, and its share of the time that the products alone would take at the peak of
//! fused multiply-adds measured beside it. `benches/peers/training.py` runs this and PyTorch in turn.

#[path = "../examples/train_gpt/model.rs"]
mod model;

use std::time::{Duration, Instant};

use swath::nn::{Func, Linear, Module, Sequential, Visit};
use swath::optim::{self, Adam, AdamOptions, AdamW, AdamWOptions, Optimizer};
use swath::prelude::*;
use swath_kernels::peak;

use model::{Gpt, Sizes, T};

/// Floating-point operations a second of fused multiply-adds on one thread, now.
fn peak_now() -> f64 {
    let start = Instant::now();
    let mut operations = 0;
    while start.elapsed() < Duration::from_micros(500) {
        operations += peak::fma::<f32>(1000);
    }
    operations as f64 / start.elapsed().as_secs_f64()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Times steps for so long; `operations` are those of a step's products.
fn report(name: &str, operations: f64, length: Duration, mut step: impl FnMut() -> Result<()>) {
    let threads = swath::runtime::info().threads;
    let (mut times, mut shares) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while start.elapsed() < length || times.len() < 3 {
        let peak = peak_now();
        let begin = Instant::now();
        step().expect("a training step");
        let time = begin.elapsed().as_secs_f64();
        times.push(time);
        shares.push(time * peak * threads as f64 / operations);
        if std::env::args().any(|argument| argument == "--test") {
            break;
        }
    }
    let skip = times.len() / 5;
    let (time, share) = (median(&mut times[skip..]), median(&mut shares[skip..]));
    println!(
        "{name} {:.4} ms, {share:.2} times its products at the peak of {threads} threads",
        time * 1e3
    );
}

fn tokens(count: usize, below: u64, rng: &mut Rng) -> Vec<i64> {
    (0..count).map(|_| rng.below(below) as i64).collect()
}

fn train<M: Visit<CpuBackend>>(
    model: &mut M,
    optimizer: &mut impl Optimizer<CpuBackend>,
    loss: impl Fn(&M) -> Result<T>,
) -> Result<()> {
    let loss = loss(model)?;
    loss.item::<f32>()?;
    let gradients = loss.backward()?;
    optimizer.step(model, &gradients)
}

fn gpt(rng: &mut Rng) -> Result<()> {
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
    // A position: 12 width² multiplications a block, the head, and scores and their use, all of them
    // seen by a product though half are masked; forward once, backward twice.
    let position = 4.0 * (12.0 * 128.0 * 128.0 + 2.0 * 128.0 * 128.0) + 128.0 * 128.0;
    report("gpt", 3.0 * 2.0 * 2048.0 * position, Duration::from_millis(2500), || {
        train(&mut model, &mut optimizer, |model| model.loss(&ids, &next))
    });
    Ok(())
}

fn mlp(rng: &mut Rng) -> Result<()> {
    let mut model = Sequential::new()
        .push(Linear::new(784, 256, rng)?)
        .push(Func::new(T::relu))
        .push(Linear::new(256, 128, rng)?)
        .push(Func::new(T::relu))
        .push(Linear::new(128, 10, rng)?);
    let mut optimizer = Adam::new(AdamOptions::default())?;
    let images = T::randn((64, 784), rng)?;
    let labels = T::from_vec(tokens(64, 10, rng), 64)?;
    let terms = 64.0 * (784.0 * 256.0 + 256.0 * 128.0 + 128.0 * 10.0);
    // No gradient of the images is asked for.
    let operations = 2.0 * (3.0 * terms - 64.0 * 784.0 * 256.0);
    report("mlp", operations, Duration::from_millis(700), || {
        train(&mut model, &mut optimizer, |model| {
            model.forward(&images)?.cross_entropy(&labels, CrossEntropy::default())
        })
    });
    Ok(())
}

fn main() -> Result<()> {
    let mut rng = Rng::seed(1);
    gpt(&mut rng)?;
    mlp(&mut rng)
}

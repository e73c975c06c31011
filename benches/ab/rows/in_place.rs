//! Results that take the place of an operand: steps of optimizers. Functions of slices in place are in
//! `slices.rs`.

use crate::{Call, Rows, T, normal};
use swath::optim::{AdamW, AdamWOptions, Sgd, SgdOptions};
use swath::prelude::*;

/// A step of an optimizer, with the gradients of a sum of squares.
fn step(mut optimizer: impl Optimizer<CpuBackend> + 'static, size: usize) -> Result<Call> {
    let mut model: nn::Linear = nn::Linear::new(size, size, &mut Rng::seed(1))?;
    let x: T = normal((4, size), DType::F32)?;
    let gradients = model.forward(&x)?.square()?.mean(None, false)?.backward()?;
    Ok(Box::new(move || optimizer.step(&mut model, &gradients).expect("a gradient for each")))
}

pub fn rows(rows: &mut Rows) {
    for size in [64, 512] {
        rows.add("in place", format!("Sgd step {size}x{size}"), move || {
            step(Sgd::new(SgdOptions { learning_rate: 1e-6, ..Default::default() })?, size)
        });
        rows.add("in place", format!("AdamW step {size}x{size}"), move || {
            step(AdamW::new(AdamWOptions { learning_rate: 1e-6, ..Default::default() })?, size)
        });
    }
}

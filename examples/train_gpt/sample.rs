//! Sampling text from a model, one token at a time.

use swath::nn::Module;
use swath::prelude::*;

use crate::model::Gpt;

/// Samples `length` tokens after `prompt`; returns the prompt and the tokens.
pub fn sample<B: Backend>(
    model: &Gpt<B>,
    prompt: Vec<i64>,
    length: usize,
    temperature: f64,
    rng: &mut Rng,
) -> Result<Vec<i64>> {
    let context = model.positions.dims()[0];
    let mut tokens = prompt;
    no_grad(|| {
        for _ in 0..length {
            let window = &tokens[tokens.len().saturating_sub(context)..];
            let input = Tensor::from_slice(window, (1, window.len()))?;
            let last = model.forward(&input)?.slice(s![0, -1])?;
            let weights = last.mul_scalar(1.0 / temperature)?.softmax(0)?.to_vec::<f32>()?;
            tokens.push(draw(&weights, rng.uniform::<f32>()));
        }
        Ok(tokens)
    })
}

/// Returns the first index at which the running sum of `weights` exceeds the fraction `point` of their total.
fn draw(weights: &[f32], point: f32) -> i64 {
    let total: f32 = weights.iter().sum();
    let mut left = point * total;
    for (i, &weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return i as i64;
        }
    }
    weights.len() as i64 - 1
}

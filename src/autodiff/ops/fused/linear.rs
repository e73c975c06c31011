//! Derivative of `linear`.

use smallvec::smallvec;

use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, shared_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::tensor::Tensor;

struct LinearRule<B: Backend> {
    x: Option<Tensor<B>>,
    weight: Option<Tensor<B>>,
}

/// `y = x·Wᵀ + b`: `dx = g·W`, `dW = gᵀ·x` with all leading axes folded into the rows, `db` the sum
/// of g over them, which the engine takes. x and W are each kept only if the other one is tracked.
pub(crate) fn linear_rule<B: Backend>(x: &Tensor<B>, weight: &Tensor<B>) -> SharedRule<B> {
    shared_rule(LinearRule {
        x: weight.is_tracked().then(|| x.clone()),
        weight: x.is_tracked().then(|| weight.clone()),
    })
}

impl<B: Backend> Rule<B> for LinearRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, wanted: &[bool]) -> Result<InputGradients<B>> {
        let g = upstream.g;
        let (x, weight) =
            (self.x.as_ref().filter(|_| wanted[1]), self.weight.as_ref().filter(|_| wanted[0]));
        let dx = weight.map(|weight| g.matmul(weight)).transpose()?;
        let dw = x.map(|x| rows(g)?.t()?.matmul(&rows(x)?)).transpose()?;
        let mut gradients: InputGradients<B> = smallvec![dx, dw];
        if let Some(&bias) = wanted.get(2) {
            gradients.push(bias.then(|| g.clone()));
        }
        Ok(gradients)
    }
}

/// `[…, n]` as `[rows, n]`.
fn rows<B: Backend>(x: &Tensor<B>) -> Result<Tensor<B>> {
    match x.rank() {
        1 => x.unsqueeze(0),
        2 => Ok(x.clone()),
        _ => x.flatten(0, -2),
    }
}

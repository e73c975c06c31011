//! Derivative of `linear`.

use smallvec::smallvec;

use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, shared_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::tensor::Tensor;
use crate::tensor::einsum::contract::{Factor, contract};
use crate::tensor::einsum::equation::{Label, Labels};

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
        let dx = weight.map(|weight| upstream.product(0, g, weight)).transpose()?;
        let dw = x.map(|x| of_weight(upstream, x)).transpose()?;
        let mut gradients: InputGradients<B> = smallvec![dx, dw];
        if let Some(&bias) = wanted.get(2) {
            gradients.push(bias.then(|| g.clone()));
        }
        Ok(gradients)
    }
}

/// `gᵀ·x`: `[n, k]` from `[…, n]` and `[…, k]`.
fn of_weight<B: Backend>(upstream: &Upstream<'_, B>, x: &Tensor<B>) -> Result<Tensor<B>> {
    let g = upstream.g;
    if x.rank() == 2 {
        return upstream.product(1, &g.t()?, x);
    }
    if x.rank() > 2 && x.layout().is_contiguous() && g.layout().is_contiguous() {
        let [g, x] = [g, x].map(|x| x.flatten(0, x.rank() - 2));
        return upstream.product(1, &g?.t()?, &x?);
    }
    const N: Label = 8;
    const K: Label = 9;
    let last = x.rank() - 1;
    let labels = |label: Label| -> Labels { (0..last as Label).chain([label]).collect() };
    let sequence = labels(N);
    let (a, b) = (Factor::new(g, &sequence)?, Factor::new(x, &labels(K))?);
    let shape = [g.dims()[last], x.dims()[last]];
    let axes = [N, K].into_iter().zip(shape);
    let order: Labels = axes.filter(|&(_, dim)| dim != 1).map(|(label, _)| label).collect();
    let kept = [N, K].into_iter().collect();
    contract(&a, &b, kept, Some(&order), &sequence)?.into_tensor(&order, shape.into())
}

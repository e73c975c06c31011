//! Derivatives of indexing and joining.

use smallvec::smallvec;

use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, shared_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::Tensor;

use super::one_input;

/// `gather(x, axis, index)` from `x` of `shape`: gradients added up where they were read.
pub(crate) fn gather_rule<B: Backend>(
    shape: Shape,
    axis: usize,
    index: Tensor<B>,
) -> SharedRule<B> {
    one_input(move |g: &Tensor<B>| Tensor::zeros(shape, g.dtype())?.scatter_add(axis, &index, g))
}

struct ScatterAddRule<B: Backend> {
    axis: usize,
    index: Tensor<B>,
}

/// `scatter_add(x, axis, index, source)`: `x` keeps the gradient, `source` reads it where it was
/// added.
pub(crate) fn scatter_add_rule<B: Backend>(axis: usize, index: Tensor<B>) -> SharedRule<B> {
    shared_rule(ScatterAddRule { axis, index })
}

impl<B: Backend> Rule<B> for ScatterAddRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, wanted: &[bool]) -> Result<InputGradients<B>> {
        let g = upstream.g;
        let source = wanted[1].then(|| g.gather(self.axis, &self.index)).transpose()?;
        Ok(smallvec![Some(g.clone()), source])
    }
}

struct CatRule {
    axis: usize,
    extents: Vec<usize>,
}

/// `cat` of tensors with these extents along `axis`: each gets its part.
pub(crate) fn cat_rule<B: Backend>(axis: usize, extents: Vec<usize>) -> SharedRule<B> {
    shared_rule(CatRule { axis, extents })
}

impl<B: Backend> Rule<B> for CatRule {
    fn backward(&self, upstream: &Upstream<'_, B>, wanted: &[bool]) -> Result<InputGradients<B>> {
        let mut start = 0;
        let parts = self.extents.iter().zip(wanted).map(|(&extent, &wanted)| {
            let part = wanted.then(|| upstream.g.narrow(self.axis, start, extent)).transpose();
            start += extent;
            part
        });
        parts.collect()
    }
}

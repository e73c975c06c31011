//! Derivative of selection.

use smallvec::smallvec;

use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, shared_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::Tensor;

struct WhereRule<B: Backend> {
    mask: Tensor<B>,
}

/// `where_cond`: each side's gradient where it was chosen, zero elsewhere.
pub(crate) fn where_rule<B: Backend>(mask: Tensor<B>) -> SharedRule<B> {
    shared_rule(WhereRule { mask })
}

impl<B: Backend> Rule<B> for WhereRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, wanted: &[bool]) -> Result<InputGradients<B>> {
        let g = upstream.g;
        let zero = Tensor::zeros(Shape::scalar(), g.dtype())?;
        let a = wanted[0].then(|| Tensor::where_cond(&self.mask, g, &zero)).transpose()?;
        let b = wanted[1].then(|| Tensor::where_cond(&self.mask, &zero, g)).transpose()?;
        Ok(smallvec![a, b])
    }
}

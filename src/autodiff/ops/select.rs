//! Derivative of selection.

use smallvec::smallvec;

use crate::autodiff::graph::{SharedRule, Upstream, bytes_of, rule_keeping};
use crate::backend::Backend;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Rule of `where_cond`: each side gets the upstream gradient where it was selected, and 0
/// elsewhere.
pub(crate) fn where_rule<B: Backend>(mask: Tensor<B>) -> SharedRule<B> {
    rule_keeping(bytes_of([Some(mask.data())]), move |upstream: &Upstream<'_, B>, wanted| {
        let g = upstream.g;
        let zero = Tensor::zeros(Shape::scalar(), g.dtype())?;
        let a = wanted[0].then(|| Tensor::where_cond(&mask, g, &zero)).transpose()?;
        let b = wanted[1].then(|| Tensor::where_cond(&mask, &zero, g)).transpose()?;
        Ok(smallvec![a, b])
    })
}

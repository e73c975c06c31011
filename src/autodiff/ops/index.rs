//! Derivatives of indexing and concatenation.

use smallvec::smallvec;

use crate::autodiff::graph::{SharedRule, Upstream, bytes_of, rule, rule_keeping};
use crate::backend::Backend;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Rule of `gather(x, axis, index)` for `x` of `shape`: the upstream gradient is added at the indices that
/// were read.
pub(crate) fn gather_rule<B: Backend>(
    shape: Shape,
    axis: usize,
    index: Tensor<B>,
) -> SharedRule<B> {
    rule_keeping(bytes_of([Some(index.data())]), move |upstream: &Upstream<'_, B>, _| {
        let zeros = Tensor::zeros(shape, upstream.g.dtype())?;
        Ok(smallvec![Some(zeros.scatter_add(axis, &index, upstream.g)?)])
    })
}

/// Rule of `scatter_add(x, axis, index, source)`: `x` gets the upstream gradient, `source` its elements at
/// `index`.
pub(crate) fn scatter_add_rule<B: Backend>(axis: usize, index: Tensor<B>) -> SharedRule<B> {
    rule_keeping(bytes_of([Some(index.data())]), move |upstream: &Upstream<'_, B>, wanted| {
        let g = upstream.g;
        let source = wanted[1].then(|| g.gather(axis, &index)).transpose()?;
        Ok(smallvec![Some(g.clone()), source])
    })
}

/// Rule of `cat` of tensors with these extents along `axis`: each gets its range of the upstream
/// gradient.
pub(crate) fn cat_rule<B: Backend>(axis: usize, extents: Vec<usize>) -> SharedRule<B> {
    rule(move |upstream: &Upstream<'_, B>, wanted| {
        let mut start = 0;
        let parts = extents.iter().zip(wanted).map(|(&extent, &wanted)| {
            let part = wanted.then(|| upstream.g.narrow(axis, start, extent)).transpose();
            start += extent;
            part
        });
        parts.collect()
    })
}

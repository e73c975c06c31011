//! Derivatives of indexing and concatenation.

use smallvec::smallvec;

use crate::autodiff::graph::{SharedRule, Upstream, bytes_of, rule, rule_keeping};
use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::layout::SliceItem;
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
        Ok(smallvec![Some(zeros.scatter_added(axis, index.clone(), upstream.g)?)])
    })
}

/// Rule of `scatter_add(x, axis, index, source)`: `x` gets the upstream gradient, `source` its elements at
/// `index`.
pub(crate) fn scatter_add_rule<B: Backend>(axis: usize, index: Tensor<B>) -> SharedRule<B> {
    rule_keeping(bytes_of([Some(index.data())]), move |upstream: &Upstream<'_, B>, wanted| {
        let g = upstream.g;
        let source = wanted[1].then(|| g.gathered("gather", axis, index.clone())).transpose()?;
        Ok(smallvec![Some(g.clone()), source])
    })
}

/// Rule of `scatter(x, axis, index, source)`: `x` gets the upstream gradient where it was not overwritten, `source` its
/// elements at `index` for those elements that remained.
pub(crate) fn scatter_rule<B: Backend>(axis: usize, index: Tensor<B>) -> SharedRule<B> {
    rule_keeping(bytes_of([Some(index.data())]), move |upstream: &Upstream<'_, B>, wanted| {
        let g = upstream.g;
        let zero = Tensor::zeros((), g.dtype())?;
        let x = wanted[0].then(|| g.scatter(axis, &index, &zero.broadcast_to(index.shape())?));
        let source = wanted[1].then(|| {
            let place = |i| Scalar::Int(i as i64);
            let places = Tensor::from_scalars("scatter", *index.shape(), DType::I64, place)?;
            let last = Tensor::zeros(g.shape(), DType::I64)?.scatter(axis, &index, &places)?;
            let remained = last.gather(axis, &index)?.eq(&places)?;
            Tensor::where_cond(&remained, &g.gather(axis, &index)?, &zero)
        });
        Ok(smallvec![x.transpose()?, source.transpose()?])
    })
}

/// Rule of `slice_assign(x, items, source)`: `source` gets the slice of the upstream gradient, `x` the rest.
pub(crate) fn slice_assign_rule<B: Backend>(items: Vec<SliceItem>) -> SharedRule<B> {
    rule(move |upstream: &Upstream<'_, B>, wanted| {
        let g = upstream.g;
        let zero = || Tensor::zeros((), g.dtype());
        let x = wanted[0].then(|| g.slice_assign(&items, &zero()?)).transpose()?;
        Ok(smallvec![x, wanted[1].then(|| g.slice(&items)).transpose()?])
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

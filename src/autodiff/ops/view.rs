//! Derivatives of views: each the adjoint of moving elements.

use crate::autodiff::graph::SharedRule;
use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::shape::{AxisSet, Shape};
use crate::tensor::Tensor;

use super::one_input;

/// `reshape`, `squeeze`, `unsqueeze` from `shape`: the gradient in that shape again.
pub(crate) fn reshape_rule<B: Backend>(shape: Shape) -> SharedRule<B> {
    one_input(move |g: &Tensor<B>| g.reshape(shape))
}

/// `permute(axes)`: the inverse permutation.
pub(crate) fn permute_rule<B: Backend>(axes: AxisSet) -> SharedRule<B> {
    let mut inverse = axes.clone();
    for (to, &from) in axes.iter().enumerate() {
        inverse[from] = to;
    }
    one_input(move |g: &Tensor<B>| g.permute(&inverse))
}

/// `contiguous`, and with the engine's help `broadcast_to` and `to_dtype`: it sums the gradient to
/// the input's shape and converts it to the input's dtype.
pub(crate) fn identity_rule<B: Backend>() -> SharedRule<B> {
    one_input(Tensor::same)
}

/// `sum_to` from `shape`: every element that was added gets the sum's gradient.
pub(crate) fn sum_to_rule<B: Backend>(shape: Shape) -> SharedRule<B> {
    one_input(move |g: &Tensor<B>| g.broadcast_to(shape))
}

/// Elements `start, start + step, …` of an axis of extent `dim`: their gradients at those places,
/// zero elsewhere.
pub(crate) fn step_rule<B: Backend>(
    axis: usize,
    dim: usize,
    start: usize,
    step: isize,
) -> SharedRule<B> {
    one_input(move |g: &Tensor<B>| spread(g, axis, dim, start, step))
}

fn spread<B: Backend>(
    g: &Tensor<B>,
    axis: usize,
    dim: usize,
    start: usize,
    step: isize,
) -> Result<Tensor<B>> {
    let len = g.dims()[axis];
    let with_extent = |extent| g.shape().with_axis(axis, Some(extent));
    match step {
        1 => {
            let before = Tensor::zeros(with_extent(start), g.dtype())?;
            let after = Tensor::zeros(with_extent(dim - start - len), g.dtype())?;
            Tensor::cat(&[&before, g, &after], axis)
        }
        -1 if len > 0 => spread(&g.flip(axis)?, axis, dim, start + 1 - len, 1),
        _ => {
            let place = |i| Scalar::Int(start as i64 + i as i64 * step as i64);
            let index = Tensor::from_scalars("index", len.into(), DType::I64, place)?;
            let zeros = Tensor::zeros(with_extent(dim), g.dtype())?;
            zeros.index_add(axis, &index, g)
        }
    }
}

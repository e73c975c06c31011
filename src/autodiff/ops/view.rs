//! Derivatives of views: the adjoints of moving elements.

use smallvec::{SmallVec, smallvec};

use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, record, shared_rule};
use crate::autodiff::pending::Range;
use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::{Result, reserved};
use crate::layout::{AxisPart, SliceItem};
use crate::shape::{AxisSet, Shape};
use crate::tensor::Tensor;

use super::linear;

/// Rule of `reshape`, `squeeze` and `unsqueeze` from `shape`: the gradient reshaped back.
pub(crate) fn reshape_rule<B: Backend>(shape: Shape) -> SharedRule<B> {
    linear(move |g: &Tensor<B>| g.reshape(shape))
}

/// Rule of `permute(axes)`: the inverse permutation.
pub(crate) fn permute_rule<B: Backend>(axes: AxisSet) -> SharedRule<B> {
    let mut inverse = axes.clone();
    for (to, &from) in axes.iter().enumerate() {
        inverse[from] = to;
    }
    linear(move |g: &Tensor<B>| g.permute(&inverse))
}

/// Rule of `contiguous`, `broadcast_to` and `to_dtype`. The engine sums the gradient to the input's
/// shape and converts it to the input's dtype.
pub(crate) fn identity_rule<B: Backend>() -> SharedRule<B> {
    linear(Tensor::same)
}

/// Rule of `sum_to` from `shape`: every summed element gets the gradient of the sum.
pub(crate) fn sum_to_rule<B: Backend>(shape: Shape) -> SharedRule<B> {
    linear(move |g: &Tensor<B>| g.broadcast_to(shape))
}

/// Rule of taking the elements `start, start + step, …` of an axis of extent `dim`: the
/// upstream gradient at those indices, zero elsewhere.
pub(crate) fn step_rule<B: Backend>(
    axis: usize,
    dim: usize,
    start: usize,
    step: isize,
) -> SharedRule<B> {
    struct RangeRule(Range);
    impl<B: Backend> Rule<B> for RangeRule {
        fn backward(&self, upstream: &Upstream<'_, B>, _: &[bool]) -> Result<InputGradients<B>> {
            Ok(smallvec![Some(upstream.g.clone())])
        }

        fn range(&self) -> Option<Range> {
            Some(self.0)
        }
    }
    match step {
        1 => shared_rule(RangeRule(Range { axis, start })),
        _ => linear(move |g: &Tensor<B>| spread(g, axis, dim, start, step)),
    }
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
        1 if len == dim => Ok(g.clone()),
        1 => {
            let before = Tensor::zeros(with_extent(start), g.dtype())?;
            let after = Tensor::zeros(with_extent(dim - start - len), g.dtype())?;
            Tensor::cat(&[&before, g, &after], axis)
        }
        -1 if len > 0 => spread(&g.flip(axis)?, axis, dim, start + 1 - len, 1),
        _ if len == 0 => Tensor::zeros(with_extent(dim), g.dtype()),
        _ => {
            let start = start as isize;
            // One past the last index, which may be before the first.
            let end = start + (len as isize - 1) * step + step.signum();
            let mut items = vec![SliceItem::from(..); axis];
            items.push(SliceItem::Range {
                start: Some(start),
                end: (end >= 0).then_some(end),
                step,
            });
            let mut spread = B::full(with_extent(dim), Scalar::Int(0), g.dtype())?;
            B::slice_assign(&mut spread, &items, g.data())?;
            Ok(record("slice_assign", spread, &[g], |_| {
                linear(move |g: &Tensor<B>| g.slice(&items))
            }))
        }
    }
}

/// Rule of `unfold` from `shape`: gradients are added up where windows were read.
pub(crate) fn unfold_rule<B: Backend>(shape: Shape, axis: usize, step: usize) -> SharedRule<B> {
    linear(move |g: &Tensor<B>| {
        let last = g.rank() - 1;
        let [windows, size] = [axis, last].map(|axis| g.dims()[axis]);
        let place = |i| Scalar::Int((i / size * step + i % size) as i64);
        let index = Tensor::from_scalars("index", (windows * size).into(), DType::I64, place)?;
        let mut order: AxisSet = (0..last).collect();
        order.insert(axis + 1, last);
        let elements = g.permute(&order)?.flatten(axis, axis + 1)?;
        Tensor::zeros(shape, g.dtype())?.index_add(axis, &index, &elements)
    })
}

/// Rule of `diagonal` of two axes of `shape`: the gradient on the diagonal, zero elsewhere.
pub(crate) fn diagonal_rule<B: Backend>(shape: Shape, axes: [usize; 2]) -> SharedRule<B> {
    linear(move |g: &Tensor<B>| on_diagonal(g, shape, axes))
}

/// Places a gradient on the diagonal of two axes of `shape`, of extents r and c. Rows of one element and c
/// zeros, read as rows of c elements, have the elements on the diagonal:
///
/// ```text
/// g 0 0 0
/// g 0 0 0    n rows of c + 1 elements, read as rows of c, then cut or padded by zeros to r rows
/// g 0 0 0
/// ```
pub(crate) fn on_diagonal<B: Backend>(
    g: &Tensor<B>,
    shape: Shape,
    axes: [usize; 2],
) -> Result<Tensor<B>> {
    let [rows, cols] = axes.map(|axis| shape.dim(axis));
    let last = g.rank() - 1;
    let n = g.dims()[last];
    let zeros = |shape: Shape| Tensor::zeros((), g.dtype())?.broadcast_to(shape);
    let column = g.unsqueeze(-1)?;
    let beside = zeros(column.shape().with_axis(last + 1, Some(cols)))?;
    let flat = Tensor::cat(&[&column, &beside], last + 1)?.flatten(last, last + 1)?;
    let filled = n * (cols + 1);
    let flat = match (rows * cols).checked_sub(filled) {
        None => flat.narrow(last, 0, rows * cols)?,
        Some(0) => flat,
        Some(rest) => {
            let below = zeros(flat.shape().with_axis(last, Some(rest)))?;
            Tensor::cat(&[&flat, &below], last)?
        }
    };
    let in_rows: Shape = g.dims()[..last].iter().copied().chain([rows, cols]).collect();
    let matrices = flat.reshape(in_rows)?;
    // The other axes come first, in their order.
    let mut others = 0..last;
    let from = (0..shape.ndim()).map(|axis| match axes.iter().position(|&a| a == axis) {
        Some(i) => last + i,
        None => others.next().unwrap_or(last),
    });
    matrices.permute(&from.collect::<AxisSet>())
}

/// Rule of `roll` by pairs of an axis of `shape` and a shift: a roll by the rest of the extents.
pub(crate) fn roll_rule<B: Backend>(
    shape: Shape,
    moves: SmallVec<[(usize, usize); 4]>,
) -> SharedRule<B> {
    let back = move |&(axis, shift): &(usize, usize)| {
        (axis, (shape.dim(axis) - shift) % shape.dim(axis).max(1))
    };
    linear(move |g: &Tensor<B>| g.rolled(moves.iter().map(back).collect()))
}

/// Rule of `pad`: along each axis, gradients are added up at the elements that the parts of the result repeat.
pub(crate) fn pad_rule<B: Backend>(shape: Shape, axes: Vec<Vec<AxisPart>>) -> SharedRule<B> {
    linear(move |g: &Tensor<B>| {
        if shape.numel() == 0 {
            return Tensor::zeros(shape, g.dtype());
        }
        let parts = axes.iter().enumerate().filter(|(_, parts)| !parts.is_empty());
        parts
            .rev()
            .try_fold(g.clone(), |g, (axis, parts)| gathered(&g, axis, shape.dim(axis), parts))
    })
}

/// Adds up the gradients of parts of an axis of extent `dim`. The first and the last part may be filled.
fn gathered<B: Backend>(
    g: &Tensor<B>,
    axis: usize,
    dim: usize,
    parts: &[AxisPart],
) -> Result<Tensor<B>> {
    let filled = |part: Option<&AxisPart>| match part {
        Some(&AxisPart::Fill(len)) => len,
        _ => 0,
    };
    let len = g.dims()[axis] - filled(parts.first()) - filled(parts.last());
    let g = g.narrow(axis, filled(parts.first()), len)?;
    let mut places = reserved("pad", len)?;
    for part in parts {
        let AxisPart::From { start, len, step } = *part else { continue };
        if len == g.dims()[axis] && step == 1 {
            return spread(&g, axis, dim, start, step);
        }
        places.extend((0..len as isize).map(|i| start as i64 + (i * step) as i64));
    }
    let index = Tensor::from_vec(places, len)?;
    Tensor::zeros(g.shape().with_axis(axis, Some(dim)), g.dtype())?.index_add(axis, &index, &g)
}

//! In-place softmax of attention scores and its derivative, and dot products of pairs of rows.

use super::call::{Call, Rows, Work};
use crate::attention::{Dots, ScoreBlock, Weights, WeightsGrad, check_rows};

/// Replaces the visible scores of each row by the weights `e^(scale x − largest)` and the masked ones
/// by 0. Writes the row's largest `scale x`, and the reciprocal of the sum of its weights, which
/// normalises them.
///
/// A row without a visible score above −∞ becomes zeros; its largest is −∞ and its reciprocal 1.
/// A visible NaN makes its row NaN.
///
/// ```
/// use swath_kernels::{ScoreBlock, attention_weights};
/// let mut scores = [0.0f32, 9.0, 1.0, 1.0];
/// let block = ScoreBlock { rows: 2, columns: 2, stride: 2, seen: Some(1), scale: 1.0 };
/// let (mut largest, mut inverse) = ([0.0; 2], [0.0; 2]);
/// attention_weights(&mut scores, block, &mut largest, &mut inverse);
/// assert_eq!(scores, [1.0, 0.0, 1.0, 1.0]);
/// assert_eq!((largest, inverse), ([0.0, 1.0], [1.0, 0.5]));
/// ```
///
/// # Panics
/// If the block exceeds `scores`, if its rows overlap, or if the length of `largest` or `inverse` is
/// not `rows`.
#[track_caller]
pub fn attention_weights<E: Rows>(
    scores: &mut [E],
    block: ScoreBlock<E>,
    largest: &mut [E],
    inverse: &mut [E],
) {
    block.check("attention_weights", scores.len(), [largest.len(), inverse.len()]);
    E::run(Call(Work::Weights(Weights { scores, block, largest, inverse })));
}

/// Replaces the scores by the weights `p = e^(scale x − largest) inverse`, and `grad`, the gradient
/// of the weights, by the gradient of the scores, `grad_scale · p (grad − mean)`.
///
/// Masked columns, and rows whose largest score is −∞, become zeros in both.
///
/// ```
/// use swath_kernels::{ScoreBlock, attention_weights_grad};
/// let (mut scores, mut grad) = ([3.0f32, 3.0], [1.0, 0.0]);
/// let block = ScoreBlock { rows: 1, columns: 2, stride: 2, seen: None, scale: 1.0 };
/// attention_weights_grad(&mut scores, &mut grad, block, &[3.0], &[0.5], &[0.5], 2.0);
/// assert_eq!((scores, grad), ([0.5, 0.5], [0.5, -0.5]));
/// ```
///
/// # Panics
/// If the block exceeds `scores` or `grad`, if its rows overlap, or if the length of `largest`,
/// `inverse` or `mean` is not `rows`.
#[track_caller]
pub fn attention_weights_grad<E: Rows>(
    scores: &mut [E],
    grad: &mut [E],
    block: ScoreBlock<E>,
    largest: &[E],
    inverse: &[E],
    mean: &[E],
    grad_scale: E,
) {
    let statistics = [largest.len(), inverse.len(), mean.len()];
    block.check("attention_weights_grad", scores.len().min(grad.len()), statistics);
    let task = WeightsGrad { scores, grad, block, largest, inverse, mean, grad_scale };
    E::run(Call(Work::WeightsGrad(task)));
}

/// Dot product of each row of `a` with the same row of `b`:
/// `y[i] = Σ a[i a_stride + j] b[i b_stride + j]` over `j < columns`, with the bits of
/// [`dot`](crate::dot). `a` and `b` are given as a slice and the stride of its rows.
///
/// ```
/// let mut y = [0.0f32; 2];
/// swath_kernels::row_dots(2, (&[1.0, 2.0, 3.0, 4.0], 2), (&[1.0, 1.0], 0), &mut y);
/// assert_eq!(y, [3.0, 7.0]);
/// ```
///
/// # Panics
/// If a row lies outside its slice.
#[track_caller]
pub fn row_dots<E: Rows>(columns: usize, a: (&[E], usize), b: (&[E], usize), y: &mut [E]) {
    check_rows(y.len(), columns, a);
    check_rows(y.len(), columns, b);
    E::run(Call(Work::Dots(Dots { columns, a, b, y })));
}

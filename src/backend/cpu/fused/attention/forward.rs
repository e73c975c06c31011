//! Forward pass of attention.

use std::ops::Range;

use smallvec::SmallVec;
use swath_kernels::{self as kernels, ScoreBlock};

use super::head::{
    Arena, copy_rows, multiply, panel_rows, panels_len, product, product_with_panels, rows_of,
    transposed_panels,
};
use super::parts::{Heads, Part};
use super::*;
use crate::dtype::Element;
use crate::runtime::memory::Buffer;
use crate::runtime::parallel;

/// Minimum number of blocks per part of a head, each of which copies the keys and values.
const MIN_BLOCKS: usize = 4;

/// y, and the largest score m and 1/Σ e^(score − m) of each row, as `[batches, heads · t]`.
type Outputs<'a, E> = (Heads<'a, E>, (Heads<'a, E>, Heads<'a, E>));

/// Outputs of a range of queries.
struct Work<'a, E> {
    part: Part<Outputs<'a, E>>,
    queries: Range<usize>,
}

pub(super) fn run<E: Real>(
    op: &'static str,
    operands: &Operands<'_>,
) -> Result<Results<CpuTensor>> {
    let problem = operands.problem::<E>();
    let shape = problem.shape;
    let Extents { batches, heads, t, d, e, .. } = shape;
    let mut y = HeadsOutput::new::<E>(op, operands.q, [t, e])?;
    let of_rows = operands.q.shape().with_axis(operands.q.shape().ndim() - 1, None);
    let statistic = || Output::new(op, &of_rows, E::DTYPE);
    let (mut largest, mut inverse) = (statistic()?, statistic()?);
    if batches * heads * t > 0 {
        let of_heads = |(statistic, written)| {
            let matrix = MatMut::row_major(statistic, [batches, heads * t]).map_err(refused(op))?;
            Ok((Heads { matrix, rows: 1, columns: t }, written))
        };
        let (largest, of_largest) = of_heads(largest.parts::<E>(op))?;
        let (inverse, of_inverse) = of_heads(inverse.parts::<E>(op))?;
        let (y, of_y) = y.heads(op, &shape, [t, e])?;
        let (results, written) = ((y, (largest, inverse)), [of_y, of_largest, of_inverse]);
        let units = batches * heads * t.div_ceil(MIN_BLOCKS * ROWS);
        let cost = problem.cost(d + e, 1);
        let parts = parallel::parts(units, Cost(cost.0 / t.div_ceil(MIN_BLOCKS * ROWS)));
        let works = cut(results, &shape, parts);
        let bytes = Arena::<E>::bytes(op, operands.k, &slices(&shape, &operands.parameters))?;
        share(works, (), |work: Work<'_, E>| {
            let mut memory = Buffer::scratch(bytes);
            let memory = memory.as_slice_mut::<E>();
            E::with_workspace(|workspace| {
                let queries = work.queries;
                work.part.each(heads, |head, (y, (largest, inverse))| {
                    let [mut y, mut largest, mut inverse] =
                        [y.matrix, largest.matrix, inverse.matrix];
                    let arena = Arena(&mut *memory);
                    let results = (&mut y, [largest.row_mut(0), inverse.row_mut(0)]);
                    let queries = queries.clone();
                    problem.forward(head, queries, results, written, arena, workspace)
                })
            })
            .map_err(refused(op))
        })?;
    }
    let y = y.finish();
    Ok(smallvec![y.clone(), largest.finish(), inverse.finish(), y])
}

/// Cuts the outputs by heads and, if those are fewer than `wanted`, by queries.
fn cut<'a, E>(
    results: Outputs<'a, E>,
    shape: &Extents,
    wanted: usize,
) -> SmallVec<[Work<'a, E>; 16]> {
    let t = shape.t;
    let parts = parts::cut(results, [shape.batches, shape.heads], wanted);
    let blocks = t.div_ceil(ROWS);
    let ranges = wanted.div_ceil(parts.len().max(1)).min(blocks.div_ceil(MIN_BLOCKS)).max(1);
    let mut works = SmallVec::new();
    for part in parts {
        let (first, count) = (part.first, part.count);
        // Queries of several heads are interleaved in memory, so that only a single head can be cut.
        if ranges == 1 || count != [1, 1] {
            works.push(Work { part, queries: 0..t });
            continue;
        }
        let (mut y, (mut largest, mut inverse)) = part.results;
        for i in 0..ranges {
            let start = |i| (parallel::even_start(blocks, ranges, i) * ROWS).min(t);
            let queries = start(i)..start(i + 1);
            let (y_above, y_below) = y.matrix.split_rows(queries.len());
            let [(largest_left, largest_right), (inverse_left, inverse_right)] =
                [largest, inverse].map(|x| x.matrix.split_cols(queries.len()));
            let head = |matrix, rows, columns| Heads { matrix, rows, columns };
            let of_rows = |matrix| head(matrix, 1, queries.len());
            let statistics = (of_rows(largest_left), of_rows(inverse_left));
            let results = (head(y_above, queries.len(), shape.e), statistics);
            y = head(y_below, t, shape.e);
            (largest, inverse) = (head(largest_right, 1, t), head(inverse_right, 1, t));
            works.push(Work { part: Part { first, count, results }, queries });
        }
    }
    works
}

/// Shapes of the slices of scratch memory per head.
fn slices(shape: &Extents, parameters: &AttentionParameters) -> [[usize; 2]; 5] {
    let &Extents { s, d, e, .. } = shape;
    let stride = shape.scores_stride();
    let factors = if parameters.dropout.is_some() { stride } else { 0 };
    [[panel_rows(s), d], [s, e], [ROWS, stride], [ROWS, e], [1, factors]]
}

impl<E: Real> Problem<'_, E> {
    /// Computes y `[queries, e]` and the statistics `[queries]` of a range of queries of one head.
    fn forward(
        &self,
        head: usize,
        queries: Range<usize>,
        (y, mut statistics): (&mut MatMut<'_, E>, [&mut [E]; 2]),
        written: [&Written; 3],
        mut arena: Arena<'_, E>,
        workspace: &mut Workspace<E>,
    ) -> std::result::Result<(), GemmError> {
        let Extents { s, d, e, .. } = self.shape;
        let stride = self.shape.scores_stride();
        let (q, k, v) = (self.q.matrix(head), self.k.matrix(head), self.v.matrix(head));
        let keys = arena.take(panels_len(s, d));
        let values = arena.take(s * e);
        let scores = arena.take(ROWS * stride);
        let sums = arena.take(ROWS * e);
        let dropout = self.parameters.dropout;
        let factors = arena.take(if dropout.is_some() { stride } else { 0 });

        let visible = queries.clone().next_back().map_or(0, |last| self.visible(last));
        transposed_panels(&k, visible, keys);
        copy_rows(&v, 0, &mut values[..visible * e]);
        for first in queries.clone().step_by(ROWS) {
            let rows = ROWS.min(queries.end - first);
            let columns = self.visible(first + rows - 1);
            let [largest, inverse] =
                statistics.each_mut().map(|x| &mut x[first - queries.start..][..rows]);
            let scores = &mut scores[..rows * stride];

            let q_rows = rows_of(&q, first, rows)?;
            product_with_panels(q_rows, keys, columns, scores, stride, workspace)?;
            let masked = self.mask_scores(head, first, columns, stride, scores);
            let scale = if masked { 1.0 } else { self.parameters.scale };
            let block = self.block(first, rows, columns, scale);
            kernels::attention_weights(scores, block, largest, inverse);
            if let Some(dropout) = &dropout {
                for (i, row) in scores.chunks_mut(stride).enumerate() {
                    let visible = self.visible(first + i);
                    let factors = &mut factors[..visible];
                    self.dropout_factors(dropout, head, first + i, factors);
                    multiply(&mut row[..visible], factors);
                }
            }

            let sums = &mut sums[..rows * e];
            if columns == 0 {
                sums.fill(E::ZERO);
            }
            for from in (0..columns).step_by(VALUES) {
                let count = VALUES.min(columns - from);
                let a = MatRef::new(scores, from, [rows, count], [stride as isize, 1])?;
                let b = MatRef::new(values, from * e, [count, e], [e as isize, 1])?;
                let c = MatMut::row_major(sums, [rows, e])?;
                product(a, b, c, from > 0, workspace)?;
            }
            for (i, &inverse) in inverse.iter().enumerate() {
                let y = y.row_mut(first - queries.start + i);
                y.iter_mut().zip(&sums[i * e..]).for_each(|(y, &sum)| *y = sum * inverse);
            }
            written.iter().zip([rows * e, rows, rows]).for_each(|(all, count)| all.add(count));
        }
        Ok(())
    }

    /// The scores of queries `first..first + rows`.
    pub(super) fn block(
        &self,
        first: usize,
        rows: usize,
        columns: usize,
        scale: f64,
    ) -> ScoreBlock<E> {
        let Extents { t, s, .. } = self.shape;
        let seen = self.parameters.causal.then(|| (first + 1 + s) as isize - t as isize);
        let (stride, scale) = (self.shape.scores_stride(), <E as Element>::from_f64(scale));
        ScoreBlock { rows, columns, stride, seen, scale }
    }
}

//! Consecutive results that reduce consecutive columns.

use bytemuck::Pod;
use swath_kernels::reduce::Reduction;
use swath_kernels::{Pairwise, Partial, partial_columns, reduce_columns};

use super::{Plan, cost, part_len};
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{self, Cost};

/// Columns per unit of work are multiples of this: four cache lines of `f32` of each row.
const COL_UNIT: usize = 64;

/// Maximum columns per unit of work, so that rows are read in long pieces.
const WIDE_COLS: usize = 8 * COL_UNIT;

/// Maximum number of accumulators of the parts of a narrow matrix: 1.5 MiB of the largest type.
const MAX_PARTIALS: usize = 1 << 16;

/// Function of elements, leading dimension and results that computes one `Y` per column.
pub(super) type ColumnKernel<'f, T, Y> = dyn Fn(&[T], usize, &mut [Y]) + Sync + 'f;

impl Plan<'_> {
    /// True if consecutive results reduce consecutive columns.
    pub(super) fn is_columns(&self) -> bool {
        self.count > 0
            && matches!(self.kept.strides(0), [.., 1])
            && matches!(self.reduced.strides(0), [0 | 2..])
    }

    /// Reduces columns in place.
    pub(super) fn reduce_columns<T: Pod + Sync, A: Partial, Y: Pod + Send + Sync>(
        &self,
        reduction: &dyn Reduction<T, Acc = A, Out = Y>,
        out: &mut [Y],
    ) {
        let (rows, cols) = (self.count, out.len());
        if let Some(part_rows) = self.rows_to_share(cols) {
            let x = &self.x.elements::<T>()[self.position(0)..];
            let stride = self.reduced.strides(0)[0].unsigned_abs();
            let parts = rows.div_ceil(part_rows);
            if parallel::parts(parts, cost::<T>().times(part_rows * cols)) <= 1 {
                return reduce_columns(reduction, x, rows, stride, out);
            }
            let mut memory = Buffer::scratch(parts * cols * size_of::<A>());
            let partials = memory.as_slice_mut::<A>();
            parallel::for_each_part_mut(partials, parts, &|part| part * cols, &|part, partials| {
                let first = part * part_rows;
                let count = part_rows.min(rows - first);
                partial_columns(reduction, &x[first * stride..], count, stride, partials);
            });
            for (c, y) in out.iter_mut().enumerate() {
                let mut whole = Pairwise::new();
                partials[c..].iter().step_by(cols).for_each(|&partial| whole.push(partial));
                *y = reduction.finish(whole.finish(), rows);
            }
            return;
        }
        self.each_columns::<T, _>(cost::<T>(), out, &|x, stride, y| {
            reduce_columns(reduction, x, rows, stride, y);
        });
    }

    /// Rows of a part if threads should share the rows of a single matrix: if no thread then gets more elements
    /// than by sharing the `cols` columns. Whole rows are read faster.
    fn rows_to_share(&self, cols: usize) -> Option<usize> {
        let (threads, rows) = (parallel::threads(), self.count);
        let (wanted, most) = (threads * parallel::PARTS_PER_THREAD, (MAX_PARTIALS / cols).max(1));
        let part_rows = part_len(rows, wanted.min(most));
        let parts = rows.div_ceil(part_rows);
        let unit = column_unit(cols, threads);
        let row_share = (parts.div_ceil(threads) * part_rows).min(rows);
        let col_share = (cols.div_ceil(unit).div_ceil(threads) * unit).min(cols);
        let (of_rows, of_cols) = (row_share.saturating_mul(cols), col_share.saturating_mul(rows));
        // If the accumulators limit the number of parts, merging them must be worth the difference.
        let pays = of_rows <= if wanted <= most { of_cols } else { of_cols / 4 * 3 };
        (self.kept.dims().len() == 1 && parts > 1 && pays).then_some(part_rows)
    }

    /// Calls `f(elements, leading dimension, results)` for ranges of columns. `cost` is that of an element.
    pub(super) fn each_columns<T: Pod + Sync, Y: Send>(
        &self,
        cost: Cost,
        out: &mut [Y],
        f: &ColumnKernel<'_, T, Y>,
    ) {
        let (data, stride) = (self.x.elements::<T>(), self.reduced.strides(0)[0].unsigned_abs());
        let cols = self.kept.dims().last().copied().unwrap_or(1);
        let unit = column_unit(out.len(), parallel::threads());
        parallel::for_each_chunk_mut(out, unit, cost.times(self.count), &|first, mut out| {
            let mut at = first * unit;
            while !out.is_empty() {
                let len = (cols - at % cols).min(out.len());
                let (y, rest) = out.split_at_mut(len);
                let begin = self.position(at);
                f(&data[begin..begin + (self.count - 1) * stride + len], stride, y);
                (out, at) = (rest, at + len);
            }
        });
    }
}

/// Columns per unit of work.
fn column_unit(cols: usize, threads: usize) -> usize {
    (cols / threads / COL_UNIT * COL_UNIT).clamp(COL_UNIT, WIDE_COLS)
}

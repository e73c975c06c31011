//! Results that follow one another and fold columns that do.

use bytemuck::Pod;

use super::super::fold::{Fold, Parts, part_len};
use super::super::parallel::{self, Cost};
use super::{Plan, cost};

/// Columns that a thread takes are multiples of this: four lines of `f32` of each row.
const COL_UNIT: usize = 64;

/// Columns that a thread takes at least, where there are enough: rows are read in long pieces.
const WIDE_COLS: usize = 8 * COL_UNIT;

/// What parts of the rows of narrow matrices may fold to at most, in entries: 1.5 MiB of the largest.
const MAX_PARTIALS: usize = 1 << 16;

/// Makes `Y` of each of the columns of elements, whose rows are so far apart.
pub(super) type OfNeighbours<'f, T, Y> = dyn Fn(&[T], usize, &mut [Y]) + Sync + 'f;

impl Plan<'_> {
    /// Whether results that follow one another fold columns that do.
    pub(super) fn is_columns(&self) -> bool {
        self.count > 0
            && matches!(self.kept.strides(0), [.., 1])
            && matches!(self.reduced.strides(0), [0 | 2..])
    }

    /// The results of the innermost kept axis are folded side by side.
    pub(super) fn fold_columns<T: Pod + Sync, F: Fold<T>>(&self, fold: &F, out: &mut [F::Out]) {
        if let Some(part_rows) = self.rows_to_share(out.len()) {
            let (x, rows) = (&self.x.elements::<T>()[self.position(0)..], self.count);
            let stride = self.reduced.strides(0)[0].unsigned_abs();
            let parts = rows.div_ceil(part_rows);
            if parallel::parts(parts, cost::<T>().times(part_rows * out.len())) > 1 {
                fold.columns_in_parts(Parts { x, rows, stride, part_rows }, out);
            } else {
                fold.columns(&x[..(rows - 1) * stride + out.len()], rows, stride, out);
            }
            return;
        }
        self.each_columns::<T, _>(cost::<T>(), out, &|x, stride, y| {
            fold.columns(x, self.count, stride, y);
        });
    }

    /// The rows of a part, if threads that share the rows of the only matrix have no more to do each than
    /// threads that share its `cols` columns: they read whole rows.
    fn rows_to_share(&self, cols: usize) -> Option<usize> {
        let (threads, rows) = (parallel::threads(), self.count);
        let (wanted, most) = (threads * parallel::PARTS_PER_THREAD, (MAX_PARTIALS / cols).max(1));
        let part_rows = part_len(rows, wanted.min(most));
        let parts = rows.div_ceil(part_rows);
        let unit = column_unit(cols, threads);
        let row_share = (parts.div_ceil(threads) * part_rows).min(rows);
        let col_share = (cols.div_ceil(unit).div_ceil(threads) * unit).min(cols);
        // The shares' elements are products of extents, and the tensor's are counted by a `usize`.
        let (of_rows, of_cols) = (row_share.saturating_mul(cols), col_share.saturating_mul(rows));
        // Of fewer parts than wanted each folds to much: they have to be worth it.
        let is_even = of_rows <= if wanted <= most { of_cols } else { of_cols / 4 * 3 };
        (self.kept.dims().len() == 1 && parts > 1 && is_even).then_some(part_rows)
    }

    /// `f(elements, distance of rows, results)` for neighbouring columns; `cost` is that of an element.
    pub(super) fn each_columns<T: Pod + Sync, Y: Send>(
        &self,
        cost: Cost,
        out: &mut [Y],
        f: &OfNeighbours<'_, T, Y>,
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

/// Columns, of so many, that a thread takes at a time.
fn column_unit(cols: usize, threads: usize) -> usize {
    (cols / threads / COL_UNIT * COL_UNIT).clamp(COL_UNIT, WIDE_COLS)
}

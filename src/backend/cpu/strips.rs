//! The driver of kernels along an axis that is not the last in memory: down the columns of the matrices
//! `[n, below]` of a tensor `[above, n, below]`. Like that of rows (`rows.rs`), it widens 16-bit floats, here a
//! strip of columns at a time.

use std::array::from_fn;
use std::mem::take;
use std::ops::Range;

use swath_kernels::MatMut;

use super::copy;
use super::parts::{Heads, Split, cut};
use super::rows::allocate;
use super::tensor::CpuTensor;
use super::working::Working;
use crate::backend::{Results, TensorData};
use crate::dtype::DType;
use crate::error::Result;
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{self, Cost};
use crate::shape::{AxisSet, Shape};

/// Columns per unit of work: four cache lines of `f32`.
const UNIT: usize = 64;

/// Elements of a widened strip.
const STRIP_LEN: usize = 8192;

/// A tensor whose last axis has a larger stride than some of the others: as matrices `[n, below]`.
#[derive(Clone, Copy)]
pub(super) struct Planes {
    /// Position of the last axis in memory.
    axis: usize,
    rank: usize,
    above: usize,
    below: usize,
}

impl Planes {
    /// Returns the matrices of `x`, unless its rows should be computed as rows.
    pub fn of(x: &CpuTensor) -> Option<Self> {
        let (dims, strides) = (x.shape().dims(), x.layout().strides());
        let (&n, lead) = dims.split_last()?;
        let of_axis = strides[lead.len()].unsigned_abs();
        let is_above = |&i: &usize| dims[i] > 1 && strides[i].unsigned_abs() > of_axis;
        let axis = (0..lead.len()).rev().find(is_above).map_or(0, |i| i + 1);
        let (above, below) = (lead[..axis].iter().product(), lead[axis..].iter().product());
        let pays = n > 1
            && n <= MAX_LEN
            && below >= MIN_COLUMNS
            && x.numel() > 0
            && !rows_evict_each_other(n, below, x.dtype());
        pays.then_some(Planes { axis, rank: dims.len(), above, below })
    }

    /// The same elements with axes in the order `[above, n, below]`.
    pub fn in_memory(&self, op: &'static str, x: &CpuTensor) -> Result<CpuTensor> {
        let last = self.rank - 1;
        let order: AxisSet = (0..self.axis).chain([last]).chain(self.axis..last).collect();
        copy::contiguous(op, &x.with_layout(x.layout().permute(op, &order)?))
    }

    /// The inverse of [`Planes::in_memory`].
    pub fn logical(&self, op: &'static str, y: &CpuTensor) -> Result<CpuTensor> {
        let order: AxisSet =
            (0..self.axis).chain(self.axis + 1..self.rank).chain([self.axis]).collect();
        Ok(y.with_layout(y.layout().permute(op, &order)?))
    }
}

/// Longest axis that is read by columns, and the least number of columns.
const MAX_LEN: usize = 1024;
const MIN_COLUMNS: usize = 2;

/// Whether `n` rows of `below` elements share sets of a cache, whose addresses repeat every 4 KiB: down the columns of
/// `[1024, 1024]` softmax of `f32` took five times as long as on transposed copies. Strips of 16-bit floats are copied
/// anyway, when they are widened.
fn rows_evict_each_other(n: usize, below: usize, dtype: DType) -> bool {
    const REPEATS: usize = 4096;
    let stride = below * dtype.size();
    let starts = REPEATS >> stride.trailing_zeros().min(REPEATS.trailing_zeros());
    dtype.size() >= 4 && starts <= 4 && n >= 32 * starts
}

/// Rows to read: a slice, and the distance between their starts.
pub(super) type Columns<'a, E> = (&'a [E], usize);

/// Returns the results of a kernel of columns, then its statistics: one value per column, in the type of the
/// computation. `cost` is that of a column. Inputs and outputs are `[above, rows, below]`, each with its own
/// number of rows, and inputs are contiguous in that order.
///
/// Calls `kernel(columns, inputs, outputs, statistics)` on ranges of columns that cover those of all matrices.
pub(super) fn compute<T: Working, const I: usize, const O: usize, const S: usize>(
    op: &'static str,
    (planes, cost): (&Planes, Cost),
    inputs: [(&CpuTensor, usize); I],
    outputs: [(&Shape, usize); O],
    statistics: [&Shape; S],
    kernel: impl Fn(
        Range<usize>,
        [Columns<'_, T::Wide>; I],
        [MatMut<'_, T::Wide>; O],
        [&mut [T::Wide]; S],
    ) + Sync,
) -> Result<Results<CpuTensor>> {
    let &Planes { above, below, .. } = planes;
    let (x_rows, y_rows) = (inputs.map(|(_, rows)| rows), outputs.map(|(_, rows)| rows));
    let (inputs, outputs) = (inputs.map(|(x, _)| x), outputs.map(|(shape, _)| shape));
    allocate::<T, I, O, S>(op, inputs, outputs, statistics, |x, mut y, mut statistics| {
        let units = below.div_ceil(UNIT);
        let wanted = parallel::parts(above * units, cost.times(UNIT));
        let mut rows = y_rows.into_iter();
        let heads = |matrix, rows| Heads { matrix, rows, columns: UNIT };
        let y = y.each_mut().map(|y| heads(matrix(take(y), below), rows.next().unwrap_or(0)));
        let statistics = statistics.each_mut().map(|x| Heads {
            matrix: matrix(take(x), below),
            rows: 1,
            columns: UNIT,
        });
        parallel::for_each_item(cut((y, statistics), [above, units], wanted), |_, part| {
            let ([plane, unit], count) = (part.first, part.count);
            let columns = unit * UNIT..below.min((unit + count[1]) * UNIT);
            let mut rest = part.results;
            for plane in plane..plane + count[0] {
                let ((y, statistics), after) = rest.batches(1);
                rest = after;
                // From the first of the columns on.
                let x = from_fn(|i| &x[i][plane * x_rows[i] * below + columns.start..]);
                let mut statistics = statistics.map(|x| x.matrix);
                let at = plane * below + columns.start;
                let y = y.map(|y| y.matrix);
                in_strips::<T, I, O>((x, x_rows), y, below, columns.len(), |here, x, y| {
                    let statistics = statistics.each_mut().map(|x| &mut x.row_mut(0)[here.clone()]);
                    kernel(at + here.start..at + here.end, x, y, statistics);
                });
            }
        });
    })
}

/// All rows of `cols` elements.
fn matrix<T>(y: &mut [T], cols: usize) -> MatMut<'_, T> {
    let shape = [y.len() / cols, cols];
    MatMut::row_major(y, shape).expect("as many rows as fit")
}

/// Calls `kernel(columns, inputs, outputs)` on strips of a matrix with `cols` columns: a single strip if the type
/// needs no conversion. Rows of inputs are `below` elements apart.
fn in_strips<T: Working, const I: usize, const O: usize>(
    (x, x_rows): ([&[T]; I], [usize; I]),
    mut y: [MatMut<'_, T>; O],
    below: usize,
    cols: usize,
    mut kernel: impl FnMut(Range<usize>, [Columns<'_, T::Wide>; I], [MatMut<'_, T::Wide>; O]),
) {
    if !T::CONVERTS {
        let x = x.map(|x| (T::widened(x, &mut []), below));
        return kernel(0..cols, x, y.map(|y| T::matrix(y).expect("types that are equal")));
    }
    let total = x_rows.iter().copied().chain(y.iter().map(|y| y.shape()[0])).sum::<usize>();
    let width = (STRIP_LEN / total.max(1)).clamp(UNIT, cols.max(UNIT));
    let mut scratch = Buffer::scratch(total * width * size_of::<T::Wide>());
    for from in (0..cols).step_by(width) {
        let width = width.min(cols - from);
        let mut space = scratch.as_slice_mut::<T::Wide>();
        let mut array = |rows: usize| {
            let (array, rest) = take(&mut space).split_at_mut(rows * width);
            space = rest;
            array
        };
        let x = from_fn(|i| {
            let strip = array(x_rows[i]);
            for (row, wide) in strip.chunks_exact_mut(width).enumerate() {
                T::widened(&x[i][row * below + from..][..width], wide);
            }
            (&*strip, width)
        });
        let mut wide = y.each_ref().map(|y| array(y.shape()[0]));
        kernel(from..from + width, x, wide.each_mut().map(|wide| matrix(wide, width)));
        for (y, wide) in y.iter_mut().zip(&wide) {
            for (row, wide) in wide.chunks_exact(width).enumerate() {
                T::round(wide, &mut y.row_mut(row)[from..from + width]);
            }
        }
    }
}

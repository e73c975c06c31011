//! Order of elements along an axis, searches in sorted rows, indices of running extrema.
//!
//! An axis other than the last is moved to the end by a copy, and the results back. Threads share the rows, or
//! the elements of a long row if there are few.

mod keys;
mod sort;

use super::CpuBackend;
use super::cast::{ordered, restored};
use super::copy;
use super::tensor::{CpuTensor, Output};
use crate::backend::{TensorData, check_search, composite};
use crate::dtype::{DType, Element, for_dtype};
use crate::error::Result;
use crate::ops::{Extremum, OrderOp};
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{self, Band, Cost, for_each_band, for_each_chunk_mut};
use crate::shape::{AxisSet, Shape};
use keys::{Keyed, Pair};

/// Picoseconds per element of a sort, of a selection and of a running extremum, and per step of a search.
const SORT_COST: usize = 12_000;
const SELECT_COST: usize = 400;
const SCAN_COST: usize = 1_000;
const STEP_COST: usize = 1_500;

/// Elements of a row that are compared with its running extremum at once: most hold no new one.
const SCANNED: usize = 64;

/// The order of the axes with `axis` last.
fn axis_last(rank: usize, axis: usize) -> AxisSet {
    (0..rank).filter(|&other| other != axis).chain([axis]).collect()
}

/// A contiguous tensor with `axis` last.
fn rows(op: &'static str, x: &CpuTensor, axis: usize) -> Result<CpuTensor> {
    let layout = x.layout().permute(op, &axis_last(x.shape().ndim(), axis))?;
    copy::contiguous(op, &x.with_layout(layout))
}

/// Undoes [`rows`].
fn moved_back(op: &'static str, y: CpuTensor, axis: usize) -> Result<CpuTensor> {
    let rank = y.shape().ndim();
    if axis + 1 == rank {
        return Ok(y);
    }
    let mut back: AxisSet = (0..rank).collect();
    for (to, from) in axis_last(rank, axis).into_iter().enumerate() {
        back[from] = to;
    }
    let layout = y.layout().permute(op, &back)?;
    copy::contiguous(op, &y.with_layout(layout))
}

pub(super) fn order(op: OrderOp, x: &CpuTensor, axis: usize) -> Result<(CpuTensor, CpuTensor)> {
    let (name, shape) = (op.name(), x.shape());
    shape.check_axis(name, axis)?;
    let n = shape.dim(axis);
    if u32::try_from(n).is_err() {
        // A pair has 32 bits for the index.
        return composite::order::order::<CpuBackend>(op, x, axis);
    }
    let x = rows(name, x, axis)?;
    let count = op.extent(n);
    let shape = x.shape().with_axis(x.shape().ndim() - 1, Some(count));
    let mut values = Output::new(name, &shape, x.dtype())?;
    let mut indices = Output::new(name, &shape, DType::I64)?;
    if shape.numel() > 0 {
        let task = Task { op, n, count };
        for_dtype!(x.dtype(), T => {
            task.run::<<T as Element>::Stored>(x.run(), values.elements(), indices.elements())?
        }, _ => {
            let (values, indices) = order(op, &ordered(&x)?, x.shape().ndim() - 1)?;
            let values = restored(&values, x.dtype())?;
            return Ok((moved_back(name, values, axis)?, moved_back(name, indices, axis)?));
        });
    }
    Ok((moved_back(name, values.finish(), axis)?, moved_back(name, indices.finish(), axis)?))
}

/// An op on rows of `n` elements, of which it keeps `count`; neither is 0.
#[derive(Clone, Copy)]
struct Task {
    op: OrderOp,
    n: usize,
    count: usize,
}

impl Task {
    fn run<T: Keyed>(self, x: &[T], values: &mut [T], indices: &mut [i64]) -> Result<()> {
        let Task { op, n, count } = self;
        let cost = Cost(if count == n { SORT_COST } else { SELECT_COST });
        let (rows, threads) = (x.len() / n, parallel::threads());
        if count == n && parallel::shares_each(rows, cost.times(n), threads) {
            let each = x.chunks_exact(n).zip(values.chunks_exact_mut(n));
            for ((row, values), indices) in each.zip(indices.chunks_exact_mut(n)) {
                self.sort_long(row, values, indices)?;
            }
            return Ok(());
        }
        let out = (Band::new(values, count), Band::new(indices, count));
        for_each_band(rows, cost.times(n), out, |rows, (values, indices)| {
            let len = if count == n { 2 * n } else { sort::buffer_len(count, n) };
            let mut buffer = Buffer::scratch(len * size_of::<T::Pair>());
            let buffer = &mut buffer.as_slice_mut::<T::Pair>()[..len];
            let len = if count == n { 0 } else { sort::maxima_len(count, n) };
            let mut maxima = Buffer::scratch(len * size_of::<T::Rank>());
            let maxima = &mut maxima.as_slice_mut::<T::Rank>()[..len];
            let results = values.chunks_exact_mut(count).zip(indices.chunks_exact_mut(count));
            for (row, (values, indices)) in x[rows.start * n..].chunks_exact(n).zip(results) {
                let pairs = if count == n {
                    let (pairs, space) = buffer.split_at_mut(n);
                    sort::fill(row, 0, op.descending, pairs);
                    sort::sort(pairs, space);
                    pairs
                } else {
                    sort::select(row, op.descending, count, buffer, maxima)
                };
                write(row, pairs, values, indices);
            }
        });
        Ok(())
    }

    /// Sorts a row on all threads.
    fn sort_long<T: Keyed>(self, row: &[T], values: &mut [T], indices: &mut [i64]) -> Result<()> {
        let Task { op, n, .. } = self;
        let words = size_of::<T::Pair>() / size_of::<i64>();
        let mut buffer = Buffer::new(op.name(), &Shape::new([2, n, words]), DType::I64)?;
        let (pairs, space) = buffer.as_slice_mut::<T::Pair>()[..2 * n].split_at_mut(n);
        let parts = parallel::parts(n, Cost(SORT_COST)).min(parallel::threads());
        let pairs = &*sort::sort_in_parts(row, op.descending, parts, [pairs, space]);
        let out = (Band::new(values, 1), Band::new(indices, 1));
        for_each_band(n, Cost(SCAN_COST), out, |range, (values, indices)| {
            write(row, &pairs[range], values, indices);
        });
        Ok(())
    }
}

/// Writes the elements that pairs name, and their indices.
fn write<T: Keyed>(row: &[T], pairs: &[T::Pair], values: &mut [T], indices: &mut [i64]) {
    for ((value, index), pair) in values.iter_mut().zip(indices).zip(pairs) {
        *value = row[pair.index()];
        *index = pair.index() as i64;
    }
}

pub(super) fn search_sorted(
    sorted: &CpuTensor,
    values: &CpuTensor,
    right: bool,
) -> Result<CpuTensor> {
    let op = "searchsorted";
    check_search(op, sorted, values)?;
    let (sorted, values) = (copy::contiguous(op, sorted)?, copy::contiguous(op, values)?);
    let mut out = Output::new(op, values.shape(), DType::I64)?;
    let n = sorted.shape().dims().last().copied().unwrap_or(0);
    let per_row = match sorted.shape().ndim() {
        1 => values.numel(),
        _ => values.shape().dims().last().copied().unwrap_or(1),
    };
    let cost = Cost(STEP_COST).times(n.max(2).ilog2() as usize);
    for_dtype!(values.dtype(), T => {
        type Stored = <T as Element>::Stored;
        let (sorted, values) = (sorted.run::<Stored>(), values.run::<Stored>());
        let wide = |x: Stored| T::from_stored(x).to_f64();
        let is_one_row = sorted.len() == n;
        if is_one_row && let Some(steps) = Steps::new(sorted, values.len(), wide) {
            for_each_chunk_mut(out.elements::<i64>(), 1, Cost(STEP_COST), &|first, places| {
                for (place, &value) in places.iter_mut().zip(&values[first..]) {
                    *place = steps.search(sorted, value, wide(value), right) as i64;
                }
            });
            return Ok(out.finish());
        }
        for_each_chunk_mut(out.elements::<i64>(), 1, cost, &|first, places| {
            for (i, place) in (first..).zip(places) {
                let (row, value) = (&sorted[i / per_row * n..][..n], values[i]);
                let is_number = |x: &Stored| x.partial_cmp(x).is_some();
                *place = match (is_number(&value), right) {
                    (true, true) => row.partition_point(|x| *x <= value),
                    (true, false) => row.partition_point(|x| *x < value),
                    (false, true) => n,
                    (false, false) => row.partition_point(is_number),
                } as i64;
            }
        });
    }, _ => return search_sorted(&ordered(&sorted)?, &ordered(&values)?, right));
    Ok(out.finish())
}

/// False if no element of the block comes before `best`, whose key is `largest`, or is NaN.
#[allow(clippy::neg_cmp_op_on_partial_ord, reason = "true of NaN too")]
fn may_exceed<T: Keyed>(block: &[T], best: T, largest: T::Key, op: Extremum) -> bool {
    // No early exit, so that the loops are vectorised.
    macro_rules! any {
        (|$x:ident| $exceeds:expr) => {
            block.iter().fold(false, |any, &$x| any | $exceeds)
        };
    }
    match op {
        // 16-bit floats are compared faster by their keys.
        _ if size_of::<T>() == 2 => any!(|x| x.key(T::flip(op == Extremum::Min)) > largest),
        Extremum::Max => any!(|x| !(x <= best)),
        Extremum::Min => any!(|x| !(x >= best)),
    }
}

/// Even steps of a sorted row, of which interpolation finds each place within one.
struct Steps {
    first: f64,
    per_unit: f64,
}

impl Steps {
    /// `None` unless the row `[n]` is finite and its steps nearly even, and there are enough values for the check to pay.
    fn new<T: Copy>(row: &[T], values: usize, wide: impl Fn(T) -> f64) -> Option<Steps> {
        let (&[first, .., last], n) = (row, row.len()) else { return None };
        let (first, last) = (wide(first), wide(last));
        let steps = Steps { first, per_unit: (n - 1) as f64 / (last - first) };
        let is_near = |(i, &x): (usize, &T)| {
            let at = (wide(x) - first) * steps.per_unit;
            at >= i as f64 - 1.0 && at < i as f64 + 1.0
        };
        (n <= values / 4 && row.iter().enumerate().all(is_near)).then_some(steps)
    }

    /// The place of `value`, which is `wide` as `f64`.
    #[inline]
    fn search<T: PartialOrd + Copy>(&self, row: &[T], value: T, wide: f64, right: bool) -> usize {
        if wide.is_nan() {
            return row.len();
        }
        // Rounding is monotonic, so that the element below the value is this one or next to it.
        let at = ((wide - self.first) * self.per_unit) as usize;
        let at = at.min(row.len() - 1);
        let is_before = |i: usize| row.get(i).is_some_and(|x| *x < value || right && *x == value);
        at + usize::from(is_before(at)) + usize::from(is_before(at + 1))
    }
}

pub(super) fn arg_scan(op: Extremum, x: &CpuTensor, axis: usize) -> Result<CpuTensor> {
    let name = op.name();
    x.shape().check_axis(name, axis)?;
    let (x, n) = (rows(name, x, axis)?, x.shape().dim(axis));
    let mut out = Output::new(name, x.shape(), DType::I64)?;
    if x.numel() > 0 {
        for_dtype!(x.dtype(), T => {
            type Stored = <T as Element>::Stored;
            let (x, flip) = (x.run::<Stored>(), Stored::flip(op == Extremum::Min));
            for_each_chunk_mut(out.elements::<i64>(), n, Cost(SCAN_COST), &|first, indices| {
                for (row, indices) in x[first * n..].chunks_exact(n).zip(indices.chunks_exact_mut(n)) {
                    // The last key is that of NaN, which is the result from there on.
                    let (mut largest, mut at) = (row[0].key(flip), 0);
                    let blocks = row.chunks(SCANNED).zip(indices.chunks_mut(SCANNED));
                    for ((block, indices), first) in blocks.zip((0..).step_by(SCANNED)) {
                        if !may_exceed(block, row[at], largest, op) {
                            indices.fill(at as i64);
                            continue;
                        }
                        for (i, (x, index)) in (first..).zip(block.iter().zip(indices)) {
                            let key = x.key(flip);
                            (largest, at) = if key > largest { (key, i) } else { (largest, at) };
                            *index = at as i64;
                        }
                    }
                }
            });
        }, _ => {
            let indices = arg_scan(op, &ordered(&x)?, x.shape().ndim() - 1)?;
            return moved_back(name, indices, axis);
        });
    }
    moved_back(name, out.finish(), axis)
}

//! Cumulative sums and products along any axis, in place.
//!
//! ```text
//! last axis (and extents of 1 after it)    threads share the rows
//! others: `[above, n, below]`              threads share the `above` matrices or, if there are few,
//!                                          the rows of each
//! ```
//!
//! 1. Every total accumulates from the first element to the last in `f64`. A part that begins with a later row
//!    first scans the rows above it and discards the results, which takes less than half the time of keeping
//!    them. Later parts are therefore shorter.
//! 2. Threads do not share the columns: writing short pieces of rows side by side took 1.3 to 3 times as long
//!    as one thread.

use bytemuck::Pod;
use swath_kernels::{Scan, cumprod_columns, cumprod_rows, cumsum_columns, cumsum_rows};

use super::rows::{for_each_row, in_groups};
use super::tensor::{CpuTensor, Output};
use super::working::{Working, for_float};
use super::{cast, copy};
use crate::backend::TensorData;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::ScanOp;
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{self, Band, Cost, for_each_band, for_each_part_mut};

/// Picoseconds per element.
const COST: usize = 300;

/// Ratio of the time of a discarded row to that of a kept one.
const DISCARDED_COST: f64 = 0.4;

/// Maximum number of parts of a matrix. More gain little, because each scans all rows above it.
const MAX_PARTS: usize = 8;

/// Discarded rows per kernel call: at least this many rows and about this many elements.
const DISCARDED_ROWS: usize = 8;
const DISCARDED_ELEMENTS: usize = 1024;

/// An axis of `n` elements, and the products of the extents above and below it.
#[derive(Clone, Copy)]
struct Extents {
    above: usize,
    n: usize,
    below: usize,
}

pub(super) fn scan(op: ScanOp, x: &CpuTensor, axis: usize) -> Result<CpuTensor> {
    let (name, dtype, shape) = (op.name(), x.dtype(), *x.shape());
    shape.check_axis(name, axis)?;
    let extents = Extents {
        above: shape.dims()[..axis].iter().product(),
        n: shape.dim(axis),
        below: shape.dims()[axis + 1..].iter().product(),
    };
    let result = if dtype.is_float() { dtype } else { DType::I64 };
    let mut out = Output::new(name, &shape, result)?;
    if shape.numel() == 0 {
        return Ok(out.finish());
    }
    let x = copy::contiguous(name, &cast::wide_integers(x)?)?;
    match x.dtype() {
        DType::I64 => integers::<i64>(op, extents, x.run(), out.elements()),
        DType::U8 | DType::Bool => integers::<u8>(op, extents, x.run(), out.elements()),
        _ => for_float!(name, x, T => {
            floats::<T>(op, extents, x.run(), out.elements());
            Ok(())
        })?,
    }
    Ok(out.finish())
}

type RowScan<T> = fn(&[T], usize, &mut [<T as Scan>::Out]);
type ColumnScan<T> = fn(&[T], &mut [<T as Scan>::Total], &mut [<T as Scan>::Out]);

/// The kernels of rows and of columns.
fn kernels<T: Scan>(op: ScanOp) -> (RowScan<T>, ColumnScan<T>) {
    match op {
        ScanOp::Sum => (cumsum_rows, cumsum_columns),
        ScanOp::Product => (cumprod_rows, cumprod_columns),
    }
}

/// The total before the first element.
fn start<A: From<bool>>(op: ScanOp) -> A {
    (op == ScanOp::Product).into()
}

fn floats<T: Working>(op: ScanOp, extents: Extents, x: &[T], y: &mut [T]) {
    let Extents { above, n, below } = extents;
    let (scan_rows, scan_columns) = kernels::<T::Wide>(op);
    if below == 1 {
        let cost = Cost(COST).times(n);
        return for_each_row(above, cost, [(x, n)], [(y, n)], [], |_, [x], [y], []| {
            scan_rows(x, n, y);
        });
    }
    down_columns(extents, x, y, start(op), |x, totals, y| {
        in_groups::<T, 1, 1>(0..x.len() / below, [(x, below)], [(y, below)], |_, [x], [y]| {
            scan_columns(x, totals, y);
        });
    });
}

/// Scans integers, bytes and booleans.
fn integers<T: Pod + Scan<Total = i64, Out = i64> + Sync>(
    op: ScanOp,
    extents: Extents,
    x: &[T],
    y: &mut [i64],
) {
    let Extents { above, n, below } = extents;
    let (scan_rows, scan_columns) = kernels::<T>(op);
    if below == 1 {
        return for_each_band(above, Cost(COST).times(n), Band::new(y, n), |range, y| {
            scan_rows(&x[range.start * n..range.end * n], n, y);
        });
    }
    down_columns(extents, x, y, start(op), scan_columns);
}

/// Calls `scan(rows, totals, results)` for the rows of every matrix in order; totals begin with `start`.
fn down_columns<T: Pod + Sync, Y: Pod + Send, A: Pod + Send + Sync>(
    Extents { above, n, below }: Extents,
    x: &[T],
    y: &mut [Y],
    start: A,
    scan: impl Fn(&[T], &mut [A], &mut [Y]) + Sync,
) {
    let (matrix, cost) = (n * below, Cost(COST).times(below));
    let with_totals = |f: &mut dyn FnMut(&mut [A])| {
        let mut totals = Buffer::scratch(below * size_of::<A>());
        f(&mut totals.as_slice_mut::<A>()[..below]);
    };
    let threads = parallel::threads();
    let few = above == 1 || above <= threads / 2;
    let parts = match few {
        true => parallel::parts(above * n, cost),
        false => parallel::parts(above, cost.times(n)),
    };
    let each = if few { (parts.min(threads) / above).min(MAX_PARTS).min(n) } else { 1 };
    if each < 2 {
        let parts = parts.min(above);
        let first = |part| parallel::even_start(above, parts, part);
        return for_each_part_mut(y, parts, &|part| first(part) * matrix, &|part, y| {
            let matrices = x[first(part) * matrix..].chunks_exact(matrix);
            with_totals(&mut |totals| {
                for (x, y) in matrices.clone().zip(y.chunks_exact_mut(matrix)) {
                    totals.fill(start);
                    scan(x, totals, y);
                }
            });
        });
    }
    let first = |part| part / each * matrix + first_row(n, each, part % each) * below;
    for_each_part_mut(y, above * each, &first, &|part, y| {
        let x = &x[part / each * matrix..][..matrix];
        let (above, from) = x.split_at(first(part) % matrix);
        with_totals(&mut |totals| {
            totals.fill(start);
            let rows = DISCARDED_ROWS.max(DISCARDED_ELEMENTS / below);
            let len = (rows * below).min(above.len());
            let mut discarded = Buffer::scratch(len * size_of::<Y>());
            for x in above.chunks(len.max(1)) {
                scan(x, totals, &mut discarded.as_slice_mut()[..x.len()]);
            }
            scan(&from[..y.len()], totals, y);
        });
    });
}

/// First of `n` rows that part `part` of `parts` writes. So that all parts take the same time, each is
/// `1 − DISCARDED_COST` times as long as the one before.
fn first_row(n: usize, parts: usize, part: usize) -> usize {
    let written = |parts: usize| 1.0 - (1.0 - DISCARDED_COST).powi(parts as i32);
    (n as f64 * (written(part) / written(parts))) as usize
}

//! Running sums and products along any axis, where the elements lie.
//!
//! ```text
//! last axis (and extents of 1 after it)    rows are shared by threads
//! others: `[above, n, below]`              threads share the `above` matrices; if there are few,
//!                                          the columns of each
//! ```
//!
//! Every chain runs from its first element to its last in `f64`, on one thread.

use std::ops::Range;

use bytemuck::Pod;
use swath_kernels::{cumprod_columns, cumprod_rows, cumsum_columns, cumsum_rows};

use super::fused::working::{Working, for_each_group, for_float};
use super::memory::Buffer;
use super::parallel::{self, Band, ColumnBand, Cost, for_each_band};
use super::{CpuTensor, Output, copy};
use crate::backend::TensorData;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::ScanOp;

/// Of an element.
const COST: usize = 500;

/// Columns that a thread takes at least: whole lines of the cache.
const LEAST_COLUMNS: usize = 64;

/// An axis of `n` elements and what lies above and below it.
#[derive(Clone, Copy)]
struct Extents {
    above: usize,
    n: usize,
    below: usize,
}

pub(super) fn scan(op: ScanOp, x: &CpuTensor, axis: usize) -> Result<CpuTensor> {
    let (name, dtype, shape) = (op.name(), x.dtype(), *x.shape());
    if axis >= shape.ndim() {
        let axis = isize::try_from(axis).unwrap_or(isize::MAX);
        return Err(Error::AxisOutOfRange { op: name, axis, shape });
    }
    if !dtype.has_arithmetic() {
        return Err(Error::UnsupportedDType { op: name, dtype, shape });
    }
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
    let x = copy::contiguous(name, x)?;
    match dtype {
        DType::I64 => integers::<i64>(op, extents, x.run(), out.elements()),
        DType::U8 | DType::Bool => integers::<u8>(op, extents, x.run(), out.elements()),
        _ => for_float!(name, x, T => {
            floats::<T>(op, extents, x.run(), out.elements());
            Ok(())
        })?,
    }
    Ok(out.finish())
}

fn floats<T: Working>(op: ScanOp, extents: Extents, x: &[T], y: &mut [T]) {
    let Extents { above, n, below } = extents;
    let cost = Cost(COST).times(n * below);
    let (of_rows, of_columns): (RowScan<T::Wide>, ColumnScan<T::Wide>) = match op {
        ScanOp::Sum => (cumsum_rows, cumsum_columns),
        ScanOp::Product => (cumprod_rows, cumprod_columns),
    };
    if below == 1 {
        return for_each_band(above, cost, Band::new(y, n), |range, y| {
            let x = &x[range.start * n..range.end * n];
            for_each_group::<T, 2>(range.len(), n, |rows, [x_wide, y_wide]| {
                let span = rows.start * n..rows.end * n;
                let x = T::read(&x[span.clone()], x_wide);
                T::write(&mut y[span], y_wide, |y| of_rows(x, n, y));
            });
        });
    }
    let start = match op {
        ScanOp::Sum => 0.0,
        ScanOp::Product => 1.0,
    };
    let matrix = n * below;
    if above >= parallel::threads() || below < 2 * LEAST_COLUMNS {
        return for_each_band(above, cost, Band::new(y, matrix), |range, y| {
            with_totals(below, |totals| {
                for (i, y) in range.zip(y.chunks_exact_mut(matrix)) {
                    let x = &x[i * matrix..][..matrix];
                    totals.fill(start);
                    for_each_group::<T, 2>(n, below, |rows, [x_wide, y_wide]| {
                        let span = rows.start * below..rows.end * below;
                        let x = T::read(&x[span.clone()], x_wide);
                        T::write(&mut y[span], y_wide, |y| of_columns(x, totals, y));
                    });
                }
            });
        });
    }
    // A part a thread: narrower ones leave the prefetcher idle.
    let width = below.div_ceil(parallel::threads()).next_multiple_of(LEAST_COLUMNS);
    let units = below.div_ceil(width);
    for (x, y) in x.chunks_exact(matrix).zip(y.chunks_exact_mut(matrix)) {
        let columns = ColumnBand::new(y, below, width);
        for_each_band(units, Cost(COST).times(n * width), columns, |units, mut y| {
            let span: Range<usize> = units.start * width..(units.end * width).min(below);
            with_totals(span.len(), |totals| {
                totals.fill(start);
                for_each_group::<T, 2>(n, span.len(), |rows, [x_wide, y_wide]| {
                    for i in rows {
                        let x = T::read(&x[i * below..][span.clone()], x_wide);
                        T::write(y.row(i), y_wide, |y| of_columns(x, totals, y));
                    }
                });
            });
        });
    }
}

type RowScan<E> = fn(&[E], usize, &mut [E]);
type ColumnScan<E> = fn(&[E], &mut [f64], &mut [E]);

fn with_totals(len: usize, f: impl FnOnce(&mut [f64])) {
    let mut totals = Buffer::scratch(len * size_of::<f64>());
    f(&mut totals.as_slice_mut::<f64>()[..len]);
}

/// Totals wrap; truth values and bytes count as integers.
fn integers<T: Pod + Into<i64> + Sync>(op: ScanOp, extents: Extents, x: &[T], y: &mut [i64]) {
    let Extents { above, n, below } = extents;
    let matrix = n * below;
    let join = match op {
        ScanOp::Sum => i64::wrapping_add,
        ScanOp::Product => i64::wrapping_mul,
    };
    for_each_band(above, Cost(COST).times(matrix), Band::new(y, matrix), |range, y| {
        let x = &x[range.start * matrix..range.end * matrix];
        for (x, y) in x.chunks_exact(matrix).zip(y.chunks_exact_mut(matrix)) {
            for (y, &x) in y.iter_mut().zip(x) {
                *y = x.into();
            }
            for row in 1..n {
                let (before, here) = y.split_at_mut(row * below);
                let before = &before[(row - 1) * below..];
                here[..below].iter_mut().zip(before).for_each(|(y, &total)| *y = join(total, *y));
            }
        }
    });
}

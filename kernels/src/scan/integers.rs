//! Running sums and products of integers, wrapping in `i64`. A row is one chain; columns are plain loops, which
//! the compiler vectorises for the instruction set that the dispatcher enters.

use core::mem::MaybeUninit;

use crate::dispatch::Task;
use crate::reduce::{Integer, IntegerFold};
use crate::simd::Simd;

/// Rows that follow one another; the lengths are equal multiples of `cols`, which is not 0.
pub(crate) struct ScanRows<'a, T> {
    pub fold: IntegerFold,
    pub x: &'a [T],
    pub cols: usize,
    pub y: &'a mut [MaybeUninit<i64>],
}

impl<T: Integer> Task for ScanRows<'_, T> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let ScanRows { fold, x, cols, y } = self;
        match fold {
            IntegerFold::Sum => scan_rows(x, cols, y, 0, i64::wrapping_add),
            IntegerFold::Product => scan_rows(x, cols, y, 1, i64::wrapping_mul),
        }
    }
}

#[inline(always)]
fn scan_rows<T: Integer>(
    x: &[T],
    cols: usize,
    y: &mut [MaybeUninit<i64>],
    start: i64,
    join: impl Fn(i64, i64) -> i64,
) {
    for (x, y) in x.chunks_exact(cols).zip(y.chunks_exact_mut(cols)) {
        let mut total = start;
        for (&x, y) in x.iter().zip(y) {
            total = join(total, x.into());
            y.write(total);
        }
    }
}

/// Rows whose columns are scanned on from totals; the lengths are equal multiples of that of `totals`.
pub(crate) struct ScanColumns<'a, T> {
    pub fold: IntegerFold,
    pub x: &'a [T],
    pub totals: &'a mut [i64],
    pub y: &'a mut [MaybeUninit<i64>],
}

impl<T: Integer> Task for ScanColumns<'_, T> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let ScanColumns { fold, x, totals, y } = self;
        match fold {
            IntegerFold::Sum => scan_columns(x, totals, y, i64::wrapping_add),
            IntegerFold::Product => scan_columns(x, totals, y, i64::wrapping_mul),
        }
    }
}

#[inline(always)]
fn scan_columns<T: Integer>(
    x: &[T],
    totals: &mut [i64],
    y: &mut [MaybeUninit<i64>],
    join: impl Fn(i64, i64) -> i64,
) {
    let cols = totals.len().max(1);
    for (x, y) in x.chunks_exact(cols).zip(y.chunks_exact_mut(cols)) {
        for ((&x, total), y) in x.iter().zip(&mut *totals).zip(y) {
            *total = join(*total, x.into());
            y.write(*total);
        }
    }
}

//! Running sums and products of integers, wrapping in `i64`. A row is one chain; columns are plain
//! loops, which the compiler vectorises for the instruction set that the dispatcher enters.

use core::mem::MaybeUninit;

use super::Integer;
use crate::simd::{Simd, Task};

#[inline(always)]
fn join(total: i64, x: i64, product: bool) -> i64 {
    if product { total.wrapping_mul(x) } else { total.wrapping_add(x) }
}

/// A scan along contiguous rows; the lengths are the same multiple of `cols`, which is not 0.
pub(crate) struct ScanRows<'a, T> {
    pub product: bool,
    pub x: &'a [T],
    pub cols: usize,
    pub y: &'a mut [MaybeUninit<i64>],
}

impl<T: Integer> Task for ScanRows<'_, T> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        match self.product {
            true => scan_rows(ScanRows { product: true, ..self }),
            false => scan_rows(ScanRows { product: false, ..self }),
        }
    }
}

#[inline(always)]
fn scan_rows<T: Integer>(ScanRows { product, x, cols, y }: ScanRows<'_, T>) {
    for (x, y) in x.chunks_exact(cols).zip(y.chunks_exact_mut(cols)) {
        let mut total = i64::from(product);
        for (&x, y) in x.iter().zip(y) {
            total = join(total, x.into(), product);
            y.write(total);
        }
    }
}

/// A scan down columns, starting from `totals`; the lengths are the same multiple of
/// `totals.len()`.
pub(crate) struct ScanColumns<'a, T> {
    pub product: bool,
    pub x: &'a [T],
    pub totals: &'a mut [i64],
    pub y: &'a mut [MaybeUninit<i64>],
}

impl<T: Integer> Task for ScanColumns<'_, T> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        match self.product {
            true => scan_columns(ScanColumns { product: true, ..self }),
            false => scan_columns(ScanColumns { product: false, ..self }),
        }
    }
}

#[inline(always)]
fn scan_columns<T: Integer>(ScanColumns { product, x, totals, y }: ScanColumns<'_, T>) {
    let cols = totals.len().max(1);
    for (x, y) in x.chunks_exact(cols).zip(y.chunks_exact_mut(cols)) {
        for ((&x, total), y) in x.iter().zip(&mut *totals).zip(y) {
            *total = join(*total, x.into(), product);
            y.write(*total);
        }
    }
}

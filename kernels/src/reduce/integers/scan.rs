//! Running sums and products of integers, wrapping in `i64`. A row is one chain; columns are plain
//! loops, which the compiler vectorises for the instruction set that the dispatcher enters.

use core::mem::MaybeUninit;

use crate::simd::{Simd, Task};

#[inline(always)]
fn join(total: i64, x: i64, product: bool) -> i64 {
    if product { total.wrapping_mul(x) } else { total.wrapping_add(x) }
}

/// A scan along contiguous rows.
pub(crate) struct ScanRows<'a, T> {
    x: &'a [T],
    cols: usize,
    y: &'a mut [MaybeUninit<i64>],
    product: bool,
}

impl<'a, T> ScanRows<'a, T> {
    /// Takes slices of the same length, a multiple of `cols`, which is not 0.
    pub fn new(x: &'a [T], cols: usize, y: &'a mut [MaybeUninit<i64>], product: bool) -> Self {
        ScanRows { x, cols, y, product }
    }
}

impl<T: Copy + Into<i64>> Task for ScanRows<'_, T> {
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
fn scan_rows<T: Copy + Into<i64>>(ScanRows { x, cols, y, product }: ScanRows<'_, T>) {
    for (x, y) in x.chunks_exact(cols).zip(y.chunks_exact_mut(cols)) {
        let mut total = i64::from(product);
        for (&x, y) in x.iter().zip(y) {
            total = join(total, x.into(), product);
            y.write(total);
        }
    }
}

/// A scan down the columns of a matrix, starting from `totals`.
pub(crate) struct ScanColumns<'a, T> {
    x: &'a [T],
    totals: &'a mut [i64],
    y: &'a mut [MaybeUninit<i64>],
    product: bool,
}

impl<'a, T> ScanColumns<'a, T> {
    /// Takes `x` and `y` of the same length, a multiple of that of `totals`.
    pub fn new(
        x: &'a [T],
        totals: &'a mut [i64],
        y: &'a mut [MaybeUninit<i64>],
        product: bool,
    ) -> Self {
        ScanColumns { x, totals, y, product }
    }
}

impl<T: Copy + Into<i64>> Task for ScanColumns<'_, T> {
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
fn scan_columns<T: Copy + Into<i64>>(ScanColumns { x, totals, y, product }: ScanColumns<'_, T>) {
    let cols = totals.len().max(1);
    for (x, y) in x.chunks_exact(cols).zip(y.chunks_exact_mut(cols)) {
        for ((&x, total), y) in x.iter().zip(&mut *totals).zip(y) {
            *total = join(*total, x.into(), product);
            y.write(*total);
        }
    }
}

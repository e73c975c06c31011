//! Folds of columns whose order does not matter, as plain loops: each takes four rows at a time and asks
//! for the next four.
//!
//! ```text
//! sums of u8   256 rows are added in u16, then these to the totals
//! places       numbers of the element type tell which of 128 rows have won, then these become rows
//! ```

use super::integers::{GROUP, Integer, IntegerFold};
use crate::dispatch::Task;
use crate::fold::ask_for;
use crate::simd::Simd;

/// Rows that are folded at a time.
const ROUND: usize = 4;
/// Rows of bytes that lanes of 16 bits take: 256 · 255 is below 2^16.
const BAND: usize = 256;
/// Columns side by side: their winners, places and lanes stay in the first-level cache.
pub(super) const TILE: usize = 512;

/// What an element is joined to a total by.
pub(super) trait Join<T, Y> {
    fn join(total: Y, x: T) -> Y;
}

/// Wrapping sums.
pub(super) struct Sums;

impl Join<i64, i64> for Sums {
    #[inline(always)]
    fn join(total: i64, x: i64) -> i64 {
        total.wrapping_add(x)
    }
}

impl Join<u8, u16> for Sums {
    #[inline(always)]
    fn join(total: u16, x: u8) -> u16 {
        total.wrapping_add(u16::from(x))
    }
}

/// Wrapping products in `i64`.
struct Products;

impl<T: Integer> Join<T, i64> for Products {
    #[inline(always)]
    fn join(total: i64, x: T) -> i64 {
        total.wrapping_mul(x.into())
    }
}

/// The better of two.
pub(super) struct Winner<const LARGEST: bool>;

impl<T: Integer, const LARGEST: bool> Join<T, T> for Winner<LARGEST> {
    #[inline(always)]
    fn join(best: T, x: T) -> T {
        let better = if LARGEST { x > best } else { x < best };
        if better { x } else { best }
    }
}

/// Joins the elements of rows, `stride` elements apart, to the totals of their columns.
#[inline(always)]
pub(super) fn join_rows<J: Join<T, Y>, T: Copy, Y: Copy, S: Simd>(
    simd: S,
    x: &[T],
    rows: usize,
    stride: usize,
    y: &mut [Y],
) {
    let cols = y.len();
    if cols == 0 {
        // Rows of nothing may lie beyond the slice.
        return;
    }
    let mut row = 0;
    while rows - row >= ROUND {
        ask_for_rows(simd, x, row + ROUND, stride, cols);
        let [a, b, c, d] = four_rows(x, row, stride, cols);
        for i in 0..cols {
            y[i] = J::join(J::join(J::join(J::join(y[i], a[i]), b[i]), c[i]), d[i]);
        }
        row += ROUND;
    }
    while row < rows {
        let x = &x[row * stride..][..cols];
        for i in 0..cols {
            y[i] = J::join(y[i], x[i]);
        }
        row += 1;
    }
}

/// Asks for [`ROUND`] rows, which need not exist.
#[inline(always)]
fn ask_for_rows<T, S: Simd>(simd: S, x: &[T], row: usize, stride: usize, cols: usize) {
    for row in row..row + ROUND {
        ask_for(simd, x.as_ptr().wrapping_add(row.wrapping_mul(stride)), cols);
    }
}

#[inline(always)]
fn four_rows<T>(x: &[T], row: usize, stride: usize, cols: usize) -> [&[T]; ROUND] {
    let x = &x[row * stride..];
    [&x[..cols], &x[stride..][..cols], &x[2 * stride..][..cols], &x[3 * stride..][..cols]]
}

/// Adds rows of bytes to `y`.
#[inline(always)]
pub(super) fn add_bytes<S: Simd>(simd: S, x: &[u8], rows: usize, stride: usize, y: &mut [i64]) {
    for (tile, y) in y.chunks_mut(TILE).enumerate() {
        for band in (0..rows).step_by(BAND) {
            let mut lanes = [0u16; TILE];
            let (x, lanes) = (&x[band * stride + tile * TILE..], &mut lanes[..y.len()]);
            let count = BAND.min(rows - band);
            join_rows::<Sums, u8, u16, S>(simd, x, count, stride, lanes);
            for (y, &lane) in y.iter_mut().zip(&*lanes) {
                *y = y.wrapping_add(i64::from(lane));
            }
        }
    }
}

/// The sums or products of columns.
pub(super) struct FoldColumns<'a, T> {
    pub fold: IntegerFold,
    pub x: &'a [T],
    pub rows: usize,
    pub stride: usize,
    pub y: &'a mut [i64],
}

impl<T: Integer> Task for FoldColumns<'_, T> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let FoldColumns { fold, x, rows, stride, y } = self;
        match fold {
            IntegerFold::Sum => {
                y.fill(0);
                T::add_rows(simd, x, rows, stride, y);
            }
            IntegerFold::Product => {
                y.fill(1);
                join_rows::<Products, T, i64, S>(simd, x, rows, stride, y);
            }
        }
    }
}

/// The winners of columns; there are rows.
pub(super) struct EndColumns<'a, T, const LARGEST: bool> {
    pub x: &'a [T],
    pub rows: usize,
    pub stride: usize,
    pub y: &'a mut [T],
}

impl<T: Integer, const LARGEST: bool> Task for EndColumns<'_, T, LARGEST> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let EndColumns { x, rows, stride, y } = self;
        y.copy_from_slice(&x[..y.len()]);
        join_rows::<Winner<LARGEST>, T, T, S>(simd, x, rows, stride, y);
    }
}

/// The rows of the first winners of columns; there are rows.
pub(super) struct PlaceColumns<'a, T, const LARGEST: bool> {
    pub x: &'a [T],
    pub rows: usize,
    pub stride: usize,
    pub y: &'a mut [i64],
}

impl<T: Integer, const LARGEST: bool> Task for PlaceColumns<'_, T, LARGEST> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let PlaceColumns { x, rows, stride, y } = self;
        for (tile, y) in y.chunks_mut(TILE).enumerate() {
            let mut best = [T::NONE; TILE];
            let (x, cols) = (&x[tile * TILE..], y.len());
            best[..cols].copy_from_slice(&x[..cols]);
            y.fill(0);
            for band in (0..rows).step_by(GROUP) {
                let mut places = [T::NONE; TILE];
                let (places, best) = (&mut places[..cols], &mut best[..cols]);
                let count = GROUP.min(rows - band);
                compete::<T, S, LARGEST>(simd, &x[band * stride..], count, stride, best, places);
                for (y, &place) in y.iter_mut().zip(&*places) {
                    let here = (band as i64).wrapping_add(place.into());
                    *y = if place == T::NONE { *y } else { here };
                }
            }
        }
    }
}

/// Lets `rows` rows compete with the best so far; `places` become the numbers of those that win.
#[inline(always)]
fn compete<T: Integer, S: Simd, const LARGEST: bool>(
    simd: S,
    x: &[T],
    rows: usize,
    stride: usize,
    best: &mut [T],
    places: &mut [T],
) {
    let cols = best.len();
    let places = &mut places[..cols];
    let mut row = 0;
    while rows - row >= ROUND {
        ask_for_rows(simd, x, row + ROUND, stride, cols);
        let [a, b, c, d] = four_rows(x, row, stride, cols);
        for i in 0..cols {
            let mut found = (best[i], places[i]);
            found = better::<T, LARGEST>(found, a[i], T::number(row));
            found = better::<T, LARGEST>(found, b[i], T::number(row + 1));
            found = better::<T, LARGEST>(found, c[i], T::number(row + 2));
            found = better::<T, LARGEST>(found, d[i], T::number(row + 3));
            (best[i], places[i]) = found;
        }
        row += ROUND;
    }
    while row < rows {
        let x = &x[row * stride..][..cols];
        for i in 0..cols {
            let found = (best[i], places[i]);
            (best[i], places[i]) = better::<T, LARGEST>(found, x[i], T::number(row));
        }
        row += 1;
    }
}

/// The better of the best so far and `x`, with its place; of equals the former.
#[inline(always)]
fn better<T: Integer, const LARGEST: bool>((best, place): (T, T), x: T, number: T) -> (T, T) {
    let winner = Winner::<LARGEST>::join(best, x);
    (winner, if winner == best { place } else { number })
}

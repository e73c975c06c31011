//! Running sums and products along rows and down columns.

use core::mem::MaybeUninit;

use super::call::{Call, Rows, Work};
use super::same_len;
use crate::fold::scan::{ScanColumns, ScanRows};
use crate::map::rows::places;
use crate::output::Output;
use crate::reduce::Integer;

/// Running sum of each row of `cols` elements: `y[k] = x[0] + … + x[k]`.
///
/// * *Order.* Elements are added from left to right, in `f64` and starting from +0; each total is
///   rounded once to `E`.
///   The bits are the same on every instruction set, and along rows as along columns
///   ([`cumsum_columns`]).
/// * *Error.* At most `k 2⁻⁵³ Σ|x|` before the rounding. For 2²⁶ `f32` elements of one sign, that
///   adds at most 1/8 ULP to the half ULP of the rounding.
///
/// ```
/// let mut y = [0.0f32; 4];
/// swath_kernels::cumsum_rows(&[1e8f32, 1.0, -1e8, 2.0], 4, &mut y);
/// assert_eq!(y, [1e8, 1e8, 1.0, 3.0]);
/// ```
///
/// # Panics
/// If the lengths differ or are not a multiple of `cols`.
#[track_caller]
pub fn cumsum_rows<E: Rows>(x: &[E], cols: usize, y: &mut (impl Output<E> + ?Sized)) {
    rows("cumsum", x, cols, places(y), false);
}

/// Running product of each row of `cols` elements: `y[k] = x[0] · … · x[k]`.
///
/// Like [`cumsum_rows`], but starting from 1. `f32` is multiplied in `f64`, so an intermediate
/// product may leave the range of `f32` and come back.
///
/// ```
/// let mut y = [0.0f32; 3];
/// swath_kernels::cumprod_rows(&[2.0f32, -3.0, 0.5], 3, &mut y);
/// assert_eq!(y, [2.0, -6.0, -3.0]);
/// ```
///
/// # Panics
/// In the cases of [`cumsum_rows`].
#[track_caller]
pub fn cumprod_rows<E: Rows>(x: &[E], cols: usize, y: &mut (impl Output<E> + ?Sized)) {
    rows("cumprod", x, cols, places(y), true);
}

/// Running sum of each column of a row-major matrix, with the bits of [`cumsum_rows`]. It starts
/// from `totals` and leaves the sums of the last row there.
///
/// ```
/// let (mut totals, mut y) = ([10.0, 20.0], [0.0f32; 4]);
/// swath_kernels::cumsum_columns(&[1.0f32, 2.0, 3.0, 4.0], &mut totals, &mut y);
/// assert_eq!((y, totals), ([11.0, 22.0, 14.0, 26.0], [14.0, 26.0]));
/// ```
///
/// # Panics
/// If the lengths differ or are not a multiple of `totals.len()`.
#[track_caller]
pub fn cumsum_columns<E: Rows>(x: &[E], totals: &mut [f64], y: &mut (impl Output<E> + ?Sized)) {
    columns("cumsum", x, totals, places(y), false);
}

/// Running product of each column of a row-major matrix; otherwise like [`cumsum_columns`].
///
/// ```
/// let (mut totals, mut y) = ([1.0, 1.0], [0.0f32; 4]);
/// swath_kernels::cumprod_columns(&[1.0f32, 2.0, 3.0, 4.0], &mut totals, &mut y);
/// assert_eq!(y, [1.0, 2.0, 3.0, 8.0]);
/// ```
///
/// # Panics
/// In the cases of [`cumsum_columns`].
#[track_caller]
pub fn cumprod_columns<E: Rows>(x: &[E], totals: &mut [f64], y: &mut (impl Output<E> + ?Sized)) {
    columns("cumprod", x, totals, places(y), true);
}

/// The operation of an integer scan, wrapping in `i64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntegerFold {
    /// Running sum, from 0.
    Sum,
    /// Running product, from 1.
    Product,
}

/// Running sum or product of each row of `cols` integers, wrapping in `i64`.
///
/// ```
/// use swath_kernels::{IntegerFold, scan_integer_rows};
/// let mut y = [0; 4];
/// scan_integer_rows(IntegerFold::Sum, &[200u8, 100, 1, 2], 2, &mut y);
/// assert_eq!(y, [200, 300, 1, 3]);
/// ```
///
/// # Panics
/// In the cases of [`cumsum_rows`].
#[track_caller]
pub fn scan_integer_rows<T: Integer>(
    fold: IntegerFold,
    x: &[T],
    cols: usize,
    y: &mut (impl Output<i64> + ?Sized),
) {
    let y = places(y);
    check("scan_integer_rows", x.len(), cols, y.len());
    T::scan_rows(fold == IntegerFold::Product, x, cols.max(1), y);
}

/// Running sum or product of each column of a row-major matrix, wrapping in `i64`. It starts from
/// `totals` and leaves the totals of the last row there.
///
/// ```
/// use swath_kernels::{IntegerFold, scan_integer_columns};
/// let (mut totals, mut y) = ([1, -1], [0; 4]);
/// scan_integer_columns(IntegerFold::Product, &[2i64, 3, 4, 5], &mut totals, &mut y);
/// assert_eq!((y, totals), ([2, -3, 8, -15], [8, -15]));
/// ```
///
/// # Panics
/// In the cases of [`cumsum_columns`].
#[track_caller]
pub fn scan_integer_columns<T: Integer>(
    fold: IntegerFold,
    x: &[T],
    totals: &mut [i64],
    y: &mut (impl Output<i64> + ?Sized),
) {
    let y = places(y);
    check("scan_integer_columns", x.len(), totals.len(), y.len());
    T::scan_columns(fold == IntegerFold::Product, x, totals, y);
}

#[track_caller]
fn check(name: &str, len: usize, cols: usize, y: usize) {
    same_len(name, y, len);
    assert!(len.is_multiple_of(cols), "{name}: {len} elements do not divide into rows of {cols}");
}

#[track_caller]
fn rows<E: Rows>(name: &str, x: &[E], cols: usize, y: &mut [MaybeUninit<E>], product: bool) {
    check(name, x.len(), cols, y.len());
    E::run(Call(Work::ScanRows(ScanRows::new(x, cols.max(1), y, product))));
}

#[track_caller]
fn columns<E: Rows>(
    name: &str,
    x: &[E],
    totals: &mut [f64],
    y: &mut [MaybeUninit<E>],
    product: bool,
) {
    check(name, x.len(), totals.len(), y.len());
    E::run(Call(Work::ScanColumns(ScanColumns::new(x, totals, y, product))));
}

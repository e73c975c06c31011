//! Reductions of each column of a row-major matrix, whose rows need not be adjacent. Each result has
//! the bits that the function of the same name gives for the column as a slice.

use core::mem::MaybeUninit;

use super::{Accumulate, ColumnFold, ColumnSearch, Columns, End, Reduce, Search};
use crate::fold::PairwiseSum;
use crate::fold::columns::{Folded, Rows};
use crate::fold::partial::{OfMoments, OfSum};
use crate::map::rows::places;
use crate::output::Output;
use crate::{Block, BlockArg};

/// The sum of each column of a row-major matrix `x` `[rows, y.len()]`, whose rows begin
/// `row_stride` elements apart; +0 if there are no rows.
///
/// ```
/// let mut y = [0.0f32; 2];
/// swath_kernels::sum_columns(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3, 2, &mut y);
/// assert_eq!(y, [9.0, 12.0]);
/// ```
///
/// # Panics
/// If the last row ends beyond `x`.
#[track_caller]
pub fn sum_columns<E: Accumulate>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut (impl Output<E> + ?Sized),
) {
    let (y, cols) = y.as_raw();
    let x = Rows::new("sum_columns", x, rows, cols, row_stride);
    E::fold_columns(ColumnFold(x, Columns::Sum(Folded::Rounded(y, OfSum::Whole))));
}

/// The arithmetic mean of each column, as [`sum_columns`]; NaN if there are no rows.
///
/// ```
/// let mut y = [0.0f32; 2];
/// swath_kernels::mean_columns(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3, 2, &mut y);
/// assert_eq!(y, [3.0, 4.0]);
/// ```
///
/// # Panics
/// If the last row ends beyond `x`.
#[track_caller]
pub fn mean_columns<E: Accumulate>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut (impl Output<E> + ?Sized),
) {
    let (y, cols) = y.as_raw();
    let x = Rows::new("mean_columns", x, rows, cols, row_stride);
    E::fold_columns(ColumnFold(x, Columns::Sum(Folded::Rounded(y, OfSum::Mean(rows as f64)))));
}

/// The product of each column, as [`sum_columns`]; 1 if there are no rows.
///
/// ```
/// let mut y = [0.0f32; 2];
/// swath_kernels::prod_columns(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3, 2, &mut y);
/// assert_eq!(y, [15.0, 48.0]);
/// ```
///
/// # Panics
/// If the last row ends beyond `x`.
#[track_caller]
pub fn prod_columns<E: Accumulate>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut (impl Output<E> + ?Sized),
) {
    let (y, cols) = y.as_raw();
    let x = Rows::new("prod_columns", x, rows, cols, row_stride);
    E::fold_columns(ColumnFold(x, Columns::Factors(Folded::Rounded(y, ()))));
}

/// The variance of each column, as [`variance`](crate::variance); rows as in [`sum_columns`].
///
/// ```
/// let mut y = [0.0f32; 2];
/// swath_kernels::variance_columns(&[1.0, 2.0, 3.0, 4.0, 5.0, 9.0], 3, 2, 1, &mut y);
/// assert_eq!(y, [4.0, 13.0]);
/// ```
///
/// # Panics
/// If the last row ends beyond `x`.
#[track_caller]
pub fn variance_columns<E: Accumulate>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    ddof: usize,
    y: &mut (impl Output<E> + ?Sized),
) {
    let (y, cols) = y.as_raw();
    let x = Rows::new("variance_columns", x, rows, cols, row_stride);
    E::fold_columns(ColumnFold(x, Columns::Moments(Folded::Rounded(y, OfMoments::Variance(ddof)))));
}

/// The standard deviation of each column, as [`variance_columns`].
///
/// ```
/// let mut y = [0.0f32; 2];
/// swath_kernels::std_columns(&[1.0, 2.0, 5.0, 2.0], 2, 2, 0, &mut y);
/// assert_eq!(y, [2.0, 0.0]);
/// ```
///
/// # Panics
/// If the last row ends beyond `x`.
#[track_caller]
pub fn std_columns<E: Accumulate>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    ddof: usize,
    y: &mut (impl Output<E> + ?Sized),
) {
    let (y, cols) = y.as_raw();
    let x = Rows::new("std_columns", x, rows, cols, row_stride);
    E::fold_columns(ColumnFold(x, Columns::Moments(Folded::Rounded(y, OfMoments::Std(ddof)))));
}

/// The number of elements of each column that are not 0; NaN is not 0. As [`sum_columns`].
///
/// ```
/// let mut y = [0.0f32; 2];
/// swath_kernels::norm0_columns(&[1.0, 0.0, 3.0, -4.0], 2, 2, &mut y);
/// assert_eq!(y, [2.0, 1.0]);
/// ```
///
/// # Panics
/// If the last row ends beyond `x`.
#[track_caller]
pub fn norm0_columns<E: Accumulate>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut (impl Output<E> + ?Sized),
) {
    let (y, cols) = y.as_raw();
    let x = Rows::new("norm0_columns", x, rows, cols, row_stride);
    E::fold_columns(ColumnFold(x, Columns::Nonzeros(Folded::Rounded(y, OfSum::Whole))));
}

/// The sum of magnitudes of each column, as [`sum_columns`].
///
/// ```
/// let mut y = [0.0f32; 2];
/// swath_kernels::norm1_columns(&[1.0, 2.0, 3.0, -4.0], 2, 2, &mut y);
/// assert_eq!(y, [4.0, 6.0]);
/// ```
///
/// # Panics
/// If the last row ends beyond `x`.
#[track_caller]
pub fn norm1_columns<E: Accumulate>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut (impl Output<E> + ?Sized),
) {
    let (y, cols) = y.as_raw();
    let x = Rows::new("norm1_columns", x, rows, cols, row_stride);
    E::fold_columns(ColumnFold(x, Columns::Magnitudes(Folded::Rounded(y, OfSum::Whole))));
}

/// The Euclidean norm of each column, as [`norm2`](crate::norm2); rows as in [`sum_columns`].
///
/// ```
/// let mut y = [0.0f32; 2];
/// swath_kernels::norm2_columns(&[3e20, 0.0, 4e20, -2.0], 2, 2, &mut y);
/// assert_eq!(y, [5e20, 2.0]);
/// ```
///
/// # Panics
/// If the last row ends beyond `x`.
#[track_caller]
pub fn norm2_columns<E: Accumulate>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut (impl Output<E> + ?Sized),
) {
    let (y, cols) = y.as_raw();
    let x = Rows::new("norm2_columns", x, rows, cols, row_stride);
    E::fold_columns(ColumnFold(x, Columns::Squares(Folded::Rounded(y, ()))));
}

/// The largest element of each column of a row-major matrix `x` `[rows, y.len()]`, whose rows begin
/// `row_stride` elements apart; NaN and zeros as in [`max`](crate::max).
///
/// ```
/// let mut y = [0.0f32; 2];
/// swath_kernels::max_columns(&[1.0, 6.0, 3.0, 4.0], 2, 2, &mut y);
/// assert_eq!(y, [3.0, 6.0]);
/// ```
///
/// # Panics
/// If there are no rows, or the last one ends beyond `x`.
#[track_caller]
pub fn max_columns<E: Reduce>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut (impl Output<E> + ?Sized),
) {
    find("max_columns", End::Max, x, rows, row_stride, y.as_raw());
}

/// The smallest element of each column, as [`max_columns`].
///
/// ```
/// let mut y = [0.0f32; 2];
/// swath_kernels::min_columns(&[1.0, 6.0, 3.0, 4.0], 2, 2, &mut y);
/// assert_eq!(y, [1.0, 4.0]);
/// ```
///
/// # Panics
/// If there are no rows, or the last one ends beyond `x`.
#[track_caller]
pub fn min_columns<E: Reduce>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut (impl Output<E> + ?Sized),
) {
    find("min_columns", End::Min, x, rows, row_stride, y.as_raw());
}

/// The largest magnitude of each column, as [`max_columns`].
///
/// ```
/// let mut y = [0.0f32; 2];
/// swath_kernels::max_magnitude_columns(&[1.0, 6.0, -3.0, 4.0], 2, 2, &mut y);
/// assert_eq!(y, [3.0, 6.0]);
/// ```
///
/// # Panics
/// If there are no rows, or the last one ends beyond `x`.
#[track_caller]
pub fn max_magnitude_columns<E: Reduce>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut (impl Output<E> + ?Sized),
) {
    find("max_magnitude_columns", End::MaxMagnitude, x, rows, row_stride, y.as_raw());
}

/// The smallest magnitude of each column, as [`max_columns`].
///
/// ```
/// let mut y = [0.0f32; 2];
/// swath_kernels::min_magnitude_columns(&[1.0, 6.0, -3.0, 4.0], 2, 2, &mut y);
/// assert_eq!(y, [1.0, 4.0]);
/// ```
///
/// # Panics
/// If there are no rows, or the last one ends beyond `x`.
#[track_caller]
pub fn min_magnitude_columns<E: Reduce>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut (impl Output<E> + ?Sized),
) {
    find("min_magnitude_columns", End::MinMagnitude, x, rows, row_stride, y.as_raw());
}

#[track_caller]
fn find<E: Reduce>(
    name: &str,
    end: End,
    x: &[E],
    rows: usize,
    row_stride: usize,
    (y, cols): (*mut E, usize),
) {
    let rows = some_rows(name, x, rows, cols, row_stride);
    E::search_columns(ColumnSearch(Search::Element(rows, y, end)));
}

#[track_caller]
fn some_rows<E>(name: &str, x: &[E], rows: usize, cols: usize, row_stride: usize) -> Rows<E> {
    assert!(rows > 0, "{name}: no rows, so the columns have no elements");
    Rows::new(name, x, rows, cols, row_stride)
}

/// The row of the largest element of each column, as [`argmax`](crate::argmax); rows as in
/// [`max_columns`].
///
/// ```
/// let mut y = [0i64; 2];
/// swath_kernels::argmax_columns(&[1.0f32, 6.0, 3.0, 4.0], 2, 2, &mut y);
/// assert_eq!(y, [1, 0]);
/// ```
///
/// # Panics
/// If there are no rows, or the last one ends beyond `x`.
#[track_caller]
pub fn argmax_columns<E: Reduce>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut (impl Output<i64> + ?Sized),
) {
    let (y, cols) = y.as_raw();
    let rows = some_rows("argmax_columns", x, rows, cols, row_stride);
    E::search_columns(ColumnSearch(Search::Index(rows, y, true)));
}

/// The row of the smallest element of each column, as [`argmax_columns`].
///
/// ```
/// let mut y = [0i64; 2];
/// swath_kernels::argmin_columns(&[1.0f32, 6.0, 3.0, 4.0], 2, 2, &mut y);
/// assert_eq!(y, [0, 1]);
/// ```
///
/// # Panics
/// If there are no rows, or the last one ends beyond `x`.
#[track_caller]
pub fn argmin_columns<E: Reduce>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut (impl Output<i64> + ?Sized),
) {
    let (y, cols) = y.as_raw();
    let rows = some_rows("argmin_columns", x, rows, cols, row_stride);
    E::search_columns(ColumnSearch(Search::Index(rows, y, false)));
}

/// Powers that are made at a time: of a block of rows, of so many columns at most.
const POWERS: usize = 16 * PairwiseSum::BLOCK;
const POWERS_COLS: usize = 256;

/// `ln Σ e^x` of each column, as [`logsumexp`](crate::logsumexp); rows as in [`sum_columns`]; −∞ if
/// there are none.
///
/// ```
/// let mut y = [0.0f32; 2];
/// swath_kernels::logsumexp_columns(&[1000.0, 0.0, 1000.0, f32::NEG_INFINITY], 2, 2, &mut y);
/// assert_eq!(y, [1000.6932, 0.0]);
/// ```
///
/// # Panics
/// If the last row ends beyond `x`.
#[track_caller]
pub fn logsumexp_columns<E: Reduce>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut (impl Output<E> + ?Sized),
) {
    let y = places(y);
    Rows::new("logsumexp_columns", x, rows, y.len(), row_stride);
    let width = (POWERS / rows.clamp(1, PairwiseSum::BLOCK)).min(POWERS_COLS);
    let mut largest = [-E::INFINITY; POWERS_COLS];
    let mut powers = [MaybeUninit::uninit(); POWERS];
    let mut sums = [0.0; POWERS_COLS];
    let mut logs = [0.0; POWERS_COLS];
    for (tile, y) in y.chunks_mut(width).enumerate() {
        let (cols, first) = (y.len(), tile * width);
        let largest = &mut largest[..cols];
        if rows > 0 {
            max_columns(&x[first..], rows, row_stride, largest);
        }
        // Of more rows than a block's few columns are taken.
        let mut trees = match rows {
            0..=PairwiseSum::BLOCK => None,
            _ => Some([const { PairwiseSum::new() }; POWERS / PairwiseSum::BLOCK]),
        };
        for row in (0..rows).step_by(PairwiseSum::BLOCK) {
            let rows = PairwiseSum::BLOCK.min(rows - row);
            let (start, stride) = (row * row_stride + first, row_stride as isize);
            let terms = BlockArg { data: x, start, stride, is_value: false };
            let shape = Block { rows, cols, stride: cols };
            let powers = E::shifted_exps(terms, shape, largest, &mut powers[..rows * cols]);
            PairwiseSum::sums_of_columns(powers, rows, cols, &mut sums[..cols]);
            if let Some(trees) = &mut trees {
                trees.iter_mut().zip(&sums[..cols]).for_each(|(tree, &sum)| tree.push(sum));
            }
        }
        if let Some(trees) = &trees {
            sums.iter_mut().zip(trees).for_each(|(sum, tree)| *sum = tree.finish());
        }
        crate::log(&sums[..cols], &mut logs[..cols]);
        for ((y, &log), &m) in y.iter_mut().zip(&logs).zip(&*largest) {
            // NaN and ±∞ stand for themselves.
            let m = m.to_f64();
            y.write(E::from_f64(if m.is_finite() { m + log } else { m }));
        }
    }
}

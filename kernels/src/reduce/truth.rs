//! Whether any, or all, of the elements are other than 0.
//!
//! An element is taken as its [`Truth::key`], bits that are 0 where it is ±0: the keys, or the marks
//! of keys that are 0, are joined by *or* in lanes as wide as the element. A slice is left at the
//! first chunk that decides.

use core::ops::BitOr;

use super::integers::CHUNK;
use super::joined::{Join, TILE, join_rows};
use crate::convert::Truth;
use crate::dispatch::{Task, run};
use crate::fold::ask_ahead;
use crate::fold::columns::Rows;
use crate::simd::Simd;

/// Whether an element is other than 0; NaN is.
///
/// ```
/// assert!(swath_kernels::any(&[0.0f32, -0.0, f32::NAN]));
/// assert!(!swath_kernels::any(&[0u8; 3]));
/// ```
pub fn any<T: Truth>(x: &[T]) -> bool {
    T::decided(x, false)
}

/// Whether all elements are other than 0; NaN is.
///
/// ```
/// assert!(swath_kernels::all(&[1i64, -1]));
/// assert!(!swath_kernels::all(&[1.0f64, -0.0]));
/// ```
pub fn all<T: Truth>(x: &[T]) -> bool {
    !T::decided(x, true)
}

/// [`any`] of each column of a row-major matrix `x` `[rows, y.len()]`, whose rows begin `row_stride`
/// elements apart, as 0 or 1.
///
/// ```
/// let mut y = [7; 2];
/// swath_kernels::any_columns(&[0i64, 0, 0, 5], 2, 2, &mut y);
/// assert_eq!(y, [0, 1]);
/// ```
///
/// # Panics
/// If the last row ends beyond `x`.
#[track_caller]
pub fn any_columns<T: Truth>(x: &[T], rows: usize, row_stride: usize, y: &mut [u8]) {
    Rows::new("any_columns", x, rows, y.len(), row_stride);
    T::decided_columns(x, rows, row_stride, y, false);
}

/// [`all`] of each column, as [`any_columns`].
///
/// ```
/// let mut y = [7; 2];
/// swath_kernels::all_columns(&[0.0f32, 2.0, 1.0, 5.0], 2, 2, &mut y);
/// assert_eq!(y, [0, 1]);
/// ```
///
/// # Panics
/// If the last row ends beyond `x`.
#[track_caller]
pub fn all_columns<T: Truth>(x: &[T], rows: usize, row_stride: usize, y: &mut [u8]) {
    Rows::new("all_columns", x, rows, y.len(), row_stride);
    T::decided_columns(x, rows, row_stride, y, true);
}

/// Marks what decides: with `ALL` elements that are 0, else those that are not.
struct Marks<const ALL: bool>;

impl<T: Truth, const ALL: bool> Join<T, T::Key> for Marks<ALL> {
    #[inline(always)]
    fn join(found: T::Key, x: T) -> T::Key {
        let key = x.key();
        found.bitor(if ALL { T::Key::from(key == T::Key::default()) } else { key })
    }
}

/// Whether an element decides.
pub(crate) fn decided<T: Truth>(x: &[T], all: bool) -> bool {
    match all {
        true => run(Decided::<T, true>(x)),
        false => run(Decided::<T, false>(x)),
    }
}

/// Writes for each column whether it is true, from whether an element decides.
pub(crate) fn decided_columns<T: Truth>(
    x: &[T],
    rows: usize,
    stride: usize,
    y: &mut [u8],
    all: bool,
) {
    match all {
        true => run(DecidedColumns::<T, true> { x, rows, stride, y }),
        false => run(DecidedColumns::<T, false> { x, rows, stride, y }),
    }
}

struct Decided<'a, T, const ALL: bool>(&'a [T]);

impl<T: Truth, const ALL: bool> Task for Decided<'_, T, ALL> {
    type Home = Self;
    type Output = bool;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> bool {
        for x in self.0.chunks(CHUNK / size_of::<T>()) {
            ask_ahead(simd, x.as_ptr(), x.len());
            let mut found = T::Key::default();
            for &x in x {
                found = Marks::<ALL>::join(found, x);
            }
            if found != T::Key::default() {
                return true;
            }
        }
        false
    }
}

struct DecidedColumns<'a, T, const ALL: bool> {
    x: &'a [T],
    rows: usize,
    stride: usize,
    y: &'a mut [u8],
}

impl<T: Truth, const ALL: bool> Task for DecidedColumns<'_, T, ALL> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let DecidedColumns { x, rows, stride, y } = self;
        for (tile, y) in y.chunks_mut(TILE).enumerate() {
            let mut found = [T::Key::default(); TILE];
            let found = &mut found[..y.len()];
            if rows > 0 {
                join_rows::<Marks<ALL>, T, T::Key, S>(simd, &x[tile * TILE..], rows, stride, found);
            }
            for (y, &found) in y.iter_mut().zip(&*found) {
                *y = u8::from((found != T::Key::default()) != ALL);
            }
        }
    }
}

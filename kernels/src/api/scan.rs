//! Running sums and products along rows and down columns.

use core::mem::MaybeUninit;

use super::same_len;
use crate::dispatch::run;
use crate::fold::scan as floats;
use crate::map::rows::places;
use crate::output::Output;
use crate::reduce::integers::scan as integers;

/// Element types of scans. Totals of `f32` and `f64` are `f64`, and results have the type of the
/// elements; totals and results of `i64` and `u8` are `i64`, and wrap. Sealed.
pub trait Scan: Copy + sealed::Sealed {
    /// The type of totals.
    type Total: Copy;
    /// The type of results.
    type Out: Copy;
    #[doc(hidden)]
    fn rows(product: bool, x: &[Self], cols: usize, y: &mut [MaybeUninit<Self::Out>]);
    #[doc(hidden)]
    fn columns(
        product: bool,
        x: &[Self],
        totals: &mut [Self::Total],
        y: &mut [MaybeUninit<Self::Out>],
    );
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! scans {
    ($($t:ident $total:ident $out:ident, $tasks:ident;)*) => {$(
        impl sealed::Sealed for $t {}
        impl Scan for $t {
            type Total = $total;
            type Out = $out;
            fn rows(product: bool, x: &[$t], cols: usize, y: &mut [MaybeUninit<$out>]) {
                run($tasks::ScanRows::new(x, cols, y, product));
            }
            fn columns(
                product: bool,
                x: &[$t],
                totals: &mut [$total],
                y: &mut [MaybeUninit<$out>],
            ) {
                run($tasks::ScanColumns::new(x, totals, y, product));
            }
        }
    )*};
}
scans! {
    f32 f64 f32, floats;
    f64 f64 f64, floats;
    i64 i64 i64, integers;
    u8 i64 i64, integers;
}

/// Running sum of each row of `cols` elements: `y[k] = x[0] + … + x[k]`.
///
/// * *Order.* Elements are added from left to right, starting from +0; each total of floats is in
///   `f64` and rounded once to the result. The bits are the same on every instruction set, and along
///   rows as along columns ([`cumsum_columns`]).
/// * *Error.* At most `k 2⁻⁵³ Σ|x|` before the rounding. For 2²⁶ `f32` elements of one sign, that
///   adds at most 1/8 ULP to the half ULP of the rounding.
///
/// ```
/// let mut y = [0.0f32; 4];
/// swath_kernels::cumsum_rows(&[1e8f32, 1.0, -1e8, 2.0], 4, &mut y);
/// assert_eq!(y, [1e8, 1e8, 1.0, 3.0]);
/// let mut y = [0; 4];
/// swath_kernels::cumsum_rows(&[200u8, 100, 1, 2], 2, &mut y);
/// assert_eq!(y, [200, 300, 1, 3]);
/// ```
///
/// # Panics
/// If the lengths differ or are not a multiple of `cols`.
#[track_caller]
pub fn cumsum_rows<T: Scan>(x: &[T], cols: usize, y: &mut (impl Output<T::Out> + ?Sized)) {
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
pub fn cumprod_rows<T: Scan>(x: &[T], cols: usize, y: &mut (impl Output<T::Out> + ?Sized)) {
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
pub fn cumsum_columns<T: Scan>(
    x: &[T],
    totals: &mut [T::Total],
    y: &mut (impl Output<T::Out> + ?Sized),
) {
    columns("cumsum", x, totals, places(y), false);
}

/// Running product of each column of a row-major matrix; otherwise like [`cumsum_columns`].
///
/// ```
/// let (mut totals, mut y) = ([1, -1], [0; 4]);
/// swath_kernels::cumprod_columns(&[2i64, 3, 4, 5], &mut totals, &mut y);
/// assert_eq!((y, totals), ([2, -3, 8, -15], [8, -15]));
/// ```
///
/// # Panics
/// In the cases of [`cumsum_columns`].
#[track_caller]
pub fn cumprod_columns<T: Scan>(
    x: &[T],
    totals: &mut [T::Total],
    y: &mut (impl Output<T::Out> + ?Sized),
) {
    columns("cumprod", x, totals, places(y), true);
}

#[track_caller]
fn check(name: &str, len: usize, cols: usize, y: usize) {
    same_len(name, y, len);
    assert!(len.is_multiple_of(cols), "{name}: {len} elements do not divide into rows of {cols}");
}

#[track_caller]
fn rows<T: Scan>(name: &str, x: &[T], cols: usize, y: &mut [MaybeUninit<T::Out>], product: bool) {
    check(name, x.len(), cols, y.len());
    T::rows(product, x, cols.max(1), y);
}

#[track_caller]
fn columns<T: Scan>(
    name: &str,
    x: &[T],
    totals: &mut [T::Total],
    y: &mut [MaybeUninit<T::Out>],
    product: bool,
) {
    check(name, x.len(), totals.len(), y.len());
    T::columns(product, x, totals, y);
}

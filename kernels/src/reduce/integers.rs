//! Folds of integers, whose results do not depend on an order: wrapping sums and products, largest and
//! smallest elements and the first place where they are.
//!
//! ```text
//! sum of u8   lanes of u16 take the bytes of a chunk, then are added to the total
//! place       the winner of each chunk competes; the chunk of the best is searched once
//! ```
//!
//! These are plain loops, which the compiler vectorises for the instruction set that the dispatcher
//! enters. Those of columns are in `joined.rs`.

use core::mem::MaybeUninit;

use super::joined::{
    EndColumns, FoldColumns, Join, PlaceColumns, Sums, Winner, add_bytes, join_rows,
};
use crate::dispatch::{Task, run};
use crate::fold::ask_ahead;
use crate::fold::columns::Rows;
use crate::scan::integers::{ScanColumns, ScanRows};
use crate::simd::Simd;

/// Bytes that are folded at a time, with those behind them asked for.
pub(super) const CHUNK: usize = 2048;
/// Elements searched at a time, and rows that compete: their numbers fit into every element type.
pub(super) const GROUP: usize = 128;

/// A fold of integers, wrapping in `i64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntegerFold {
    /// Of no elements 0.
    Sum,
    /// Of no elements 1.
    Product,
}

/// Which of integers is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum IntegerEnd {
    Largest,
    Smallest,
}

/// Integers that can be folded and scanned: `i64` and `u8`. Sealed.
pub trait Integer: Copy + Ord + Into<i64> + sealed::Sealed {
    #[doc(hidden)]
    fn fold(fold: IntegerFold, x: &[Self]) -> i64;
    #[doc(hidden)]
    fn fold_columns(fold: IntegerFold, x: &[Self], rows: usize, stride: usize, y: &mut [i64]);
    #[doc(hidden)]
    fn end(end: IntegerEnd, x: &[Self]) -> Option<Self>;
    #[doc(hidden)]
    fn end_columns(end: IntegerEnd, x: &[Self], rows: usize, stride: usize, y: &mut [Self]);
    #[doc(hidden)]
    fn place(end: IntegerEnd, x: &[Self]) -> Option<usize>;
    #[doc(hidden)]
    fn place_columns(end: IntegerEnd, x: &[Self], rows: usize, stride: usize, y: &mut [i64]);
    #[doc(hidden)]
    fn scan_rows(fold: IntegerFold, x: &[Self], cols: usize, y: &mut [MaybeUninit<i64>]);
    #[doc(hidden)]
    fn scan_columns(fold: IntegerFold, x: &[Self], totals: &mut [i64], y: &mut [MaybeUninit<i64>]);
}

pub(super) mod sealed {
    use crate::simd::Simd;

    /// What loops over elements need.
    pub trait Sealed: Copy + Ord {
        const NONE: Self;
        /// Of a number up to 128.
        fn number(i: usize) -> Self;
        /// A number or `NONE`.
        fn as_number(self) -> usize;
        /// Of at most a chunk.
        fn sum(x: &[Self]) -> i64;
        /// Adds the rows to `y`.
        fn add_rows<S: Simd>(simd: S, x: &[Self], rows: usize, stride: usize, y: &mut [i64]);
    }
}

/// The sum or product of the elements.
///
/// ```
/// use swath_kernels::{IntegerFold, fold_integers};
/// assert_eq!(fold_integers(IntegerFold::Sum, &[200u8, 100]), 300);
/// assert_eq!(fold_integers(IntegerFold::Product, &[3i64, -5]), -15);
/// ```
pub fn fold_integers<T: Integer>(fold: IntegerFold, x: &[T]) -> i64 {
    T::fold(fold, x)
}

/// The sum or product of each column of a row-major matrix `x` `[rows, y.len()]`, whose rows begin
/// `row_stride` elements apart.
///
/// ```
/// use swath_kernels::{IntegerFold, fold_integer_columns};
/// let mut y = [0; 2];
/// fold_integer_columns(IntegerFold::Sum, &[1u8, 2, 3, 255], 2, 2, &mut y);
/// assert_eq!(y, [4, 257]);
/// ```
///
/// # Panics
/// If the last row ends beyond `x`.
#[track_caller]
pub fn fold_integer_columns<T: Integer>(
    fold: IntegerFold,
    x: &[T],
    rows: usize,
    row_stride: usize,
    y: &mut [i64],
) {
    Rows::new("fold_integer_columns", x, rows, y.len(), row_stride);
    T::fold_columns(fold, x, rows, row_stride, y);
}

/// The largest or smallest element, `None` of none.
///
/// ```
/// use swath_kernels::{IntegerEnd, end_of_integers};
/// assert_eq!(end_of_integers(IntegerEnd::Smallest, &[3i64, -5, 4]), Some(-5));
/// ```
pub fn end_of_integers<T: Integer>(end: IntegerEnd, x: &[T]) -> Option<T> {
    T::end(end, x)
}

/// The largest or smallest of each column, as [`fold_integer_columns`].
///
/// ```
/// use swath_kernels::{IntegerEnd, end_of_integer_columns};
/// let mut y = [0; 2];
/// end_of_integer_columns(IntegerEnd::Largest, &[1u8, 7, 3, 2], 2, 2, &mut y);
/// assert_eq!(y, [3, 7]);
/// ```
///
/// # Panics
/// If there are no rows, or the last one ends beyond `x`.
#[track_caller]
pub fn end_of_integer_columns<T: Integer>(
    end: IntegerEnd,
    x: &[T],
    rows: usize,
    row_stride: usize,
    y: &mut [T],
) {
    check_rows("end_of_integer_columns", x, rows, row_stride, y.len());
    T::end_columns(end, x, rows, row_stride, y);
}

/// The position of the largest or smallest element, the first of equal ones; `None` of none.
///
/// ```
/// use swath_kernels::{IntegerEnd, place_of_integers};
/// assert_eq!(place_of_integers(IntegerEnd::Largest, &[1u8, 9, 9]), Some(1));
/// ```
pub fn place_of_integers<T: Integer>(end: IntegerEnd, x: &[T]) -> Option<usize> {
    T::place(end, x)
}

/// The row of the largest or smallest of each column, the first of equal ones, as
/// [`fold_integer_columns`].
///
/// ```
/// use swath_kernels::{IntegerEnd, place_of_integer_columns};
/// let mut y = [0; 2];
/// place_of_integer_columns(IntegerEnd::Largest, &[1i64, 7, 3, 7], 2, 2, &mut y);
/// assert_eq!(y, [1, 0]);
/// ```
///
/// # Panics
/// If there are no rows, or the last one ends beyond `x`.
#[track_caller]
pub fn place_of_integer_columns<T: Integer>(
    end: IntegerEnd,
    x: &[T],
    rows: usize,
    row_stride: usize,
    y: &mut [i64],
) {
    check_rows("place_of_integer_columns", x, rows, row_stride, y.len());
    T::place_columns(end, x, rows, row_stride, y);
}

#[track_caller]
fn check_rows<T>(name: &str, x: &[T], rows: usize, stride: usize, cols: usize) {
    assert!(rows > 0, "{name}: no rows");
    Rows::new(name, x, rows, cols, stride);
}

impl sealed::Sealed for i64 {
    const NONE: i64 = i64::MAX;
    #[inline(always)]
    fn number(i: usize) -> i64 {
        i as i64
    }
    #[inline(always)]
    fn as_number(self) -> usize {
        self as usize
    }
    #[inline(always)]
    fn sum(x: &[i64]) -> i64 {
        let mut total = 0i64;
        for &x in x {
            total = total.wrapping_add(x);
        }
        total
    }
    #[inline(always)]
    fn add_rows<S: Simd>(simd: S, x: &[i64], rows: usize, stride: usize, y: &mut [i64]) {
        join_rows::<Sums, i64, i64, S>(simd, x, rows, stride, y);
    }
}

impl sealed::Sealed for u8 {
    const NONE: u8 = u8::MAX;
    #[inline(always)]
    fn number(i: usize) -> u8 {
        i as u8
    }
    #[inline(always)]
    fn as_number(self) -> usize {
        usize::from(self)
    }
    #[inline(always)]
    fn sum(x: &[u8]) -> i64 {
        let (groups, rest) = x.as_chunks::<GROUP>();
        let mut lanes = [0u16; GROUP];
        for group in groups {
            for (lane, &x) in lanes.iter_mut().zip(group) {
                *lane += u16::from(x);
            }
        }
        let mut total = 0;
        for lane in lanes {
            total += i64::from(lane);
        }
        for &x in rest {
            total += i64::from(x);
        }
        total
    }
    #[inline(always)]
    fn add_rows<S: Simd>(simd: S, x: &[u8], rows: usize, stride: usize, y: &mut [i64]) {
        add_bytes(simd, x, rows, stride, y);
    }
}

macro_rules! impl_integer {
    ($($t:ident)*) => {$(
        impl Integer for $t {
            fn fold(fold: IntegerFold, x: &[$t]) -> i64 {
                match fold {
                    IntegerFold::Sum => run(Sum(x)),
                    IntegerFold::Product => run(Product(x)),
                }
            }
            fn fold_columns(
                fold: IntegerFold,
                x: &[$t],
                rows: usize,
                stride: usize,
                y: &mut [i64],
            ) {
                run(FoldColumns { fold, x, rows, stride, y });
            }
            fn end(end: IntegerEnd, x: &[$t]) -> Option<$t> {
                match end {
                    IntegerEnd::Largest => run(End::<$t, true>(x)),
                    IntegerEnd::Smallest => run(End::<$t, false>(x)),
                }
            }
            fn end_columns(end: IntegerEnd, x: &[$t], rows: usize, stride: usize, y: &mut [$t]) {
                match end {
                    IntegerEnd::Largest => run(EndColumns::<$t, true> { x, rows, stride, y }),
                    IntegerEnd::Smallest => run(EndColumns::<$t, false> { x, rows, stride, y }),
                }
            }
            fn place(end: IntegerEnd, x: &[$t]) -> Option<usize> {
                match end {
                    IntegerEnd::Largest => run(Place::<$t, true>(x)),
                    IntegerEnd::Smallest => run(Place::<$t, false>(x)),
                }
            }
            fn place_columns(end: IntegerEnd, x: &[$t], rows: usize, stride: usize, y: &mut [i64]) {
                match end {
                    IntegerEnd::Largest => run(PlaceColumns::<$t, true> { x, rows, stride, y }),
                    IntegerEnd::Smallest => run(PlaceColumns::<$t, false> { x, rows, stride, y }),
                }
            }
            fn scan_rows(fold: IntegerFold, x: &[$t], cols: usize, y: &mut [MaybeUninit<i64>]) {
                run(ScanRows { fold, x, cols, y });
            }
            fn scan_columns(
                fold: IntegerFold,
                x: &[$t],
                totals: &mut [i64],
                y: &mut [MaybeUninit<i64>],
            ) {
                run(ScanColumns { fold, x, totals, y });
            }
        }
    )*};
}
impl_integer!(i64 u8);

struct Sum<'a, T>(&'a [T]);

impl<T: Integer> Task for Sum<'_, T> {
    type Home = Self;
    type Output = i64;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> i64 {
        let mut total = 0i64;
        for x in self.0.chunks(CHUNK / size_of::<T>()) {
            ask_ahead(simd, x.as_ptr(), x.len());
            total = total.wrapping_add(T::sum(x));
        }
        total
    }
}

struct Product<'a, T>(&'a [T]);

impl<T: Integer> Task for Product<'_, T> {
    type Home = Self;
    type Output = i64;
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> i64 {
        let mut total = 1i64;
        for &x in self.0 {
            total = total.wrapping_mul(x.into());
        }
        total
    }
}

/// The winner of `x` and `best`.
#[inline(always)]
fn winner<T: Integer, const LARGEST: bool>(x: &[T], mut best: T) -> T {
    for &x in x {
        best = Winner::<LARGEST>::join(best, x);
    }
    best
}

struct End<'a, T, const LARGEST: bool>(&'a [T]);

impl<T: Integer, const LARGEST: bool> Task for End<'_, T, LARGEST> {
    type Home = Self;
    type Output = Option<T>;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Option<T> {
        let mut best = *self.0.first()?;
        for x in self.0.chunks(CHUNK / size_of::<T>()) {
            ask_ahead(simd, x.as_ptr(), x.len());
            best = winner::<T, LARGEST>(x, best);
        }
        Some(best)
    }
}

struct Place<'a, T, const LARGEST: bool>(&'a [T]);

impl<T: Integer, const LARGEST: bool> Task for Place<'_, T, LARGEST> {
    type Home = Self;
    type Output = Option<usize>;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Option<usize> {
        let chunk = CHUNK / size_of::<T>();
        let (mut best, mut found) = (*self.0.first()?, 0);
        for (i, x) in self.0.chunks(chunk).enumerate() {
            ask_ahead(simd, x.as_ptr(), x.len());
            let here = winner::<T, LARGEST>(x, best);
            if here != best {
                (best, found) = (here, i * chunk);
            }
        }
        Some(found + first(&self.0[found..], best))
    }
}

/// The position of the first element that is `wanted`, as one is.
#[inline(always)]
fn first<T: Integer>(x: &[T], wanted: T) -> usize {
    let (groups, rest) = x.as_chunks::<GROUP>();
    for (i, group) in groups.iter().enumerate() {
        let mut at = T::NONE;
        for (number, &x) in group.iter().enumerate() {
            let here = if x == wanted { T::number(number) } else { T::NONE };
            at = if here < at { here } else { at };
        }
        if at != T::NONE {
            return i * GROUP + at.as_number();
        }
    }
    let mut at = x.len() - rest.len();
    for &x in rest {
        if x == wanted {
            break;
        }
        at += 1;
    }
    at
}

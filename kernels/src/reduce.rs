//! Sums, largest and smallest elements of slices and of matrix columns.

use crate::dispatch::run;
use core::marker::PhantomData;

use crate::fold::columns::{FindColumns, Rows, SumColumns};
use crate::fold::extreme::{Find, Max, Min, Wanted};
use crate::fold::{PairwiseSum, dot_block, push_dot, push_sum, sum_block};
use crate::output::Output;
use crate::simd::Float;

/// Element types that can be reduced: `f32` and `f64`. Sealed.
pub trait Reduce: Float {
    #[doc(hidden)]
    fn push_sum(sum: &mut PairwiseSum, x: &[Self]);
    #[doc(hidden)]
    fn push_dot(sum: &mut PairwiseSum, a: &[Self], b: &[Self]);
    #[doc(hidden)]
    fn sum(x: &[Self]) -> f64;
    #[doc(hidden)]
    fn dot(a: &[Self], b: &[Self]) -> f64;
    #[doc(hidden)]
    fn find(x: &[Self], largest: bool) -> Self;
    #[doc(hidden)]
    fn columns(fold: ColumnFold<Self>);
}

/// A checked fold over rows; made in this module alone.
#[doc(hidden)]
pub struct ColumnFold<E> {
    rows: Rows<E>,
    y: *mut E,
    kind: Kind,
}

enum Kind {
    Sum,
    Mean,
    Max,
    Min,
}

macro_rules! impl_reduce {
    ($($t:ident)*) => {$(
        impl Reduce for $t {
            fn push_sum(sum: &mut PairwiseSum, x: &[Self]) {
                push_sum(sum, x);
            }
            fn push_dot(sum: &mut PairwiseSum, a: &[Self], b: &[Self]) {
                push_dot(sum, a, b);
            }
            fn sum(x: &[Self]) -> f64 {
                if x.len() <= PairwiseSum::BLOCK {
                    return sum_block(x);
                }
                let mut sum = PairwiseSum::new();
                push_sum(&mut sum, x);
                sum.finish()
            }
            fn dot(a: &[Self], b: &[Self]) -> f64 {
                if a.len() <= PairwiseSum::BLOCK {
                    return dot_block(a, b);
                }
                let mut sum = PairwiseSum::new();
                push_dot(&mut sum, a, b);
                sum.finish()
            }
            fn find(x: &[Self], largest: bool) -> Self {
                if largest { find::<$t, Max>(x) } else { find::<$t, Min>(x) }
            }
            fn columns(fold: ColumnFold<Self>) {
                match fold.kind {
                    Kind::Sum => run(SumColumns { x: fold.rows, y: fold.y, divisor: 1.0 }),
                    Kind::Mean => {
                        let divisor = fold.rows.count() as f64;
                        run(SumColumns { x: fold.rows, y: fold.y, divisor });
                    }
                    Kind::Max => find_columns::<$t, Max>(fold),
                    Kind::Min => find_columns::<$t, Min>(fold),
                }
            }
        }
    )*};
}
impl_reduce!(f32 f64);

#[inline(always)]
fn find<E: Float, W: Wanted>(x: &[E]) -> E {
    E::enter(Find(x, PhantomData::<W>))
}

#[inline(always)]
fn find_columns<E: Float, W: Wanted>(fold: ColumnFold<E>) {
    E::enter(FindColumns { x: fold.rows, y: fold.y, wanted: PhantomData::<W> });
}

/// The sum of the elements, +0 if there are none.
///
/// Added in `f64` in an order that depends on the length alone ([`PairwiseSum`]) and rounded once:
/// the same bits on every machine.
///
/// ```
/// assert_eq!(swath_kernels::sum(&[1e15f32, 1.0, -1e15]), 1.0);
/// ```
pub fn sum<E: Reduce>(x: &[E]) -> E {
    E::from_f64(E::sum(x))
}

/// The sum of products `a[i] * b[i]`, +0 if there are none.
///
/// Products are exact for `f32` and fused with the addition for `f64`; else as [`sum`].
///
/// ```
/// assert_eq!(swath_kernels::dot(&[1.0f32, 2.0, 3.0], &[4.0, 5.0, 6.0]), 32.0);
/// ```
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub fn dot<E: Reduce>(a: &[E], b: &[E]) -> E {
    assert!(a.len() == b.len(), "dot: the slices have {} and {} elements", a.len(), b.len());
    E::from_f64(E::dot(a, b))
}

/// The largest element, `None` if there are none: NaN if any is NaN, and +0 above -0.
///
/// ```
/// assert_eq!(swath_kernels::max(&[1.0, 3.0, 2.0]), Some(3.0));
/// assert_eq!(swath_kernels::max::<f32>(&[]), None);
/// ```
pub fn max<E: Reduce>(x: &[E]) -> Option<E> {
    (!x.is_empty()).then(|| E::find(x, true))
}

/// The smallest element, `None` if there are none: NaN if any is NaN, and -0 below +0.
///
/// ```
/// assert_eq!(swath_kernels::min(&[3.0, -1.0, 2.0]), Some(-1.0));
/// ```
pub fn min<E: Reduce>(x: &[E]) -> Option<E> {
    (!x.is_empty()).then(|| E::find(x, false))
}

/// The sum of each column of a row-major matrix `x` `[rows, y.len()]`, whose rows begin
/// `row_stride` elements apart; +0 if there are no rows.
///
/// Each result has the bits that [`sum`] gives for the column as a slice.
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
pub fn sum_columns<E: Reduce>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut (impl Output<E> + ?Sized),
) {
    let (y, cols) = y.as_raw();
    let rows = Rows::new("sum_columns", x, rows, cols, row_stride);
    E::columns(ColumnFold { rows, y, kind: Kind::Sum });
}

/// The arithmetic mean of each column, as [`sum_columns`]: the sum is divided in `f64` and rounded
/// once; NaN if there are no rows.
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
pub fn mean_columns<E: Reduce>(
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut (impl Output<E> + ?Sized),
) {
    let (y, cols) = y.as_raw();
    let rows = Rows::new("mean_columns", x, rows, cols, row_stride);
    E::columns(ColumnFold { rows, y, kind: Kind::Mean });
}

/// The largest element of each column of a row-major matrix `x` `[rows, y.len()]`, whose rows begin
/// `row_stride` elements apart; NaN and zeros as in [`max`].
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
    extreme_columns("max_columns", Kind::Max, x, rows, row_stride, y.as_raw());
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
    extreme_columns("min_columns", Kind::Min, x, rows, row_stride, y.as_raw());
}

#[track_caller]
fn extreme_columns<E: Reduce>(
    name: &str,
    kind: Kind,
    x: &[E],
    rows: usize,
    row_stride: usize,
    (y, cols): (*mut E, usize),
) {
    assert!(rows > 0, "{name}: no rows, so the columns have no elements");
    let rows = Rows::new(name, x, rows, cols, row_stride);
    E::columns(ColumnFold { rows, y, kind });
}

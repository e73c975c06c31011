//! Reductions of slices and of the columns of matrices: [`reduce`] and [`reduce_columns`], generic
//! over the reductions of `reduce.rs`, and a function for each common reduction of a slice.

use crate::convert::Truth;
use crate::fold::PairwiseSum;
use crate::fold::columns::{Matrix, Target};
use crate::map::rows::places;
use crate::output::Output;
use crate::reduce::{
    Accumulate, All, Any, ArgMax, ArgMin, Max, Mean, Min, Norm1, Norm2, Prod, Reduce, Reduction,
    Std, Sum, Variance, columns,
};

/// Reduces a slice.
///
/// ```
/// use swath_kernels::reduce::{MaxMagnitude, Norm0};
/// assert_eq!(swath_kernels::reduce(&MaxMagnitude, &[1.0, -3.0, 2.0]), 3.0);
/// assert_eq!(swath_kernels::reduce(&Norm0, &[3.0f32, -0.0, -4.0]), 2.0);
/// ```
pub fn reduce<E, R: Reduction<E> + ?Sized>(reduction: &R, x: &[E]) -> R::Out {
    reduction.finish(reduction.fold(x), x.len())
}

/// Reduces each column of a row-major matrix `x` `[rows, y.len()]`, whose rows begin `row_stride`
/// elements apart. A column gives the bits that [`reduce`] gives for it as a slice.
///
/// ```
/// use swath_kernels::{reduce::Sum, reduce_columns};
/// let mut y = [0.0f32; 2];
/// reduce_columns(&Sum, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3, 2, &mut y);
/// assert_eq!(y, [9.0, 12.0]);
/// ```
///
/// # Panics
/// If the last row ends beyond `x`, or if there are no rows and the reduction is an extremum.
#[track_caller]
pub fn reduce_columns<E, R: Reduction<E> + ?Sized>(
    reduction: &R,
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut (impl Output<R::Out> + ?Sized),
) {
    columns(reduction, x, rows, row_stride, Target::Results(places(y)));
}

/// Writes the accumulator of each column, before [`reduce_columns`] would turn it into the result.
///
/// # Panics
/// In the cases of [`reduce_columns`].
#[track_caller]
pub fn partial_columns<E, R: Reduction<E> + ?Sized>(
    reduction: &R,
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: &mut [R::Acc],
) {
    columns(reduction, x, rows, row_stride, Target::Partial(places(y)));
}

/// Reductions of a slice that are defined for an empty one.
macro_rules! slices {
    ($($(#[$doc:meta])* $name:ident($($arg:ident)?) = $op:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name<E: Accumulate>(x: &[E] $(, $arg: usize)?) -> E {
            reduce(&$op, x)
        }
    )*};
}
slices! {
    /// The sum of the elements, +0 if there are none.
    ///
    /// Added in `f64`, in an order that depends on the length alone ([`PairwiseSum`]), and rounded
    /// once: the same bits on every machine. For up to 2^26 elements of `f32` without cancellation,
    /// the relative error is below 1.01 u, u = 2^-24 being the unit roundoff. For `f64` every
    /// addition rounds: up to 63 in a row in one lane, then 4, then one per level of the tree. The
    /// largest error measured is 64 u, u = 2^-53.
    ///
    /// ```
    /// assert_eq!(swath_kernels::sum(&[1e15f32, 1.0, -1e15]), 1.0);
    /// ```
    sum() = Sum;
    /// The arithmetic mean of the elements, NaN if there are none. The sum is taken and divided in
    /// `f64` and rounded once, so it may exceed the range of the result.
    ///
    /// ```
    /// assert_eq!(swath_kernels::mean(&[3e38f32; 4]), 3e38);
    /// ```
    mean() = Mean;
    /// The product of the elements, 1 if there are none: multiplied in `f64` in the order of
    /// [`sum`], with powers of two split off before a product could leave the range, and rounded
    /// once.
    ///
    /// ```
    /// assert_eq!(swath_kernels::prod(&[1e30f32, 1e-30, 4.0]), 4.0);
    /// let (large, small) = (2f64.powi(900), 2f64.powi(-900));
    /// assert_eq!(swath_kernels::prod(&[large, large, small, small]), 1.0);
    /// ```
    prod() = Prod;
    /// The variance: the sum of squared distances from the mean, divided by the number of elements
    /// less `ddof` (0: of a population, 1: estimated from a sample). With at most `ddof` elements
    /// it is ∞, or NaN if all are equal. If an element is infinite, it is NaN.
    ///
    /// One pass in `f64`, block by block ([`PairwiseSum::BLOCK`]): a block measures distances from
    /// its first element, and blocks are merged in the order of [`sum`]. The result is rounded
    /// once. Before that, the relative error is below 2^-35 of the variance of a block, whatever
    /// the mean. (The largest error found is 2^-37, for a block that begins with its only outlier.)
    ///
    /// This holds while squared distances stay in the range of `f64`, as those of all narrower
    /// floats do. For `f64`, distances beyond about 1e154 make the variance ∞, or NaN if the
    /// distances or their sum overflow; if all are below 1e-154, it loses digits and finally
    /// becomes 0.
    ///
    /// ```
    /// let x = [10_001.0f32, 10_002.0, 10_003.0, 10_004.0];
    /// assert_eq!(swath_kernels::variance(&x, 0), 1.25);
    /// ```
    variance(ddof) = Variance { ddof };
    /// The standard deviation: the square root of the [`variance`], taken in `f64` and rounded
    /// once. Like the variance, for `f64` it is ∞ or NaN for distances beyond 1e154, and loses
    /// digits and finally becomes 0 for distances below 1e-154, although the deviation itself would
    /// be in range.
    ///
    /// ```
    /// assert_eq!(swath_kernels::std(&[1.0f32, 5.0], 0), 2.0);
    /// ```
    std(ddof) = Std { ddof };
    /// The sum of magnitudes, 0 if there are none; added like [`sum`].
    ///
    /// ```
    /// assert_eq!(swath_kernels::norm1(&[3.0f32, -4.0]), 7.0);
    /// ```
    norm1() = Norm1;
    /// The Euclidean norm: the square root of the sum of squares, 0 if there are no elements.
    /// Summed in `f64` in the order of [`sum`] and rounded once; squares that would overflow or
    /// underflow in `f64` are scaled ([`SquareSum`](crate::SquareSum)).
    ///
    /// ```
    /// assert_eq!(swath_kernels::norm2(&[3e20f32, 4e20]), 5e20);
    /// let large = 2f64.powi(700);
    /// assert_eq!(swath_kernels::norm2(&[3.0 * large, 4.0 * large]), 5.0 * large);
    /// ```
    norm2() = Norm2;
}

/// Reductions of a slice that return `None` for an empty one.
macro_rules! extrema {
    ($($(#[$doc:meta])* $name:ident -> $t:ident = |$x:ident| $found:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name<E: Reduce>($x: &[E]) -> Option<$t> {
            (!$x.is_empty()).then(|| $found)
        }
    )*};
}
extrema! {
    /// The largest element, `None` if there are none; NaN if any is NaN. +0 is larger than −0.
    ///
    /// ```
    /// assert_eq!(swath_kernels::max(&[1.0, 3.0, 2.0]), Some(3.0));
    /// assert_eq!(swath_kernels::max::<f32>(&[]), None);
    /// ```
    max -> E = |x| reduce(&Max, x);
    /// The smallest element, `None` if there are none; NaN if any is NaN. −0 is smaller than +0.
    ///
    /// ```
    /// assert_eq!(swath_kernels::min(&[3.0, -1.0, 2.0]), Some(-1.0));
    /// ```
    min -> E = |x| reduce(&Min, x);
    /// The index of the largest element, `None` if there are none: the first of equals, −0 being
    /// equal to +0, or the first NaN if there is one.
    ///
    /// ```
    /// assert_eq!(swath_kernels::argmax(&[1.0, 3.0, 3.0]), Some(1));
    /// assert_eq!(swath_kernels::argmax(&[1.0, f32::NAN, 3.0]), Some(1));
    /// ```
    argmax -> usize = |x| reduce(&ArgMax, x) as usize;
    /// The index of the smallest element; otherwise like [`argmax`].
    ///
    /// ```
    /// assert_eq!(swath_kernels::argmin(&[3.0, 1.0, 1.0]), Some(1));
    /// ```
    argmin -> usize = |x| reduce(&ArgMin, x) as usize;
}

/// The sum of products `a[i] * b[i]`, +0 if there are none.
///
/// Products are exact for `f32` and narrower floats, and fused with the addition for `f64`; added
/// like [`sum`].
///
/// ```
/// assert_eq!(swath_kernels::dot(&[1.0f32, 2.0, 3.0], &[4.0, 5.0, 6.0]), 32.0);
/// ```
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub fn dot<E: Accumulate>(a: &[E], b: &[E]) -> E {
    let mut sum = PairwiseSum::new();
    sum.push_products(a, b);
    E::rounded(sum.finish())
}

/// `ln Σ e^x` without overflow, computed as m + ln Σ e^(x − m) with m the largest element; −∞ if
/// there are no elements.
///
/// The differences x − m are rounded to the element type and exponentiated with the accuracy of
/// [`exp`](crate::exp). The rest is computed in `f64` and rounded once. Before that rounding the
/// error is at most (1.2 + D) u, with u the unit roundoff and D ≤ ln n as for
/// [`softmax`](crate::softmax); for `f64` the error of the [`sum`], up to 64 u, comes on top. If an
/// element is NaN the result is NaN; otherwise, if an element is +∞, it is +∞.
///
/// ```
/// assert_eq!(swath_kernels::logsumexp(&[1000.0f32, 1000.0]), 1000.6932);
/// assert_eq!(swath_kernels::logsumexp(&[f32::NEG_INFINITY; 2]), f32::NEG_INFINITY);
/// ```
pub fn logsumexp<E: Reduce>(x: &[E]) -> E {
    E::from_f64(E::logsumexp(x))
}

/// True if any element is not 0; NaN is not 0.
///
/// ```
/// assert!(swath_kernels::any(&[0.0f32, -0.0, f32::NAN]));
/// assert!(!swath_kernels::any(&[0u8; 3]));
/// ```
pub fn any<T: Truth>(x: &[T]) -> bool {
    reduce(&Any, x) == 1
}

/// True if all elements are not 0; NaN is not 0.
///
/// ```
/// assert!(swath_kernels::all(&[1i64, -1]));
/// assert!(!swath_kernels::all(&[1.0f64, -0.0]));
/// ```
pub fn all<T: Truth>(x: &[T]) -> bool {
    reduce(&All, x) == 1
}

/// `ln Σ e^x` ([`logsumexp`]) of each column, laid out as for [`reduce_columns`]; −∞ if there are
/// no rows.
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
    E::logsumexp_columns(Matrix::new("logsumexp", x, rows, y.len(), row_stride), y);
}

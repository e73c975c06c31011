//! Reductions of a slice.

use super::{Accumulate, End, Reduce};
use crate::fold::partial::{Moments, Partial, Product, SquareSum};
use crate::fold::{Pairwise, PairwiseSum};

/// What is pushed on a counter of its own.
#[inline(always)]
pub(super) fn folded<P: Partial>(push: impl FnOnce(&mut Pairwise<P>)) -> P {
    let mut counter = Pairwise::new();
    push(&mut counter);
    counter.finish()
}

/// The sum of the elements, +0 if there are none.
///
/// Added in `f64` in an order that depends on the length alone ([`PairwiseSum`]) and rounded once:
/// the same bits on every machine. A sum of `f32` without cancellation is within 1.01 units of
/// rounding, 2^-24, for up to 2^26 elements. One of `f64` rounds at every addition, of which up to 63 follow each
/// other in a lane, then 4 and one a level of the tree: up to 64 units of 2^-53 were measured.
///
/// ```
/// assert_eq!(swath_kernels::sum(&[1e15f32, 1.0, -1e15]), 1.0);
/// ```
pub fn sum<E: Accumulate>(x: &[E]) -> E {
    E::rounded(folded(|sum: &mut PairwiseSum| sum.push_slice(x)))
}

/// The arithmetic mean of the elements, NaN if there are none: the sum in `f64`, divided there and
/// rounded once, so that a sum may exceed the range of the result.
///
/// ```
/// assert_eq!(swath_kernels::mean(&[3e38f32; 4]), 3e38);
/// ```
pub fn mean<E: Accumulate>(x: &[E]) -> E {
    E::rounded(folded(|sum: &mut PairwiseSum| sum.push_slice(x)) / x.len() as f64)
}

/// The sum of products `a[i] * b[i]`, +0 if there are none.
///
/// Products are exact for `f32` and narrower floats, and fused with the addition for `f64`; else as [`sum`].
///
/// ```
/// assert_eq!(swath_kernels::dot(&[1.0f32, 2.0, 3.0], &[4.0, 5.0, 6.0]), 32.0);
/// ```
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub fn dot<E: Accumulate>(a: &[E], b: &[E]) -> E {
    assert!(a.len() == b.len(), "dot: the slices have {} and {} elements", a.len(), b.len());
    E::rounded(folded(|sum: &mut PairwiseSum| sum.push_products(a, b)))
}

/// The product of the elements, 1 if there are none: multiplied in `f64` in the order of [`sum`] and
/// rounded once. A product of `f32` is lost where one in `f64` leaves its range on the way.
///
/// ```
/// assert_eq!(swath_kernels::prod(&[1e30f32, 1e-30, 4.0]), 4.0);
/// ```
pub fn prod<E: Accumulate>(x: &[E]) -> E {
    E::rounded(folded(|product: &mut Pairwise<Product>| product.push_factors(x)).0)
}

fn moments<E: Accumulate>(x: &[E]) -> Moments {
    folded(|moments: &mut Pairwise<Moments>| moments.push_elements(x))
}

/// The variance: the sum of squared distances from the mean, divided by the number of elements less
/// `ddof` (0: of a population, 1: estimated from a sample). Of no more than `ddof` elements ∞, or NaN
/// if they are all equal; NaN if one is infinite.
///
/// One pass in `f64`, block by block ([`PairwiseSum::BLOCK`]): each measures distances from its first
/// element, and blocks are merged in the order of [`sum`], their means still so measured. The relative error
/// is below 2^-35 of the variance of a block, whatever the mean (the largest found is 2^-37, where a block begins with
/// its only outlier); then the result is rounded once.
/// That holds where squared distances stay in the range of `f64`, as those of all narrower floats do. Of `f64`
/// distances beyond about 1e154 make it ∞, or NaN where they or their sum exceed the largest number, and where all are
/// below 1e-154 it loses digits and at last is 0.
///
/// ```
/// let x = [10_001.0f32, 10_002.0, 10_003.0, 10_004.0];
/// assert_eq!(swath_kernels::variance(&x, 0), 1.25);
/// ```
pub fn variance<E: Accumulate>(x: &[E], ddof: usize) -> E {
    E::rounded(moments(x).variance(ddof))
}

/// The standard deviation: the square root of the [`variance`], taken in `f64` and rounded once. As there,
/// distances of `f64` beyond 1e154 make it ∞ or NaN, and below 1e-154 it loses digits and at last is 0, though it would
/// be in range itself.
///
/// ```
/// assert_eq!(swath_kernels::std(&[1.0f32, 5.0], 0), 2.0);
/// ```
pub fn std<E: Accumulate>(x: &[E], ddof: usize) -> E {
    E::rounded(moments(x).variance(ddof).sqrt())
}

/// The number of elements that are not 0; NaN is not 0. As [`sum`].
///
/// ```
/// assert_eq!(swath_kernels::norm0(&[3.0f32, -0.0, -4.0]), 2.0);
/// ```
pub fn norm0<E: Accumulate>(x: &[E]) -> E {
    E::rounded(folded(|count: &mut PairwiseSum| count.push_nonzeros(x)))
}

/// The sum of magnitudes, 0 if there are no elements; as [`sum`].
///
/// ```
/// assert_eq!(swath_kernels::norm1(&[3.0f32, -4.0]), 7.0);
/// ```
pub fn norm1<E: Accumulate>(x: &[E]) -> E {
    E::rounded(folded(|sum: &mut PairwiseSum| sum.push_magnitudes(x)))
}

/// The Euclidean norm: the square root of the sum of squares, 0 if there are no elements. Summed in
/// `f64` in the order of [`sum`] and rounded once; squares that would overflow or vanish in `f64` are
/// scaled ([`SquareSum`](crate::SquareSum)).
///
/// ```
/// assert_eq!(swath_kernels::norm2(&[3e20f32, 4e20]), 5e20);
/// let large = 2f64.powi(700);
/// assert_eq!(swath_kernels::norm2(&[3.0 * large, 4.0 * large]), 5.0 * large);
/// ```
pub fn norm2<E: Accumulate>(x: &[E]) -> E {
    E::rounded(folded(|sum: &mut Pairwise<SquareSum>| sum.push_squares(x)).root())
}

/// `ln Σ e^x` without overflow, −∞ if there are no elements: m + ln Σ e^(x − m) with m the largest.
///
/// The differences x − m are rounded to the type of the elements, their powers have the accuracy of
/// [`exp`](crate::exp); they are summed, and the rest is computed, in `f64` and rounded once. Before that
/// the error is at most (1.2 + D) u, u half a place of 1 and D ≤ ln n as for
/// [`softmax`](crate::softmax); of `f64` that of the powers' [`sum`] comes on top, up to 64 u. A NaN makes it
/// NaN, else an element +∞ makes it +∞.
///
/// ```
/// assert_eq!(swath_kernels::logsumexp(&[1000.0f32, 1000.0]), 1000.6932);
/// assert_eq!(swath_kernels::logsumexp(&[f32::NEG_INFINITY; 2]), f32::NEG_INFINITY);
/// ```
pub fn logsumexp<E: Reduce>(x: &[E]) -> E {
    E::from_f64(E::logsumexp(x))
}

/// The largest element, `None` if there are none: NaN if any is NaN, and +0 above -0.
///
/// ```
/// assert_eq!(swath_kernels::max(&[1.0, 3.0, 2.0]), Some(3.0));
/// assert_eq!(swath_kernels::max::<f32>(&[]), None);
/// ```
pub fn max<E: Reduce>(x: &[E]) -> Option<E> {
    find(x, End::Max)
}

/// The smallest element, `None` if there are none: NaN if any is NaN, and -0 below +0.
///
/// ```
/// assert_eq!(swath_kernels::min(&[3.0, -1.0, 2.0]), Some(-1.0));
/// ```
pub fn min<E: Reduce>(x: &[E]) -> Option<E> {
    find(x, End::Min)
}

/// The largest magnitude, `None` if there are no elements: NaN if any is NaN.
///
/// ```
/// assert_eq!(swath_kernels::max_magnitude(&[1.0, -3.0, 2.0]), Some(3.0));
/// ```
pub fn max_magnitude<E: Reduce>(x: &[E]) -> Option<E> {
    find(x, End::MaxMagnitude)
}

/// The smallest magnitude, `None` if there are no elements: NaN if any is NaN.
///
/// ```
/// assert_eq!(swath_kernels::min_magnitude(&[1.0, -3.0, 2.0]), Some(1.0));
/// ```
pub fn min_magnitude<E: Reduce>(x: &[E]) -> Option<E> {
    find(x, End::MinMagnitude)
}

fn find<E: Reduce>(x: &[E], end: End) -> Option<E> {
    (!x.is_empty()).then(|| E::find(x, end))
}

/// The position of the largest element, `None` if there are none: of the first one of equals, −0
/// being equal to +0; of the first NaN if there is one.
///
/// ```
/// assert_eq!(swath_kernels::argmax(&[1.0, 3.0, 3.0]), Some(1));
/// assert_eq!(swath_kernels::argmax(&[1.0, f32::NAN, 3.0]), Some(1));
/// ```
pub fn argmax<E: Reduce>(x: &[E]) -> Option<usize> {
    (!x.is_empty()).then(|| E::find_index(x, true))
}

/// The position of the smallest element, as [`argmax`].
///
/// ```
/// assert_eq!(swath_kernels::argmin(&[3.0, 1.0, 1.0]), Some(1));
/// ```
pub fn argmin<E: Reduce>(x: &[E]) -> Option<usize> {
    (!x.is_empty()).then(|| E::find_index(x, false))
}

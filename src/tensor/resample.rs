//! Selections and weighted sums along an axis.

use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::shape::Shape;

use super::base::Tensor;

impl<B: Backend> Tensor<B> {
    /// Creates a value for each of `count` elements of an axis, which broadcasts to the other axes.
    pub(super) fn along(
        &self,
        op: &'static str,
        axis: usize,
        count: usize,
        dtype: DType,
        value: impl Fn(usize) -> Scalar,
    ) -> Result<Self> {
        let ones = std::iter::repeat_n(1, self.rank() - 1 - axis);
        let column: Shape = std::iter::once(count).chain(ones).collect();
        Tensor::from_scalars(op, column, dtype, value)
    }

    /// Selects element `from(i)` of an axis for every i below `count`.
    pub(super) fn picked(
        &self,
        op: &'static str,
        axis: usize,
        count: usize,
        from: impl Fn(usize) -> usize,
    ) -> Result<Self> {
        let index = |i| Scalar::Int(from(i) as i64);
        let index = Tensor::from_scalars(op, count.into(), DType::I64, index)?;
        self.index_select(axis, &index).map_err(|error| error.named(op))
    }

    /// Computes weighted sums along an axis: element i of `count` is the sum over `taps` terms of which `tap(k, i)`
    /// says the element and its weight. An element of weight 0 has no part in it, even if it is infinite or NaN.
    pub(super) fn resampled(
        &self,
        op: &'static str,
        axis: usize,
        count: usize,
        taps: usize,
        tap: impl Fn(usize, usize) -> (usize, f64),
    ) -> Result<Self> {
        let term = |k: usize| {
            let mut elements = self.picked(op, axis, count, |i| tap(k, i).0)?;
            let weight = |i| Scalar::Float(tap(k, i).1);
            let weights = self.along(op, axis, count, self.dtype(), weight)?;
            if (0..count).any(|i| tap(k, i).1 == 0.0) {
                // 0 times an infinite element is NaN; the product of -0 adds nothing to any sum.
                elements = elements.masked_fill(&weights.eq(0.0)?, -0.0)?;
            }
            Ok((elements, weights))
        };
        let (first, weights) = term(0)?;
        (1..taps).try_fold(first.mul(&weights)?, |sum, k| {
            let (elements, weights) = term(k)?;
            elements.mul_add(&weights, sum)
        })
    }
}

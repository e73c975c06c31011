//! Sorting and binary search.

use crate::autodiff::graph::record;
use crate::autodiff::ops::index::gather_rule;
use crate::backend::{Backend, check_search};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::OrderOp;
use crate::shape::Axis;

use super::base::Tensor;
use super::elementwise::check_scalar;

/// A full ascending sort.
pub(super) const ASCENDING: OrderOp = OrderOp { descending: false, count: None };

/// Order along an axis. Equal elements keep their order (−0 equals +0). NaN comes last in either direction, so the
/// first elements are numbers. The gradient of a value flows back to the element it was copied from. Indices are `I64`
/// and have no gradient.
///
/// # Errors
/// [`Error::AxisOutOfRange`].
impl<B: Backend> Tensor<B> {
    /// Sorts along an axis. Returns the values and their indices. The sort is stable.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![3.0, f32::NAN, 1.0, 2.0];
    /// let (values, indices) = x.sort(0, false)?;
    /// assert_eq!(indices.to_vec::<i64>()?, [2, 3, 0, 1]);
    /// assert_eq!(values.narrow(0, 0, 3)?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// let (_, indices) = x.sort(0, true)?;
    /// assert_eq!(indices.to_vec::<i64>()?, [0, 3, 2, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn sort(&self, axis: impl Into<Axis>, descending: bool) -> Result<(Self, Self)> {
        B::engine_order(self, OrderOp { descending, count: None }, axis.into())
    }

    /// Returns the indices of the elements in sorted order; see [`sort`](Tensor::sort). No gradient.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let order = tensor![3.0, 1.0, 2.0].argsort(0, false)?;
    /// assert_eq!(order.to_vec::<i64>()?, [1, 2, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn argsort(&self, axis: impl Into<Axis>, descending: bool) -> Result<Self> {
        let sorted =
            B::engine_order(&self.detach(), OrderOp { descending, count: None }, axis.into());
        Ok(sorted.map_err(|e| e.named("argsort"))?.1)
    }

    /// Returns the `k` largest elements along an axis, the largest first, and their indices: the first `k` of
    /// [`sort`](Tensor::sort). NaN is among them only if there are fewer than `k` numbers. One pass for small `k`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 5.0, 5.0, 2.0], [4.0, -1.0, 3.0, 0.0]];
    /// let (values, indices) = x.topk(2, -1)?;
    /// assert_eq!(values.to_vec::<f32>()?, [5.0, 5.0, 4.0, 3.0]);
    /// assert_eq!(indices.to_vec::<i64>()?, [1, 2, 0, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the axis has fewer than `k` elements.
    pub fn topk(&self, k: usize, axis: impl Into<Axis>) -> Result<(Self, Self)> {
        B::engine_order(self, OrderOp { descending: true, count: Some(k) }, axis.into())
    }

    /// Returns the `k` largest elements along an axis in any order, and their indices. At present that is the order of
    /// [`topk`](Tensor::topk): few elements cost little to sort.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (values, _) = tensor![3.0, 1.0, 2.0].topk_unsorted(2, 0)?;
    /// assert_eq!(values.sum_all()?.item::<f32>()?, 5.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`topk`](Tensor::topk).
    pub fn topk_unsorted(&self, k: usize, axis: impl Into<Axis>) -> Result<(Self, Self)> {
        self.topk(k, axis)
    }

    /// Returns the `k` smallest elements along an axis, the smallest first; see [`topk`](Tensor::topk).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (values, indices) = tensor![3.0, 1.0, 2.0].bottomk(2, 0)?;
    /// assert_eq!(values.to_vec::<f32>()?, [1.0, 2.0]);
    /// assert_eq!(indices.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`topk`](Tensor::topk).
    pub fn bottomk(&self, k: usize, axis: impl Into<Axis>) -> Result<(Self, Self)> {
        B::engine_order(self, OrderOp { descending: false, count: Some(k) }, axis.into())
    }

    pub(crate) fn order_body(x: &Tensor<B>, op: OrderOp, axis: Axis) -> Result<(Self, Self)> {
        let (name, shape) = (op.name(), *x.shape());
        let axis = axis.resolve(name, &shape)?;
        if let Some(k) = op.count
            && k > shape.dim(axis)
        {
            let reason = format!("k = {k} exceeds the extent of axis {axis} of shape {shape}");
            return Err(Error::InvalidArgument { op: name, reason });
        }
        let (values, indices) = B::order(op, x.data(), axis)?;
        let indices = Tensor::from_data(indices);
        let values = record(name, values, &[x], |_| gather_rule(shape, axis, indices.clone()));
        Ok((values, indices))
    }

    /// Returns the insertion index of each value among sorted elements: the number of elements less than it, as `I64`.
    /// `sorted` is `[n]`, or `[…, n]` for values `[…, m]`, in the ascending order of [`sort`](Tensor::sort). NaN is
    /// the largest value and equals itself. If `sorted` is not sorted, the indices are unspecified. No gradient.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let sorted = tensor![1.0, 2.0, 2.0, 4.0];
    /// let x = tensor![0.0, 2.0, 3.0, 5.0];
    /// assert_eq!(x.searchsorted(&sorted)?.to_vec::<i64>()?, [0, 1, 3, 4]);
    /// assert_eq!(x.searchsorted_right(&sorted)?.to_vec::<i64>()?, [0, 3, 3, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DTypeMismatch`]; [`Error::ShapeMismatch`] if `sorted` has several axes and its leading ones
    /// differ from those of the values; [`Error::InvalidShape`] if it has none.
    pub fn searchsorted(&self, sorted: &Tensor<B>) -> Result<Self> {
        B::engine_search_sorted(self, sorted, false)
    }

    /// Like [`searchsorted`](Tensor::searchsorted), but counts the elements less than or equal to each value.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let sorted = tensor![1.0, 2.0, 2.0, 3.0];
    /// let indices = tensor![2.0, 0.5].searchsorted_right(&sorted)?;
    /// assert_eq!(indices.to_vec::<i64>()?, [3, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`searchsorted`](Tensor::searchsorted).
    pub fn searchsorted_right(&self, sorted: &Tensor<B>) -> Result<Self> {
        let indices = B::engine_search_sorted(self, sorted, true);
        indices.map_err(|error| error.named("searchsorted_right"))
    }

    /// [`searchsorted`](Tensor::searchsorted), or with `right`
    /// [`searchsorted_right`](Tensor::searchsorted_right), with indices of dtype `I32` or `I64`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let sorted = tensor![1.0, 2.0, 2.0, 3.0];
    /// let indices = tensor![2.0, 0.5].searchsorted_as(&sorted, true, DType::I32)?;
    /// assert_eq!(indices.to_vec::<i32>()?, [3, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`searchsorted`](Tensor::searchsorted); [`Error::UnsupportedDType`] for another dtype of the indices;
    /// [`Error::InvalidArgument`] for more elements than it can count.
    pub fn searchsorted_as(&self, sorted: &Tensor<B>, right: bool, dtype: DType) -> Result<Self> {
        let op = "searchsorted_as";
        if !matches!(dtype, DType::I32 | DType::I64) {
            return Err(Error::UnsupportedDType { op, dtype, shape: *self.shape() });
        }
        let most = sorted.dims().last().copied().unwrap_or(0);
        check_scalar(op, most.into(), dtype, sorted.shape())?;
        let indices = B::engine_search_sorted(self, sorted, right);
        indices.and_then(|indices| indices.to_dtype(dtype)).map_err(|error| error.named(op))
    }

    /// Returns the interval of each value between sorted boundaries `[n]`, as `I64`: 0 before the first boundary, n after
    /// the last. A value that equals a boundary belongs to the interval before it, or with `right` to the one after it,
    /// as in PyTorch's `bucketize`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[0.0, 1.0], [2.5, 9.0]];
    /// let boundaries = tensor![1.0, 3.0];
    /// assert_eq!(x.bucketize(&boundaries, false)?.to_vec::<i64>()?, [0, 0, 1, 2]);
    /// assert_eq!(x.bucketize(&boundaries, true)?.to_vec::<i64>()?, [0, 1, 1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DTypeMismatch`]; [`Error::InvalidShape`] unless the boundaries have one axis.
    pub fn bucketize(&self, boundaries: &Tensor<B>, right: bool) -> Result<Self> {
        self.bucketize_as(boundaries, right, DType::I64)
    }

    /// Like [`bucketize`](Tensor::bucketize), with indices of an integer dtype, which must represent them.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let y = tensor![0.0, 2.5].bucketize_as(&tensor![1.0, 3.0], false, DType::I32)?;
    /// assert_eq!(y.to_vec::<i32>()?, [0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`searchsorted_as`](Tensor::searchsorted_as).
    pub fn bucketize_as(&self, boundaries: &Tensor<B>, right: bool, dtype: DType) -> Result<Self> {
        let op = "bucketize";
        if boundaries.rank() != 1 {
            let reason = "expected boundaries with one axis";
            return Err(Error::InvalidShape { op, shape: *boundaries.shape(), reason });
        }
        self.searchsorted_as(boundaries, right, dtype).map_err(|error| error.named(op))
    }

    pub(crate) fn search_sorted_body(
        x: &Tensor<B>,
        sorted: &Tensor<B>,
        right: bool,
    ) -> Result<Self> {
        check_search("searchsorted", sorted.data(), x.data())?;
        Ok(Tensor::from_data(B::search_sorted(sorted.data(), x.data(), right)?))
    }
}

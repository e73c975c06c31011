//! Sorting, binary search, quantiles, distinct elements.

use smallvec::SmallVec;

use crate::autodiff::graph::record;
use crate::autodiff::ops::index::gather_rule;
use crate::backend::{Backend, check_search};
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::ops::OrderOp;
use crate::shape::{Axis, AxisSet};

use super::base::Tensor;

/// How [`Tensor::quantiles`] computes a quantile between two elements, as in NumPy.
///
/// The quantile q of n elements is at position `q (n - 1)` of the sorted elements, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QuantileMethod {
    /// Linear interpolation between the two elements around the position.
    #[default]
    Linear,
    /// The element before the position.
    Lower,
    /// The element after the position.
    Higher,
    /// The nearest element; of two equally near ones, the one with the even index.
    Nearest,
    /// The mean of the two elements around the position.
    Midpoint,
}

impl QuantileMethod {
    /// The indices of the elements that a position lies between, and the weight of the upper one.
    fn around(self, position: f64) -> (i64, i64, f64) {
        let (lower, upper) = (position.floor() as i64, position.ceil() as i64);
        match self {
            QuantileMethod::Linear => (lower, upper, position - position.floor()),
            QuantileMethod::Midpoint => (lower, upper, 0.5),
            QuantileMethod::Lower => (lower, lower, 0.0),
            QuantileMethod::Higher => (upper, upper, 0.0),
            QuantileMethod::Nearest => {
                let nearest = position.round_ties_even() as i64;
                (nearest, nearest, 0.0)
            }
        }
    }
}

/// A full ascending sort.
const ASCENDING: OrderOp = OrderOp { descending: false, count: None };

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

    pub(crate) fn search_sorted_body(
        x: &Tensor<B>,
        sorted: &Tensor<B>,
        right: bool,
    ) -> Result<Self> {
        check_search("searchsorted", sorted.data(), x.data())?;
        Ok(Tensor::from_data(B::search_sorted(sorted.data(), x.data(), right)?))
    }

    /// Median along an axis: the middle one of the sorted elements, or the lower of the two middle ones. NaN if any
    /// element is NaN. The gradient flows to that element.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[5.0, 1.0, 2.0], [0.0, 9.0, 9.0]];
    /// assert_eq!(x.median(1, false)?.to_vec::<f32>()?, [2.0, 9.0]);
    /// assert_eq!(x.median(0, true)?.to_vec::<f32>()?, [0.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::EmptyReduction`] if the axis has extent 0.
    pub fn median(&self, axis: impl Into<Axis>, keepdims: bool) -> Result<Self> {
        let axis = axis.into();
        let y = B::engine_quantile(self, "median", &[0.5], axis, QuantileMethod::Lower)?;
        if keepdims { Ok(y) } else { y.squeeze(axis) }
    }

    /// Quantile `q` of floats along an axis, from 0 (minimum) to 1 (maximum), with linear interpolation between
    /// elements. NaN if any element is NaN. Computed in `f64` and rounded once. The gradient flows to the one or two
    /// elements it is computed from.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![4.0, 1.0, 2.0, 3.0];
    /// assert_eq!(x.quantile(0.5, 0, false)?.item::<f32>()?, 2.5);
    /// assert_eq!(x.quantile(0.1, 0, false)?.item::<f32>()?, 1.3);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless q is in 0..=1; [`Error::UnsupportedDType`] for integers;
    /// [`Error::EmptyReduction`] if the axis has extent 0.
    pub fn quantile(&self, q: f64, axis: impl Into<Axis>, keepdims: bool) -> Result<Self> {
        let axis = axis.into();
        let y = B::engine_quantile(self, "quantile", &[q], axis, QuantileMethod::Linear)?;
        if keepdims { Ok(y) } else { y.squeeze(axis) }
    }

    /// Several quantiles along an axis from one sort, stacked along a new first axis; see
    /// [`quantile`](Tensor::quantile). Methods that select an element also work for integers.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[4.0, 1.0, 2.0, 3.0], [0.0, 8.0, 2.0, 4.0]];
    /// let quartiles = x.quantiles(&[0.25, 0.75], 1, false, QuantileMethod::Higher)?;
    /// assert_eq!(quartiles.dims(), [2, 2]);
    /// assert_eq!(quartiles.to_vec::<f32>()?, [2.0, 2.0, 4.0, 8.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`quantile`](Tensor::quantile).
    pub fn quantiles(
        &self,
        qs: &[f64],
        axis: impl Into<Axis>,
        keepdims: bool,
        method: QuantileMethod,
    ) -> Result<Self> {
        let (op, axis) = ("quantiles", axis.into());
        let y = B::engine_quantile(self, op, qs, axis, method)?;
        let axis = axis.resolve(op, y.shape())?;
        let mut axes: AxisSet = (0..y.rank()).filter(|&other| other != axis).collect();
        axes.insert(0, axis);
        let y = y.permute(&axes)?;
        if keepdims { y.unsqueeze(axis + 1).map_err(|error| error.named(op)) } else { Ok(y) }
    }

    /// Returns the quantiles along `axis`, which gets their number as its extent.
    pub(crate) fn quantile_body(
        x: &Tensor<B>,
        op: &'static str,
        qs: &[f64],
        axis: Axis,
        method: QuantileMethod,
    ) -> Result<Self> {
        let (shape, dtype) = (*x.shape(), x.dtype());
        let axis = axis.resolve(op, &shape)?;
        let blends = matches!(method, QuantileMethod::Linear | QuantileMethod::Midpoint);
        if blends && !dtype.is_float() {
            return Err(Error::UnsupportedDType { op, dtype, shape });
        }
        if let Some(q) = qs.iter().find(|q| !(0.0..=1.0).contains(*q)) {
            let reason = format!("expected a quantile in 0..=1, got {q}, for shape {shape}");
            return Err(Error::InvalidArgument { op, reason });
        }
        let out = shape.with_axis(axis, Some(qs.len()));
        out.validate(op)?;
        let Some(last) = shape.dim(axis).checked_sub(1) else {
            return match out.numel() {
                0 => x.reshape(out),
                _ => Err(Error::EmptyReduction { op, shape }),
            };
        };
        let around = |&q: &f64| method.around(q * last as f64);
        let positions: SmallVec<[(i64, i64, f64); 4]> = qs.iter().map(around).collect();
        let (sorted, order) = B::order(ASCENDING, x.data(), axis).map_err(|e| e.named(op))?;
        let (sorted, order) = (Tensor::<B>::from_data(sorted), Tensor::<B>::from_data(order));
        let is_nan = sorted.narrow(axis, last, 1)?.isnan()?;
        let nan = order.narrow(axis, last, 1)?;
        let selected = |ranks: SmallVec<[i64; 4]>| {
            let ranks = Tensor::from_slice(&ranks, ranks.len())?;
            let index = Tensor::where_cond(&is_nan, &nan, &order.index_select(axis, &ranks)?)?;
            x.gather(axis, &index)
        };
        let lower = selected(positions.iter().map(|position| position.0).collect())?;
        if !blends {
            return Ok(lower);
        }
        let wide = B::wide(Some(x.data()));
        let upper = selected(positions.iter().map(|position| position.1).collect())?;
        let column = (0..shape.ndim()).map(|i| if i == axis { qs.len() } else { 1 }).collect();
        let weights = |weight: &dyn Fn(f64) -> f64| {
            let weight = |i: usize| Scalar::Float(weight(positions[i].2));
            Tensor::from_scalars(op, column, wide, weight)
        };
        let (lower, upper) = (lower.to_dtype(wide)?, upper.to_dtype(wide)?);
        let between = lower.lerp(&upper, &weights(&|w| w)?)?;
        // If the difference is infinite, use a weighted sum. A weight of 0 becomes 0.5, because 0 times ∞ is NaN.
        let split = |w| if w == 0.0 { 0.5 } else { w };
        let part = lower.mul(&weights(&|w| 1.0 - split(w))?)?;
        let sum = upper.mul_add(&weights(&split)?, &part)?;
        Tensor::where_cond(&between.isfinite()?, &between, &sum)?.to_dtype(dtype)
    }

    /// Returns the distinct elements in ascending order; the index of each element's value among them, in the shape of
    /// this tensor; and the count of each value. Indices and counts are `I64`. NaN equals itself, and −0 equals +0. A
    /// value is copied from the first of equal elements, and its gradient flows there.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[3.0, 1.0], [1.0, 2.0]];
    /// let (values, inverse, counts) = x.unique()?;
    /// assert_eq!(values.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// assert_eq!(counts.to_vec::<i64>()?, [2, 1, 1]);
    /// let again = values.index_select(0, &inverse.reshape(4)?)?;
    /// assert_eq!(again.to_vec::<f32>()?, [3.0, 1.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn unique(&self) -> Result<(Self, Self, Self)> {
        B::engine_unique(self)
    }

    pub(crate) fn unique_body(x: &Tensor<B>) -> Result<(Self, Self, Self)> {
        let op = "unique";
        let n = x.numel();
        let flat = x.reshape(n)?;
        let (sorted, order) = B::order(ASCENDING, flat.data(), 0).map_err(|e| e.named(op))?;
        let (sorted, order) = (Tensor::<B>::from_data(sorted), Tensor::<B>::from_data(order));
        let pairs = n.saturating_sub(1);
        let (here, next) = (sorted.narrow(0, 0, pairs)?, sorted.narrow(0, n - pairs, pairs)?);
        // After the first NaN, all elements are NaN.
        let is_new = here.ne(&next)?.logical_and(&here.isnan()?.logical_not()?)?;
        let is_new = [true].into_iter().chain(is_new.to_vec::<bool>()?);
        let (mut firsts, mut counts, mut inverse) = (Vec::new(), Vec::new(), vec![0i64; n]);
        for (at, is_new) in order.to_vec::<i64>()?.into_iter().zip(is_new) {
            if is_new {
                firsts.push(at);
                counts.push(0i64);
            }
            if let Some(count) = counts.last_mut() {
                *count += 1;
            }
            if let Some(number) = inverse.get_mut(at as usize) {
                *number = firsts.len() as i64 - 1;
            }
        }
        let distinct = firsts.len();
        let values = flat.index_select(0, &Tensor::from_vec(firsts, distinct)?)?;
        let inverse = Tensor::from_vec(inverse, *x.shape())?;
        Ok((values, inverse, Tensor::from_vec(counts, distinct)?))
    }
}

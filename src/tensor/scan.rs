//! Cumulative sums, products and extrema.

use crate::autodiff::graph::record;
use crate::autodiff::ops::index::gather_rule;
use crate::autodiff::ops::scan::{cumprod_rule, cumsum_rule, recurrence};
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::ops::{Extremum, ScanOp};
use crate::shape::{Axis, Shape, broadcast_shape_for};

use super::base::Tensor;
use super::operators::{Input, Operand};

/// # Cumulative sums and products
///
/// Cumulative operations. Totals of floats are accumulated in `f64` along the axis and each is
/// rounded to the dtype (16-bit floats by way of `f32`). Totals of integers and booleans are `I64`
/// and wrap.
///
/// # Errors
/// [`Error::AxisOutOfRange`].
impl<B: Backend> Tensor<B> {
    /// Cumulative sum along an axis: `out[i] = self[0] + … + self[i]`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    /// assert_eq!(x.cumsum(-1)?.to_vec::<f32>()?, [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
    /// assert_eq!(x.cumsum(0)?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 5.0, 7.0, 9.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn cumsum(&self, axis: impl Into<Axis>) -> Result<Self> {
        B::engine_scan(self, ScanOp::Sum, axis.into())
    }

    /// Cumulative product along an axis: `out[i] = self[0] · … · self[i]`. A total that leaves the
    /// range of `f64` does not come back: the later ones are infinite, NaN or 0.
    ///
    /// The gradient is right where there are zeros. It is computed in `f64`, in a number of passes
    /// that grows with the logarithm of the extent, and is NaN beside a zero where a product of
    /// later elements overflows.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![2.0, -3.0, 0.5];
    /// assert_eq!(x.cumprod(0)?.to_vec::<f32>()?, [2.0, -6.0, -3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn cumprod(&self, axis: impl Into<Axis>) -> Result<Self> {
        B::engine_scan(self, ScanOp::Product, axis.into())
    }

    /// Logarithm of the cumulative sum of `e^x` along an axis, without overflow:
    /// `out[i] = ln(e^self[0] + … + e^self[i])`. Computed in `f64` and rounded once, in a number of passes that grows with
    /// the logarithm of the extent.
    ///
    /// The sum up to each element is taken relative to the largest element up to it. The gradient is NaN at −∞ that
    /// is preceded by nothing else, and at +∞.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![-f32::INFINITY, 0.0, 0.0, 1000.0];
    /// assert_eq!(x.logcumsumexp(0)?.to_vec::<f32>()?, [-f32::INFINITY, 0.0, 2f32.ln(), 1000.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`]; [`Error::UnsupportedDType`] for integers.
    pub fn logcumsumexp(&self, axis: impl Into<Axis>) -> Result<Self> {
        let op = "logcumsumexp";
        self.check_float(op)?;
        let axis = axis.into().resolve(op, self.shape())?;
        let Some(pairs) = self.dims()[axis].checked_sub(1) else { return Ok(self.clone()) };
        let sums = || {
            // Backwards, in the direction of the recurrence.
            let x = self.to_dtype(B::wide(Some(self.data())))?;
            let limit = x.dtype().largest();
            let largest = x.detach().cummax(axis)?.0.clamp(-limit, limit)?.flip(axis)?;
            let powers = x.flip(axis)?.sub(&largest)?.exp()?;
            let before = largest.narrow(axis, 1, pairs)?;
            let factors = before.sub(&largest.narrow(axis, 0, pairs)?)?.exp()?;
            let sums = recurrence(factors, powers, axis)?.log()?.add(&largest)?;
            sums.flip(axis)?.to_dtype(self.dtype())
        };
        sums().map_err(|error: Error| error.named(op))
    }

    pub(crate) fn scan_body(x: &Tensor<B>, op: ScanOp, axis: Axis) -> Result<Self> {
        let name = op.name();
        let axis = axis.resolve(name, x.shape())?;
        let data = B::scan(op, x.data(), axis)?;
        Ok(record(name, data, &[x], |_| match op {
            ScanOp::Sum => cumsum_rule(axis),
            ScanOp::Product => cumprod_rule(x, axis),
        }))
    }
}

/// Running extrema of every dtype; NaN from the first NaN on.
impl<B: Backend> Tensor<B> {
    /// Largest element up to each along an axis, and its index (`I64`): the first of equal elements (−0 equals
    /// +0), or of NaN. The gradient of a value goes to the element that it is.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (values, indices) = tensor![1.0, 3.0, 2.0, 3.0, 4.0].cummax(0)?;
    /// assert_eq!(values.to_vec::<f32>()?, [1.0, 3.0, 3.0, 3.0, 4.0]);
    /// assert_eq!(indices.to_vec::<i64>()?, [0, 1, 1, 1, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`AxisOutOfRange`](crate::Error::AxisOutOfRange).
    pub fn cummax(&self, axis: impl Into<Axis>) -> Result<(Self, Self)> {
        B::engine_arg_scan(self, Extremum::Max, axis.into())
    }

    /// Smallest element up to each along an axis, and its index; see [`cummax`](Tensor::cummax).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (values, indices) = tensor![3.0, 1.0, 2.0].cummin(0)?;
    /// assert_eq!(values.to_vec::<f32>()?, [3.0, 1.0, 1.0]);
    /// assert_eq!(indices.to_vec::<i64>()?, [0, 1, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`AxisOutOfRange`](crate::Error::AxisOutOfRange).
    pub fn cummin(&self, axis: impl Into<Axis>) -> Result<(Self, Self)> {
        B::engine_arg_scan(self, Extremum::Min, axis.into())
    }

    pub(crate) fn arg_scan_body(x: &Tensor<B>, op: Extremum, axis: Axis) -> Result<(Self, Self)> {
        let (name, shape) = (op.name(), *x.shape());
        let axis = axis.resolve(name, &shape)?;
        let indices = Tensor::from_data(B::arg_scan(op, x.data(), axis)?);
        let values = B::gather(x.data(), axis, indices.data()).map_err(|e| e.named(name))?;
        let values = record(name, values, &[x], |_| gather_rule(shape, axis, indices.clone()));
        Ok((values, indices))
    }
}

/// # Integrals
///
/// The trapezoid rule for samples of floats along an axis. `spacing` is the distance between samples, or their points:
/// a vector, or a tensor that broadcasts to the samples and has as many along the axis. 16-bit floats are computed in
/// `f32` and rounded once.
///
/// # Errors
/// [`AxisOutOfRange`](crate::Error::AxisOutOfRange); [`ShapeMismatch`](crate::Error::ShapeMismatch);
/// [`DTypeMismatch`](crate::Error::DTypeMismatch); [`UnsupportedDType`](crate::Error::UnsupportedDType) for integers.
impl<B: Backend> Tensor<B> {
    /// Integral along an axis: the sum of the trapezoids between neighbouring samples; 0 for fewer than two.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let y = tensor![1.0, 2.0, 4.0];
    /// assert_eq!(y.trapezoid(0.5, -1)?.item::<f32>()?, 2.25);
    /// assert_eq!(y.trapezoid(&tensor![0.0, 1.0, 3.0], -1)?.item::<f32>()?, 7.5);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn trapezoid(&self, spacing: impl Operand<B>, axis: impl Into<Axis>) -> Result<Self> {
        let (areas, axis) = spacing.with(|by| self.areas("trapezoid", by, axis.into()))?;
        areas.sum_axis(axis, false)?.to_dtype(self.dtype())
    }

    /// Integrals up to each sample but the first, along an axis; see [`trapezoid`](Tensor::trapezoid).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let y = tensor![1.0, 2.0, 4.0].cumulative_trapezoid(1.0, 0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.5, 4.5]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn cumulative_trapezoid(
        &self,
        spacing: impl Operand<B>,
        axis: impl Into<Axis>,
    ) -> Result<Self> {
        let op = "cumulative_trapezoid";
        let (areas, axis) = spacing.with(|by| self.areas(op, by, axis.into()))?;
        areas.cumsum(axis)?.to_dtype(self.dtype())
    }

    /// The areas between neighbouring samples, in `F32` at least, and their axis counted from the end.
    fn areas(&self, op: &'static str, by: Input<'_, B>, axis: Axis) -> Result<(Self, isize)> {
        self.check_float(op)?;
        let axis = axis.resolve(op, self.shape())?;
        let (below, count) = (self.rank() - axis, self.dims()[axis]);
        let axis = -(below as isize);
        let sides = |x: &Tensor<B>| {
            let between = count.saturating_sub(1);
            Ok([x.narrow(axis, 0, between)?, x.narrow(axis, count.min(1), between)?])
        };
        let (x, is_number) = (self.widened()?, matches!(by, Input::Scalar(_)));
        let given = by.into_tensor(op, &x)?;
        let mut width = given.widened()?;
        if !is_number {
            self.check_dtype(op, given.dtype())?;
            if width.rank() == 1 {
                let column = std::iter::once(width.numel()).chain(vec![1; below - 1]);
                width = width.reshape(column.collect::<Shape>())?;
            }
            let is_along = width.dims().iter().nth_back(below - 1) == Some(&count);
            if !is_along || broadcast_shape_for(op, self.shape(), width.shape()).is_err() {
                return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *given.shape() });
            }
            let [from, to] = sides(&width)?;
            width = to.sub(&from)?;
        }
        let [left, right] = sides(&x)?;
        Ok((left.add(&right)?.mul(width.mul(0.5)?)?, axis))
    }
}

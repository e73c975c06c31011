//! Cumulative sums, products and extrema.

use crate::autodiff::graph::record;
use crate::autodiff::ops::index::gather_rule;
use crate::autodiff::ops::scan::{cumprod_rule, cumsum_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::ops::{Extremum, ScanOp};
use crate::shape::Axis;

use super::base::Tensor;

/// # Cumulative sums and products
///
/// Cumulative operations. Totals of floats are accumulated in `f64` along the axis and each is
/// rounded to the dtype (16-bit floats by way of `f32`). Totals of integers and booleans are `I64`
/// and wrap.
///
/// # Errors
/// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange).
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

//! Cumulative sums and products.

use crate::autodiff::graph::record;
use crate::autodiff::ops::scan::{cumprod_rule, cumsum_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::ops::ScanOp;
use crate::shape::Axis;

use super::Tensor;

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

    /// Cumulative product along an axis: `out[i] = self[0] · … · self[i]`.
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

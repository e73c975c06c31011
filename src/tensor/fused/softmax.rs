//! `softmax` and `log_softmax`.

use crate::autodiff::graph::record;
use crate::autodiff::ops::fused::softmax::{log_softmax_rule, softmax_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::ops::FusedOp;
use crate::shape::{Axis, AxisSet};

use super::{check_float, exactly};
use crate::tensor::Tensor;

impl<B: Backend> Tensor<B> {
    /// `exp(x) / sum(exp(x))` along an axis, safe against overflow. NaN, +∞, or nothing but −∞ along
    /// the axis give NaN.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let p = tensor![[0.0, 0.0], [1000.0, 0.0]].softmax(-1)?;
    /// assert_eq!(p.to_vec::<f32>()?, [0.5, 0.5, 1.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange);
    /// [`Error::UnsupportedDType`](crate::Error::UnsupportedDType) for integers.
    pub fn softmax(&self, axis: impl Into<Axis>) -> Result<Self> {
        let axis = axis.into().resolve("softmax", self.shape())?;
        check_float("softmax", self)?;
        self.with_axis_last(axis, |x| {
            let [y] = exactly("softmax", B::fused(&FusedOp::Softmax, &[Some(x.data())])?)?;
            Ok(record("softmax", y, &[x], softmax_rule))
        })
    }

    /// `log(softmax(x))` along an axis, without the loss of precision of computing it that way.
    ///
    /// # Errors
    /// As [`softmax`](Tensor::softmax).
    pub fn log_softmax(&self, axis: impl Into<Axis>) -> Result<Self> {
        let axis = axis.into().resolve("log_softmax", self.shape())?;
        check_float("log_softmax", self)?;
        self.with_axis_last(axis, |x| {
            let [y] = exactly("log_softmax", B::fused(&FusedOp::LogSoftmax, &[Some(x.data())])?)?;
            Ok(record("log_softmax", y, &[x], log_softmax_rule))
        })
    }

    /// `f` of a view whose last axis is `axis`, viewed as this tensor's shape again.
    fn with_axis_last(
        &self,
        axis: usize,
        f: impl FnOnce(&Tensor<B>) -> Result<Tensor<B>>,
    ) -> Result<Self> {
        let last = self.rank() - 1;
        if axis == last {
            return f(self);
        }
        let mut axes: AxisSet = (0..=last).collect();
        axes.swap(axis, last);
        f(&self.permute(&axes)?)?.permute(&axes)
    }

    pub(crate) fn softmax_definition(&self, axis: usize) -> Result<Self> {
        if self.numel() == 0 {
            return Ok(self.clone());
        }
        let e = self.shifted_by_max(axis)?.exp()?;
        e.div(&e.sum(Some(&[axis]), true)?)
    }

    pub(crate) fn log_softmax_definition(&self, axis: usize) -> Result<Self> {
        if self.numel() == 0 {
            return Ok(self.clone());
        }
        let shifted = self.shifted_by_max(axis)?;
        shifted.sub(&shifted.exp()?.sum(Some(&[axis]), true)?.log()?)
    }

    /// `x - max(x)` along the axis, which leaves every softmax as it is. The maximum is a constant
    /// to the derivative.
    fn shifted_by_max(&self, axis: usize) -> Result<Self> {
        self.sub(&self.detach().max(Some(&[axis]), true)?)
    }
}

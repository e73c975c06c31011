//! `softmax` and `log_softmax`.

use smallvec::smallvec;

use crate::autodiff::graph::{SharedRule, Upstream, bytes_of, record, rule_keeping};
use crate::backend::Backend;
use crate::error::Result;
use crate::ops::FusedOp;
use crate::shape::{Axis, AxisSet};

use super::{gradient_kernel, kernel};
use crate::tensor::base::Tensor;

/// # Softmax
impl<B: Backend> Tensor<B> {
    /// `exp(x) / Σ exp(x)` along an axis, safe against overflow. NaN, +∞, or only −∞ along the axis
    /// give NaN.
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
        B::engine_softmax(self, axis.into(), false)
    }

    /// `log(softmax(x))` along an axis, more precise than the logarithm of
    /// [`softmax`](Tensor::softmax).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let y = tensor![1000.0, 1000.0].log_softmax(0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-std::f32::consts::LN_2; 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`softmax`](Tensor::softmax).
    pub fn log_softmax(&self, axis: impl Into<Axis>) -> Result<Self> {
        B::engine_softmax(self, axis.into(), true)
    }

    pub(crate) fn softmax_body(x: &Tensor<B>, axis: Axis, log: bool) -> Result<Self> {
        let op = if log { "log_softmax" } else { "softmax" };
        let axis = axis.resolve(op, x.shape())?;
        x.check_float(op)?;
        let last = x.rank() - 1;
        let permuted;
        let rows = if axis == last {
            x
        } else {
            permuted = x.permute(&to_last(axis, last))?;
            &permuted
        };
        let y = match kernel::<B, 1>(&FusedOp::Softmax { x: rows.data(), log })? {
            Some([y]) => record(op, y, &[rows], |y| softmax_rule(y, log)),
            None => rows.softmax_composite(last, log)?,
        };
        if axis == last { Ok(y) } else { y.permute(&from_last(axis, last)) }
    }

    /// Defines softmax, or with `log` its logarithm. The maximum is a constant to the derivative.
    pub(super) fn softmax_composite(&self, axis: usize, log: bool) -> Result<Self> {
        if self.numel() == 0 {
            return Ok(self.clone());
        }
        let (axes, x) = (Some(&[axis][..]), self.widened()?);
        let shifted = x.sub(&x.detach().max(axes, true)?)?;
        let e = shifted.exp()?;
        let sum = e.sum(axes, true)?;
        let y = if log { shifted.sub(&sum.log()?)? } else { e.div(&sum)? };
        y.to_dtype(self.dtype())
    }
}

/// Axes with `axis` after all others.
pub(super) fn to_last(axis: usize, last: usize) -> AxisSet {
    (0..axis).chain(axis + 1..=last).chain([axis]).collect()
}

/// The inverse of [`to_last`].
fn from_last(axis: usize, last: usize) -> AxisSet {
    (0..axis).chain([last]).chain(axis..last).collect()
}

/// Gradient of softmax, `y (g - Σ g y)`, or with `log` of its logarithm, `g - e^y Σ g`.
fn softmax_rule<B: Backend>(y: &B::Tensor, log: bool) -> SharedRule<B> {
    let y = y.clone();
    rule_keeping(bytes_of([Some(&y)]), move |upstream: &Upstream<'_, B>, _| {
        let g = upstream.g;
        let fused = FusedOp::SoftmaxGrad { g: g.data(), y: &y, log };
        if let Some([gradient]) = gradient_kernel::<B, 1>(upstream, &fused)? {
            return Ok(smallvec![Some(gradient)]);
        }
        let y = upstream.output(&y).widened()?;
        let (last, dtype, g) = (Some(&[y.rank() - 1][..]), g.dtype(), g.widened()?);
        let gradient = match log {
            true => g.sub(&y.exp()?.mul(&g.sum(last, true)?)?)?,
            false => y.mul(&g.sub(&g.mul(&y)?.sum(last, true)?)?)?,
        };
        Ok(smallvec![Some(gradient.to_dtype(dtype)?)])
    })
}

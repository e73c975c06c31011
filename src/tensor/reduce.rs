//! Reductions.

use crate::autodiff::graph::record;
use crate::autodiff::ops::reduce::reduce_rule;
use crate::backend::{Backend, reduce_axes};
use crate::error::Result;
use crate::ops::ReduceOp;
use crate::shape::Axis;

use super::Tensor;

macro_rules! reductions {
    ($($(#[$doc:meta])* $method:ident $method_axis:ident $Variant:ident;)*) => {
        /// Reductions over `axes` (`None`: all), which stay as extent 1 with `keepdims`.
        ///
        /// # Errors
        /// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange),
        /// [`Error::RepeatedAxis`](crate::Error::RepeatedAxis),
        /// [`Error::UnsupportedDType`](crate::Error::UnsupportedDType).
        impl<B: Backend> Tensor<B> {
            $(
                $(#[$doc])*
                pub fn $method(&self, axes: Option<&[usize]>, keepdims: bool) -> Result<Self> {
                    self.reduce(ReduceOp::$Variant, axes, keepdims)
                }

                #[doc = concat!("[`", stringify!($method), "`](Tensor::", stringify!($method), ") over one axis.")]
                pub fn $method_axis(&self, axis: impl Into<Axis>, keepdims: bool) -> Result<Self> {
                    let axis = axis.into().resolve(ReduceOp::$Variant.name(), self.shape())?;
                    self.reduce(ReduceOp::$Variant, Some(&[axis]), keepdims)
                }
            )*
        }
    };
}

reductions! {
    /// Sum; 0 of no elements. Sums of integers and truth values are `I64` and wrap.
    ///
    /// Floats up to 32 bits are added in `f64` and rounded once; the order of addition depends on
    /// the number of elements alone.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// assert_eq!(x.sum(Some(&[0]), false)?.to_vec::<f32>()?, [4.0, 6.0]);
    /// assert_eq!(x.sum_axis(-1, true)?.shape(), &Shape::new([2, 1]));
    /// # Ok::<(), Error>(())
    /// ```
    sum sum_axis Sum;
    /// Arithmetic mean of floats; NaN of no elements.
    mean mean_axis Mean;
    /// Largest element; NaN if there is one, −0 < +0. No elements are
    /// [`Error::EmptyReduction`](crate::Error::EmptyReduction). Ties split the gradient evenly.
    max max_axis Max;
    /// Smallest element; NaN if there is one, −0 < +0. No elements are
    /// [`Error::EmptyReduction`](crate::Error::EmptyReduction). Ties split the gradient evenly.
    min min_axis Min;
}

impl<B: Backend> Tensor<B> {
    fn reduce(&self, op: ReduceOp, axes: Option<&[usize]>, keepdims: bool) -> Result<Self> {
        let data = reduce_axes::<B>(op, self.data(), axes, keepdims)?;
        let axes = self.shape().resolve_axes(op.name(), axes)?;
        Ok(record(op.name(), data, &[self], |y| reduce_rule(op, self, axes, y)))
    }
}

//! Reductions.

use crate::autodiff::graph::record;
use crate::autodiff::ops::reduce::reduce_rule;
use crate::backend::{Backend, reduce_axes};
use crate::error::{Error, Result};
use crate::ops::ReduceOp;
use crate::shape::Axis;

use super::Tensor;

macro_rules! reductions {
    ($($(#[$doc:meta])* $method:ident $method_axis:ident $Variant:ident;)*) => {
        /// Reductions over `axes` (`None`: all), which stay as extent 1 with `keepdims`.
        ///
        /// # Errors
        /// [`Error::AxisOutOfRange`], [`Error::RepeatedAxis`], [`Error::UnsupportedDType`].
        impl<B: Backend> Tensor<B> {
            $(
                $(#[$doc])*
                pub fn $method(&self, axes: Option<&[usize]>, keepdims: bool) -> Result<Self> {
                    self.reduce(ReduceOp::$Variant, axes, keepdims)
                }

                #[doc = concat!("[`", stringify!($method), "`](Tensor::", stringify!($method), ") over one axis.")]
                pub fn $method_axis(&self, axis: impl Into<Axis>, keepdims: bool) -> Result<Self> {
                    self.reduce_axis(ReduceOp::$Variant, axis, keepdims)
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
    /// Product; 1 of no elements. Products of integers and truth values are `I64` and wrap. Floats are
    /// multiplied in `f64`, in the order of a sum, and rounded once.
    ///
    /// The gradient is right where elements are 0: that of each is the product of the others, in `f64` too.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![2.0, 0.0, 3.0].requires_grad();
    /// let grads = x.prod(None, false)?.backward()?;
    /// assert_eq!(grads.wrt(&x)?.to_vec::<f32>()?, [0.0, 6.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    prod prod_axis Prod;
    /// Arithmetic mean of floats; NaN of no elements. A sum beyond the numbers of `f64` makes it ∞.
    mean mean_axis Mean;
    /// `ln Σ e^x` of floats without overflow; −∞ of no elements, +∞ where an element is.
    ///
    /// The gradient is g softmax(x), and 0 where all elements are −∞.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1000.0, 1000.0];
    /// assert_eq!(x.logsumexp(None, false)?.item::<f32>()?, 1000.6932);
    /// # Ok::<(), Error>(())
    /// ```
    logsumexp logsumexp_axis LogSumExp;
    /// Largest element; NaN if there is one, −0 < +0. No elements are [`Error::EmptyReduction`]. Ties
    /// split the gradient evenly.
    max max_axis Max;
    /// Smallest element; NaN if there is one, −0 < +0. No elements are [`Error::EmptyReduction`]. Ties
    /// split the gradient evenly.
    min min_axis Min;
    /// Whether an element is other than 0, as `Bool`; NaN is. False of no elements. No gradient.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[0.0, 2.0], [0.0, 0.0]];
    /// assert_eq!(x.any(Some(&[1]), false)?.to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), Error>(())
    /// ```
    any any_axis Any;
    /// Whether all elements are other than 0, as `Bool`; NaN is. True of no elements. No gradient.
    all all_axis All;
}

/// Reductions with parameters, and positions.
impl<B: Backend> Tensor<B> {
    /// Variance of floats over `axes` (`None`: all), which stay as extent 1 with `keepdims`: the sum of
    /// squared distances from the mean, over the number of elements less `ddof` (0: of a population,
    /// 1: estimated from a sample). Of no more than `ddof` elements ∞, or NaN where they are equal.
    ///
    /// One pass over memory, in `f64`, rounded once; accurate however far the mean is from 0. Distances
    /// beyond 1e154, which only `f64` has, make it ∞, or NaN where they or their sum exceed 1.8e308.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0, 3.0], [4.0, 4.0, 7.0]];
    /// assert_eq!(x.variance(Some(&[1]), false, 1)?.to_vec::<f32>()?, [1.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`], [`Error::RepeatedAxis`], [`Error::UnsupportedDType`].
    pub fn variance(&self, axes: Option<&[usize]>, keepdims: bool, ddof: usize) -> Result<Self> {
        self.reduce(ReduceOp::Variance { ddof }, axes, keepdims)
    }

    /// [`variance`](Tensor::variance) over one axis.
    pub fn variance_axis(
        &self,
        axis: impl Into<Axis>,
        keepdims: bool,
        ddof: usize,
    ) -> Result<Self> {
        self.reduce_axis(ReduceOp::Variance { ddof }, axis, keepdims)
    }

    /// Standard deviation, the square root of the [`variance`](Tensor::variance). Where it is 0, so is
    /// its gradient. Of `f64` it is the root of the rounded variance: ∞ from distances beyond 1e154, and of
    /// fewer digits where all distances are below 1e-154.
    ///
    /// # Errors
    /// Those of [`variance`](Tensor::variance).
    pub fn std(&self, axes: Option<&[usize]>, keepdims: bool, ddof: usize) -> Result<Self> {
        self.reduce(ReduceOp::Std { ddof }, axes, keepdims)
    }

    /// [`std`](Tensor::std) over one axis.
    pub fn std_axis(&self, axis: impl Into<Axis>, keepdims: bool, ddof: usize) -> Result<Self> {
        self.reduce_axis(ReduceOp::Std { ddof }, axis, keepdims)
    }

    /// `(Σ |x|^p)^(1/p)` of floats over `axes` (`None`: all), which stay as extent 1 with `keepdims`.
    /// p = 0: the number of elements other than 0; p = ∞, −∞: the largest, the smallest magnitude. Of
    /// no elements 0, for negative p ∞.
    ///
    /// Computed in `f64`, without overflow on the way, and rounded once. Its gradient is 0 at elements
    /// that are 0.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![3e20, -4e20];
    /// assert_eq!(x.norm(2.0, None, false)?.item::<f32>()?, 5e20);
    /// assert_eq!(x.norm(f64::INFINITY, None, false)?.item::<f32>()?, 4e20);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`], [`Error::RepeatedAxis`], [`Error::UnsupportedDType`];
    /// [`Error::InvalidArgument`] if `p` is NaN.
    pub fn norm(&self, p: f64, axes: Option<&[usize]>, keepdims: bool) -> Result<Self> {
        self.reduce(ReduceOp::Norm { p }, axes, keepdims)
    }

    /// [`norm`](Tensor::norm) over one axis.
    pub fn norm_axis(&self, p: f64, axis: impl Into<Axis>, keepdims: bool) -> Result<Self> {
        self.reduce_axis(ReduceOp::Norm { p }, axis, keepdims)
    }

    /// Position of the largest element along an axis, as `I64`: of the first of equals (−0 equals +0),
    /// of the first NaN if there is one. No gradient.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 5.0, 5.0], [4.0, 2.0, 3.0]];
    /// assert_eq!(x.argmax(-1, false)?.to_vec::<i64>()?, [1, 0]);
    /// assert_eq!(x.argmax_all()?.item::<i64>()?, 1);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`], [`Error::UnsupportedDType`]; [`Error::EmptyReduction`] along an axis
    /// of extent 0.
    pub fn argmax(&self, axis: impl Into<Axis>, keepdims: bool) -> Result<Self> {
        self.reduce_axis(ReduceOp::ArgMax, axis, keepdims)
    }

    /// Position of the smallest element along an axis, as [`argmax`](Tensor::argmax).
    ///
    /// # Errors
    /// Those of [`argmax`](Tensor::argmax).
    pub fn argmin(&self, axis: impl Into<Axis>, keepdims: bool) -> Result<Self> {
        self.reduce_axis(ReduceOp::ArgMin, axis, keepdims)
    }

    /// Position of the largest of all elements, counted in row-major order, as a tensor without axes;
    /// else as [`argmax`](Tensor::argmax).
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`]; [`Error::EmptyReduction`] of no elements.
    pub fn argmax_all(&self) -> Result<Self> {
        self.reduce(ReduceOp::ArgMax, None, false).map_err(|e| e.named("argmax_all"))
    }

    /// Position of the smallest of all elements, as [`argmax_all`](Tensor::argmax_all).
    ///
    /// # Errors
    /// Those of [`argmax_all`](Tensor::argmax_all).
    pub fn argmin_all(&self) -> Result<Self> {
        self.reduce(ReduceOp::ArgMin, None, false).map_err(|e| e.named("argmin_all"))
    }

    fn reduce_axis(&self, op: ReduceOp, axis: impl Into<Axis>, keepdims: bool) -> Result<Self> {
        let axis = axis.into().resolve(op.name(), self.shape())?;
        self.reduce(op, Some(&[axis]), keepdims)
    }

    /// Any reduction over `axes` (`None`: all), which stay as extent 1 with `keepdims`.
    ///
    /// # Errors
    /// Those of the method named as the op.
    pub fn reduce(&self, op: ReduceOp, axes: Option<&[usize]>, keepdims: bool) -> Result<Self> {
        B::engine_reduce(self, op, axes, keepdims)
    }

    pub(crate) fn reduce_body(
        x: &Tensor<B>,
        op: ReduceOp,
        axes: Option<&[usize]>,
        keepdims: bool,
    ) -> Result<Self> {
        if let ReduceOp::Norm { p } = op
            && p.is_nan()
        {
            let reason = format!("p is NaN, of a tensor {}", x.shape());
            return Err(Error::InvalidArgument { op: op.name(), reason });
        }
        let data = reduce_axes::<B>(op, x.data(), axes, keepdims)?;
        if let ReduceOp::ArgMax | ReduceOp::ArgMin | ReduceOp::Any | ReduceOp::All = op {
            return Ok(Tensor::from_data(data));
        }
        let axes = x.shape().resolve_axes(op.name(), axes)?;
        Ok(record(op.name(), data, &[x], |y| reduce_rule(op, x, axes, y)))
    }
}

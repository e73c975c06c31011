//! Reductions.

use crate::autodiff::graph::record;
use crate::autodiff::ops::reduce::{log_sum_exp_rule, reduce_rule};
use crate::backend::{Backend, Reducer, reduce_axes};
use crate::error::{Error, Result};
use crate::ops::ReduceOp;
use crate::shape::{Axes, Axis};

use super::base::Tensor;

macro_rules! reductions {
    ($($(#[$doc:meta])* $method:ident $method_axis:ident $Variant:ident;)*) => {
        /// # Reductions
        ///
        /// Reductions over `axes`, or over all axes if `None`. Reduced axes stay with extent 1 if
        /// `keepdims` is true.
        ///
        /// # Errors
        /// [`Error::AxisOutOfRange`], [`Error::RepeatedAxis`], [`Error::UnsupportedDType`].
        impl<B: Backend> Tensor<B> {
            $(
                $(#[$doc])*
                pub fn $method(&self, axes: Option<&[usize]>, keepdims: bool) -> Result<Self> {
                    self.reduce(ReduceOp::$Variant, axes, keepdims)
                }

                #[doc = concat!("[`", stringify!($method), "`](Tensor::", stringify!($method), ") over one or several axes: `0`, `-1`, `(0, -1)`, `[0, 1]`; over all: `..`.\n\n\
                    ```\nuse swath::prelude::*;\nlet x = tensor![[1.0, 2.0], [3.0, 4.0]];\n\
                    assert_eq!(x.", stringify!($method_axis), "(-1, false)?.dims(), [2]);\n\
                    assert_eq!(x.", stringify!($method_axis), "((0, -1), true)?.dims(), [1, 1]);\n\
                    # Ok::<(), Error>(())\n```")]
                pub fn $method_axis(&self, axes: impl Into<Axes>, keepdims: bool) -> Result<Self> {
                    self.reduce_along(ReduceOp::$Variant, axes.into(), keepdims)
                }
            )*
        }
    };
}

reductions! {
    /// Sum; 0 for no elements. Sums of integers and booleans are `I64` and wrap.
    ///
    /// Floats up to 32 bits are accumulated in `f64` and rounded once. The order of addition
    /// depends on the number of elements alone.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// assert_eq!(x.sum(Some(&[0]), false)?.to_vec::<f32>()?, [4.0, 6.0]);
    /// assert_eq!(x.sum_axis(-1, true)?.shape(), &Shape::new([2, 1]));
    /// assert_eq!(x.sum_axis((0, -1), false)?.item::<f32>()?, 10.0);
    /// # Ok::<(), Error>(())
    /// ```
    sum sum_axis Sum;
    /// Product; 1 for no elements. Products of integers and booleans are `I64` and wrap. Floats are
    /// multiplied in `f64`, in the same order as a sum, with a wider exponent, so that only the result
    /// can overflow or underflow, and rounded once.
    ///
    /// The gradient is right where elements are 0: it is the product of the other elements,
    /// computed in the same way.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![2.0, 0.0, 3.0].requires_grad();
    /// let grads = x.prod(None, false)?.backward()?;
    /// assert_eq!(grads.wrt(&x)?.to_vec::<f32>()?, [0.0, 6.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    prod prod_axis Prod;
    /// Arithmetic mean of floats; NaN for no elements, infinite if the sum overflows `f64`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![1.0, 2.0].mean(None, false)?.item::<f32>()?, 1.5);
    /// # Ok::<(), Error>(())
    /// ```
    mean mean_axis Mean;
    /// `ln Σ e^x` of floats, without overflow; −∞ for no elements, +∞ if an element is.
    ///
    /// The gradient is `g · e^(x - y)`, and 0 where all elements are −∞; elements that are +∞ have NaN.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1000.0, 1000.0];
    /// assert_eq!(x.logsumexp(None, false)?.item::<f32>()?, 1000.6932);
    /// # Ok::<(), Error>(())
    /// ```
    logsumexp logsumexp_axis LogSumExp;
    /// Maximum; NaN if an element is, and −0 < +0. Ties split the gradient evenly. No elements give
    /// [`Error::EmptyReduction`].
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 0.0]];
    /// assert_eq!(x.max(Some(&[0]), false)?.to_vec::<f32>()?, [3.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    max max_axis Max;
    /// Minimum; NaN if an element is, and −0 < +0. Ties split the gradient evenly. No elements give
    /// [`Error::EmptyReduction`].
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 0.0]];
    /// assert_eq!(x.min(Some(&[0]), false)?.to_vec::<f32>()?, [1.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    min min_axis Min;
    /// True if any element is not 0, as `Bool`; NaN is not 0. False for no elements. No gradient.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[0.0, 2.0], [0.0, 0.0]];
    /// assert_eq!(x.any(Some(&[1]), false)?.to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), Error>(())
    /// ```
    any any_axis Any;
    /// True if all elements are not 0, as `Bool`; NaN is not 0. True for no elements. No gradient.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[0.0, 2.0], [1.0, 3.0]];
    /// assert_eq!(x.all(Some(&[1]), false)?.to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    all all_axis All;
}

macro_rules! reductions_of_all {
    ($($method:ident $method_all:ident $result:literal;)*) => {
        /// # Reductions of all elements
        impl<B: Backend> Tensor<B> {
            $(
                #[doc = concat!("[`", stringify!($method), "`](Tensor::", stringify!($method), ") of all elements, as a tensor \
                    without axes.\n\n```\nuse swath::prelude::*;\nlet x = tensor![[1.0, 2.0], [3.0, 6.0]];\n\
                    assert_eq!(x.", stringify!($method_all), "()?.item::<f32>()?, ", $result, ");\n# Ok::<(), Error>(())\n```")]
                ///
                /// # Errors
                #[doc = concat!("Those of [`", stringify!($method), "`](Tensor::", stringify!($method), ").")]
                pub fn $method_all(&self) -> Result<Self> {
                    self.$method(None, false).map_err(|e| e.named(stringify!($method_all)))
                }
            )*
        }
    };
}

reductions_of_all! {
    sum sum_all "12.0";
    prod prod_all "36.0";
    mean mean_all "3.0";
    max max_all "6.0";
    min min_all "1.0";
}

/// # Reductions with parameters
///
/// Reductions with parameters, and argmax and argmin.
impl<B: Backend> Tensor<B> {
    /// Variance of floats over `axes`, or over all axes if `None`: the sum of squared distances
    /// from the mean, divided by the number of elements minus `ddof` (0 for a population, 1 for an
    /// estimate from a sample). Reduced axes stay with extent 1 if `keepdims` is true. For at most
    /// `ddof` elements the result is ∞, or NaN if they are equal.
    ///
    /// One pass over memory, in `f64`, rounded once; accurate however far the mean is from 0. In
    /// `f64` distances beyond 1e154 give ∞, or NaN if they or their sum exceed 1.8e308.
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

    /// [`variance`](Tensor::variance) over one or several axes.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 3.0], [2.0, 6.0]];
    /// assert_eq!(x.variance_axis(-1, false, 0)?.to_vec::<f32>()?, [1.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn variance_axis(
        &self,
        axes: impl Into<Axes>,
        keepdims: bool,
        ddof: usize,
    ) -> Result<Self> {
        self.reduce_along(ReduceOp::Variance { ddof }, axes.into(), keepdims)
    }

    /// Standard deviation, the square root of the [`variance`](Tensor::variance). Its gradient is 0
    /// where it is 0. For `f64` it is the root of the rounded variance: infinite for distances
    /// beyond 1e154, and less precise if all distances are below 1e-154.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 3.0, 1.0, 3.0];
    /// assert_eq!(x.std(None, false, 0)?.item::<f32>()?, 1.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`variance`](Tensor::variance).
    pub fn std(&self, axes: Option<&[usize]>, keepdims: bool, ddof: usize) -> Result<Self> {
        self.reduce(ReduceOp::Std { ddof }, axes, keepdims)
    }

    /// [`std`](Tensor::std) over one or several axes.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 3.0], [2.0, 6.0]];
    /// assert_eq!(x.std_axis(-1, false, 0)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn std_axis(&self, axes: impl Into<Axes>, keepdims: bool, ddof: usize) -> Result<Self> {
        self.reduce_along(ReduceOp::Std { ddof }, axes.into(), keepdims)
    }

    /// The p-norm `(Σ |x|^p)^(1/p)` of floats over `axes`, or over all axes if `None`. Reduced axes
    /// stay with extent 1 if `keepdims` is true. p = 0 counts the elements that are not 0; p = ∞
    /// and p = −∞ give the largest and the smallest magnitude. No elements give 0, for negative p
    /// ∞.
    ///
    /// Computed in `f64` without intermediate overflow and rounded once. The gradient is 0 at
    /// elements that are 0, and at finite ones beside an infinite one (for p > 1), whose own is NaN.
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

    /// [`norm`](Tensor::norm) over one or several axes.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[3.0, 4.0], [6.0, 8.0]];
    /// assert_eq!(x.norm_axis(2.0, -1, false)?.to_vec::<f32>()?, [5.0, 10.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn norm_axis(&self, p: f64, axes: impl Into<Axes>, keepdims: bool) -> Result<Self> {
        self.reduce_along(ReduceOp::Norm { p }, axes.into(), keepdims)
    }

    /// Index of the maximum along an axis, as `I64`. The first of equal elements wins (−0 equals
    /// +0), and the first NaN if there is one. No gradient.
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
    /// [`Error::AxisOutOfRange`], [`Error::UnsupportedDType`]; [`Error::EmptyReduction`] if the
    /// axis has extent 0.
    pub fn argmax(&self, axis: impl Into<Axis>, keepdims: bool) -> Result<Self> {
        self.reduce_along(ReduceOp::ArgMax, axis.into().into(), keepdims)
    }

    /// Index of the minimum along an axis; see [`argmax`](Tensor::argmax).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 5.0, 5.0], [4.0, 2.0, 3.0]];
    /// assert_eq!(x.argmin(-1, false)?.to_vec::<i64>()?, [0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`argmax`](Tensor::argmax).
    pub fn argmin(&self, axis: impl Into<Axis>, keepdims: bool) -> Result<Self> {
        self.reduce_along(ReduceOp::ArgMin, axis.into().into(), keepdims)
    }

    /// Row-major index of the maximum of all elements, as a tensor without axes; see
    /// [`argmax`](Tensor::argmax).
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![[1.0, 2.0], [5.0, 0.0]].argmax_all()?.item::<i64>()?, 2);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`]; [`Error::EmptyReduction`] for no elements.
    pub fn argmax_all(&self) -> Result<Self> {
        self.reduce(ReduceOp::ArgMax, None, false).map_err(|e| e.named("argmax_all"))
    }

    /// Row-major index of the minimum of all elements; see [`argmax_all`](Tensor::argmax_all).
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![[1.0, 2.0], [5.0, 0.0]].argmin_all()?.item::<i64>()?, 3);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`argmax_all`](Tensor::argmax_all).
    pub fn argmin_all(&self) -> Result<Self> {
        self.reduce(ReduceOp::ArgMin, None, false).map_err(|e| e.named("argmin_all"))
    }

    #[inline(always)]
    fn reduce_along(&self, op: ReduceOp, axes: Axes, keepdims: bool) -> Result<Self> {
        let axes = axes.resolve(op.name(), self.shape())?;
        self.reduce(op, Some(&axes), keepdims)
    }

    /// Applies a reduction chosen at run time: `x.reduce(ReduceOp::Sum, axes, keepdims)` is
    /// `x.sum(axes, keepdims)`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// use swath::ops::ReduceOp;
    /// let x = tensor![[1.0, 2.0], [5.0, 0.0]];
    /// assert_eq!(x.reduce(ReduceOp::Max, Some(&[0]), false)?.to_vec::<f32>()?, [5.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for the method of the same name.
    #[inline(always)]
    pub fn reduce(&self, op: ReduceOp, axes: Option<&[usize]>, keepdims: bool) -> Result<Self> {
        match op {
            ReduceOp::LogSumExp => B::engine_logsumexp(self, axes, keepdims),
            _ => B::engine_reduce(self, B::reducer(op), axes, keepdims),
        }
    }

    pub(crate) fn reduce_body(
        x: &Tensor<B>,
        reducer: Reducer<B::Tensor>,
        axes: Option<&[usize]>,
        keepdims: bool,
    ) -> Result<Self> {
        let op = reducer.op;
        if let ReduceOp::Norm { p } = op
            && p.is_nan()
        {
            let reason = format!("p is NaN: expected a number, for shape {}", x.shape());
            return Err(Error::InvalidArgument { op: op.name(), reason });
        }
        let (data, axes) = reduce_axes::<B>(reducer, x.data(), axes, keepdims)?;
        if let ReduceOp::ArgMax | ReduceOp::ArgMin | ReduceOp::Any | ReduceOp::All = op {
            return Ok(Tensor::from_data(data));
        }
        Ok(record(op.name(), data, &[x], |y| reduce_rule(op, x, axes, y)))
    }

    pub(crate) fn logsumexp_body(
        x: &Tensor<B>,
        axes: Option<&[usize]>,
        keepdims: bool,
    ) -> Result<Self> {
        let op = ReduceOp::LogSumExp;
        let (data, axes) = reduce_axes::<B>(B::reducer(op), x.data(), axes, keepdims)?;
        Ok(record(op.name(), data, &[x], |y| log_sum_exp_rule(x, axes, y)))
    }
}

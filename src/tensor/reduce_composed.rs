//! Reductions that are composed of others: without NaN, counts, with an initial value.

use crate::backend::{Backend, check_arithmetic};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::{BinaryOp, ReduceOp};
use crate::shape::Axes;

use super::base::Tensor;
use super::elementwise::check_scalar;

macro_rules! composed_reductions {
    ($($(#[$doc:meta])* $method:ident $method_axis:ident |$x:ident, $axes:ident, $keepdims:ident| $result:expr;)*) => {
        /// # Reductions without NaN, and counts
        ///
        /// Reductions over `axes`, or over all axes if `None`. Reduced axes stay with extent 1 if
        /// `keepdims` is true.
        ///
        /// # Errors
        /// [`Error::AxisOutOfRange`], [`Error::RepeatedAxis`], [`Error::UnsupportedDType`].
        impl<B: Backend> Tensor<B> {
            $(
                $(#[$doc])*
                pub fn $method(&self, $axes: Option<&[usize]>, $keepdims: bool) -> Result<Self> {
                    let ($x, op) = (self, stringify!($method));
                    let reduced = || $result;
                    reduced().map_err(|error: Error| error.named(op))
                }

                #[doc = concat!("[`", stringify!($method), "`](Tensor::", stringify!($method), ") over one or several axes.\n\n\
                    ```\nuse swath::prelude::*;\nlet x = tensor![[1.0, 2.0], [3.0, 4.0]];\n\
                    assert_eq!(x.", stringify!($method_axis), "(-1, false)?.dims(), [2]);\n\
                    # Ok::<(), Error>(())\n```")]
                pub fn $method_axis(&self, axes: impl Into<Axes>, keepdims: bool) -> Result<Self> {
                    let axes = axes.into().resolve(stringify!($method), self.shape())?;
                    self.$method(Some(&axes), keepdims)
                }
            )*
        }
    };
}

composed_reductions! {
    /// Sum of the elements that are not NaN, else like [`sum`](Tensor::sum). The gradient of NaN is 0.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, f32::NAN], [3.0, 4.0]];
    /// assert_eq!(x.nansum(Some(&[0]), false)?.to_vec::<f32>()?, [4.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    nansum nansum_axis |x, axes, keepdims| {
        let sum = x.sum(axes, keepdims)?;
        // A sum that is a number has met no NaN.
        let is_nan = || sum.detach().isnan()?.any(None, false)?.item::<bool>();
        if x.dtype().is_float() && is_nan()? { x.numbers()?.sum(axes, keepdims) } else { Ok(sum) }
    };
    /// Mean of the elements of floats that are not NaN; NaN if there are none. The gradient of NaN is 0.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, f32::NAN], [3.0, 4.0]];
    /// assert_eq!(x.nanmean(Some(&[0]), false)?.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    nanmean nanmean_axis |x, axes, keepdims| {
        x.check_float("nanmean")?;
        let sum = x.widened()?.nansum(axes, keepdims)?;
        let count = x.eq(x)?.sum(axes, keepdims)?.to_dtype(sum.dtype())?;
        sum.div(&count)?.to_dtype(x.dtype())
    };
    /// Number of elements that are not 0, as `I64`; NaN is not 0. No gradient.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[0.0, f32::NAN], [3.0, 4.0]];
    /// assert_eq!(x.count_nonzero(Some(&[1]), false)?.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    count_nonzero count_nonzero_axis |x, axes, keepdims| match x.dtype() {
        DType::Bool => x.sum(axes, keepdims),
        _ => x.ne(0)?.sum(axes, keepdims),
    };
}

/// # Extrema with an initial value
impl<B: Backend> Tensor<B> {
    /// The largest of `initial` and the elements over `axes`, or over all axes if `None`: [`max`](Tensor::max) with
    /// NumPy's `initial`, which also works for no elements.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 0.0]];
    /// assert_eq!(x.max_with_initial(1.5, Some(&[1]), false)?.to_vec::<f32>()?, [2.0, 3.0]);
    /// let none = x.narrow(0, 0, 0)?;
    /// assert_eq!(none.max_with_initial(1.5, None, false)?.item::<f32>()?, 1.5);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`]; [`Error::RepeatedAxis`]; [`Error::UnsupportedDType`] for booleans;
    /// [`Error::InvalidArgument`] for a value that the dtype does not represent.
    pub fn max_with_initial(
        &self,
        initial: impl Into<Scalar>,
        axes: Option<&[usize]>,
        keepdims: bool,
    ) -> Result<Self> {
        self.with_initial("max_with_initial", BinaryOp::Maximum, initial.into(), axes, keepdims)
    }

    /// The smallest of `initial` and the elements; see [`max_with_initial`](Tensor::max_with_initial).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![i64; [1, 2], [3, 0]];
    /// assert_eq!(x.min_with_initial(2, Some(&[0]), false)?.to_vec::<i64>()?, [1, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`max_with_initial`](Tensor::max_with_initial).
    pub fn min_with_initial(
        &self,
        initial: impl Into<Scalar>,
        axes: Option<&[usize]>,
        keepdims: bool,
    ) -> Result<Self> {
        self.with_initial("min_with_initial", BinaryOp::Minimum, initial.into(), axes, keepdims)
    }

    fn with_initial(
        &self,
        op: &'static str,
        extremum: BinaryOp,
        initial: Scalar,
        axes: Option<&[usize]>,
        keepdims: bool,
    ) -> Result<Self> {
        let (shape, dtype) = (*self.shape(), self.dtype());
        check_arithmetic(op, dtype, &shape)?;
        check_scalar(op, initial, dtype, &shape)?;
        let resolved = shape.resolve_axes(op, axes)?;
        let initial = self.number(initial, dtype)?;
        if resolved.iter().any(|&axis| shape.dim(axis) == 0) {
            return initial.broadcast_to(shape.reduced(&resolved, keepdims))?.contiguous();
        }
        let reduce = if extremum == BinaryOp::Maximum { ReduceOp::Max } else { ReduceOp::Min };
        self.reduce(reduce, axes, keepdims)?.binary(extremum, &initial)
    }

    /// This tensor with 0 for NaN.
    fn numbers(&self) -> Result<Self> {
        match self.dtype().is_float() {
            true => self.masked_fill(&self.isnan()?, 0.0),
            false => Ok(self.clone()),
        }
    }
}

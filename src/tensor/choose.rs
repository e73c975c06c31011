//! Tests of numbers, logic, and filling by a mask.

use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops::NumberTest;
use crate::shape::broadcast_shape_for;

use super::base::Tensor;
use super::elementwise::check_scalar;
use super::operators::{Input, Operand};

/// # Tests and logic
///
/// Element-wise tests and logic. The result is `Bool` and has no gradient. As an operand of logic,
/// every value but zero is true, NaN too; the second one may be a number.
impl<B: Backend> Tensor<B> {
    /// True where the element is NaN; false for integers.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, f32::NAN, f32::INFINITY];
    /// assert_eq!(x.isnan()?.to_vec::<bool>()?, [false, true, false]);
    /// assert_eq!(x.isinf()?.to_vec::<bool>()?, [false, false, true]);
    /// assert_eq!(x.isfinite()?.to_vec::<bool>()?, [true, false, false]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn isnan(&self) -> Result<Tensor<B>> {
        self.test(NumberTest::IsNan)
    }

    /// True where the element is +∞ or −∞; false for integers.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![1.0, f32::INFINITY].isinf()?.to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn isinf(&self) -> Result<Tensor<B>> {
        self.test(NumberTest::IsInf)
    }

    /// True where the element is neither NaN nor infinite; true for integers.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![1.0, f32::NAN].isfinite()?.to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn isfinite(&self) -> Result<Tensor<B>> {
        self.test(NumberTest::IsFinite)
    }

    /// Applies a test chosen at run time: `x.test(NumberTest::IsNan)` is `x.isnan()`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// use swath::ops::NumberTest;
    /// assert_eq!(tensor![1.0, f32::NAN].test(NumberTest::IsNan)?.to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn test(&self, op: NumberTest) -> Result<Tensor<B>> {
        Ok(Tensor::from_data(B::test(op, self.data())?))
    }

    /// True where both elements are true. Shapes broadcast; the dtypes may differ.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (a, b) = (tensor![0.0, 0.0, 2.0, 2.0], tensor![i64; 0, 1, 0, 1]);
    /// assert_eq!(a.logical_and(&b)?.to_vec::<bool>()?, [false, false, false, true]);
    /// assert_eq!(a.logical_or(&b)?.to_vec::<bool>()?, [false, true, true, true]);
    /// assert_eq!(a.logical_not()?.to_vec::<bool>()?, [true, true, false, false]);
    /// assert_eq!(a.logical_and(2)?.to_vec::<bool>()?, [false, false, true, true]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn logical_and(&self, rhs: impl Operand<B>) -> Result<Tensor<B>> {
        let both = || Tensor::where_cond(self, &self.truth(rhs)?, &self.constant(false)?);
        both().map_err(|e| e.named("logical_and"))
    }

    /// True where at least one of the two elements is true. Shapes broadcast; the dtypes may
    /// differ.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let y = tensor![0.0, 2.0].logical_or(&tensor![0.0, 0.0])?;
    /// assert_eq!(y.to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn logical_or(&self, rhs: impl Operand<B>) -> Result<Tensor<B>> {
        let either = || Tensor::where_cond(self, &self.constant(true)?, &self.truth(rhs)?);
        either().map_err(|e| e.named("logical_or"))
    }

    /// True where exactly one of the two elements is true. Shapes broadcast; the dtypes may differ.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (a, b) = (tensor![0.0, 0.0, 2.0, 2.0], tensor![i64; 0, 1, 0, 1]);
    /// assert_eq!(a.logical_xor(&b)?.to_vec::<bool>()?, [false, true, true, false]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn logical_xor(&self, rhs: impl Operand<B>) -> Result<Tensor<B>> {
        let one = || self.as_bool()?.ne(self.truth(rhs)?);
        one().map_err(|e| e.named("logical_xor"))
    }

    /// True where the element is zero.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![0.0, 2.0].logical_not()?.to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn logical_not(&self) -> Result<Tensor<B>> {
        Tensor::where_cond(self, &self.constant(false)?, &self.constant(true)?)
            .map_err(|e| e.named("logical_not"))
    }

    /// Returns a copy with `value` where `mask` is not zero. Shapes broadcast.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, f32::NAN, 3.0];
    /// assert_eq!(x.masked_fill(&x.isnan()?, 0.0)?.to_vec::<f32>()?, [1.0, 0.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if the elements are integers and
    /// `value` is not representable in their dtype.
    pub fn masked_fill(&self, mask: &Tensor<B>, value: impl Into<Scalar>) -> Result<Tensor<B>> {
        let value = value.into();
        let op = "masked_fill";
        check_scalar(op, value, self.dtype(), self.shape())?;
        broadcast_shape_for(op, self.shape(), mask.shape())?;
        Tensor::where_cond(mask, &self.number(value, self.dtype())?, self).map_err(|e| e.named(op))
    }

    /// Converted to `Bool`, without a gradient.
    fn as_bool(&self) -> Result<Tensor<B>> {
        match self.dtype() {
            DType::Bool => Ok(self.clone()),
            _ => Ok(Tensor::from_data(B::cast(self.data(), DType::Bool)?)),
        }
    }
}

/// An operand of logic as `Bool`.
impl<B: Backend> Tensor<B> {
    fn truth(&self, operand: impl Operand<B>) -> Result<Tensor<B>> {
        operand.with(|operand| match operand {
            Input::Ref(x) => x.as_bool(),
            Input::Owned(x) => x.as_bool(),
            Input::Scalar(value) => self.constant(value.to_f64() != 0.0),
        })
    }

    fn constant(&self, value: bool) -> Result<Tensor<B>> {
        self.number(Scalar::Int(i64::from(value)), DType::Bool)
    }
}

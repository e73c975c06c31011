//! Element-wise functions that are composed of rows of the op table.

use std::f64::consts::LN_2;

use crate::autodiff::graph::record;
use crate::autodiff::ops::arithmetic::logaddexp_rule;
use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::{BinaryOp, TernaryOp};
use crate::shape::broadcast_shape_for;

use super::base::Tensor;
use super::operators::{Input, Operand};

impl<B: Backend> Tensor<B> {
    /// `ln(e^a + e^b)`, element by element, without overflow: the larger plus `ln(1 + e^-|a - b|)`. Shapes
    /// broadcast. 16-bit floats are computed in `f32` and rounded once.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (a, b) = (tensor![1000.0, -f32::INFINITY], tensor![1000.0, 2.0]);
    /// assert_eq!(a.logaddexp(&b)?.to_vec::<f32>()?, [1000.6932, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for integers.
    pub fn logaddexp(&self, rhs: impl Operand<B>) -> Result<Tensor<B>> {
        rhs.with(|rhs| B::engine_logaddexp(self, rhs, false))
    }

    /// `log₂(2^a + 2^b)`: see [`logaddexp`](Tensor::logaddexp).
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![1000.0, 3.0].logaddexp2(3.0)?.to_vec::<f32>()?, [1000.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`logaddexp`](Tensor::logaddexp).
    pub fn logaddexp2(&self, rhs: impl Operand<B>) -> Result<Tensor<B>> {
        rhs.with(|rhs| B::engine_logaddexp(self, rhs, true))
    }

    pub(crate) fn logaddexp_body(
        a: &Tensor<B>,
        b: Input<'_, B>,
        binary: bool,
    ) -> Result<Tensor<B>> {
        let op = if binary { "logaddexp2" } else { "logaddexp" };
        a.check_float(op)?;
        let b = b.into_tensor(op, a)?;
        a.check_dtype(op, b.dtype())?;
        broadcast_shape_for(op, a.shape(), b.shape())?;
        let (x, y) = (a.detach().widened()?, b.detach().widened()?);
        let (largest, distance) = (x.maximum(&y)?, x.sub(&y)?.abs()?);
        // NaN beside NaN, where the larger is NaN too, and between equal infinities.
        let undefined = distance.isnan()?;
        let rest = match binary {
            true => distance.mul(-LN_2)?.softplus()?.div(LN_2)?,
            false => distance.neg()?.softplus()?,
        };
        let sum = largest.add(rest)?;
        let sum = Tensor::where_cond(&undefined, &largest, &sum)?.to_dtype(a.dtype())?;
        Ok(record(op, sum.into_data(), &[a, &b], |_| logaddexp_rule(a, &b, binary)))
    }

    /// `self + alpha · rhs`, element by element: PyTorch's `add` and, with the factor negated, `sub` with `alpha`. Shapes
    /// broadcast. Of floats it is a [`mul_add`](Tensor::mul_add), one pass that rounds once; integers wrap.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let y = tensor![1.0, 2.0].add_scaled(&tensor![10.0, 20.0], -0.5)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-4.0, -8.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for booleans;
    /// [`Error::InvalidArgument`] for a factor that an integer dtype does not represent.
    pub fn add_scaled(&self, rhs: &Tensor<B>, alpha: impl Into<Scalar>) -> Result<Tensor<B>> {
        let (op, alpha) = ("add_scaled", Input::Scalar(alpha.into()));
        self.check_dtype(op, rhs.dtype())?;
        broadcast_shape_for(op, self.shape(), rhs.shape())?;
        let sum = match self.dtype().is_float() {
            true => B::engine_ternary(TernaryOp::MulAdd, rhs, alpha, Input::Ref(self)),
            false => B::engine_binary(BinaryOp::Mul, Input::Ref(rhs), alpha)
                .and_then(|scaled| self.add(scaled)),
        };
        sum.map_err(|error| error.named(op))
    }

    /// `ln(1 + e^(beta x)) / beta`, element by element, and x where `beta x` is above `threshold`, as
    /// PyTorch's `softplus`, whose defaults are 1 and 20. [`softplus`](Tensor::softplus) needs no
    /// threshold.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let y = tensor![0.0, 3.0].softplus_with(2.0, 5.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [2f32.ln() / 2.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`] for integers; [`Error::InvalidArgument`] unless `beta` is positive and
    /// finite.
    pub fn softplus_with(&self, beta: f64, threshold: f64) -> Result<Tensor<B>> {
        B::engine_softplus_with(self, beta, threshold)
    }

    pub(crate) fn softplus_with_body(
        x: &Tensor<B>,
        beta: f64,
        threshold: f64,
    ) -> Result<Tensor<B>> {
        let op = "softplus_with";
        x.check_float(op)?;
        // In `f32` too, in which most dtypes are computed.
        let narrow = if x.dtype() == DType::F64 { beta } else { f64::from(beta as f32) };
        if !(narrow > 0.0 && narrow.is_finite()) {
            let reason = format!("beta must be positive and finite, got {beta}");
            return Err(Error::InvalidArgument { op, reason });
        }
        let wide = x.widened()?;
        let scaled = wide.mul_scalar(beta)?;
        let soft = scaled.softplus()?.div(beta)?;
        Tensor::where_cond(&scaled.detach().gt(threshold)?, &wide, &soft)?.to_dtype(x.dtype())
    }

    /// This tensor with other numbers for NaN, +∞ and −∞; `None` for an infinity is the largest or the
    /// smallest finite number of the dtype. The derivative is 0 at what is replaced. Integers are
    /// unchanged.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, f32::NAN, f32::INFINITY, -f32::INFINITY];
    /// assert_eq!(x.nan_to_num(0.0, None, None)?.to_vec::<f32>()?, [1.0, 0.0, f32::MAX, f32::MIN]);
    /// assert_eq!(x.nan_to_num(2.0, 3.0, -3.0)?.to_vec::<f32>()?, [1.0, 2.0, 3.0, -3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of allocating memory.
    pub fn nan_to_num(
        &self,
        nan: f64,
        posinf: impl Into<Option<f64>>,
        neginf: impl Into<Option<f64>>,
    ) -> Result<Tensor<B>> {
        B::engine_nan_to_num(self, nan, posinf.into(), neginf.into())
    }

    pub(crate) fn nan_to_num_body(
        x: &Tensor<B>,
        nan: f64,
        posinf: Option<f64>,
        neginf: Option<f64>,
    ) -> Result<Tensor<B>> {
        if !x.dtype().is_float() {
            return Ok(x.clone());
        }
        let largest = x.dtype().largest();
        // A finite number stays finite in the dtype.
        let nearest = |number: f64| match number.is_finite() {
            true => number.clamp(-largest, largest),
            false => number,
        };
        let plain = x.detach();
        x.masked_fill(&plain.isnan()?, nearest(nan))?
            .masked_fill(&plain.eq(f64::INFINITY)?, posinf.map_or(largest, nearest))?
            .masked_fill(&plain.eq(f64::NEG_INFINITY)?, neginf.map_or(-largest, nearest))
            .map_err(|e| e.named("nan_to_num"))
    }

    /// True where `|self - rhs| ≤ atol + rtol · |rhs|`, and where both are equal, infinities too; NaN is close
    /// to NaN if `equal_nan`. The result is `Bool`. Shapes broadcast. Integers are compared as floats, or
    /// exactly if both tolerances are 0; 16-bit floats in `f32`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (x, y) = (tensor![1.0, 10.0, f32::NAN], tensor![1.001, 10.2, f32::NAN]);
    /// assert_eq!(x.isclose(&y, 0.01, 0.0, false)?.to_vec::<bool>()?, [true, false, false]);
    /// assert_eq!(x.isclose(&y, 0.01, 0.2, true)?.to_vec::<bool>()?, [true, true, true]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::InvalidArgument`] for a tolerance that is
    /// negative or NaN.
    pub fn isclose(
        &self,
        rhs: &Tensor<B>,
        rtol: f64,
        atol: f64,
        equal_nan: bool,
    ) -> Result<Tensor<B>> {
        B::engine_isclose(self, rhs, [rtol, atol], equal_nan)
    }

    pub(crate) fn isclose_body(
        a: &Tensor<B>,
        b: &Tensor<B>,
        [rtol, atol]: [f64; 2],
        equal_nan: bool,
    ) -> Result<Tensor<B>> {
        let op = "isclose";
        for tolerance in [rtol, atol] {
            if tolerance.is_nan() || tolerance < 0.0 {
                let reason = format!("a tolerance must not be negative, got {tolerance}");
                return Err(Error::InvalidArgument { op, reason });
            }
        }
        let same = a.eq(b).map_err(|e| e.named(op))?;
        if !a.dtype().is_float() && rtol == 0.0 && atol == 0.0 {
            return Ok(same);
        }
        let wide = match a.dtype().is_float() {
            true => a.dtype().at_least_f32(),
            false => B::wide(Some(a.data())),
        };
        let (x, y) = (a.detach().to_dtype(wide)?, b.detach().to_dtype(wide)?);
        let distance = x.sub(&y)?.abs()?;
        let allowed = y.abs()?.affine(rtol, atol)?;
        // Beside an infinity both are infinite.
        let near = distance.le(&allowed)?.logical_and(&distance.isfinite()?)?;
        let close = same.logical_or(&near)?;
        match equal_nan {
            true => close.logical_or(&x.isnan()?.logical_and(&y.isnan()?)?),
            false => Ok(close),
        }
    }

    /// True if all elements are close: [`isclose`](Tensor::isclose) of all, where NaN is close to nothing.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 2.0];
    /// assert!(x.allclose(&x.add(1e-6)?, 1e-5, 1e-8)?);
    /// assert!(!x.allclose(&x.add(1e-3)?, 1e-5, 1e-8)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`isclose`](Tensor::isclose).
    pub fn allclose(&self, rhs: &Tensor<B>, rtol: f64, atol: f64) -> Result<bool> {
        let close = self.isclose(rhs, rtol, atol, false).map_err(|e| e.named("allclose"))?;
        close.all(None, false)?.item::<bool>()
    }
}

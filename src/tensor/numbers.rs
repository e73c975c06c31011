//! Element-wise functions of floats that are composed of others.

use std::f64::consts::LN_2;

use smallvec::smallvec;

use crate::autodiff::graph::{Upstream, bytes_of, record, rule_keeping};
use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::BinaryOp;
use crate::shape::broadcast_shape_for;

use super::base::Tensor;
use super::operators::{Input, Operand};

impl<B: Backend> Tensor<B> {
    /// Maximum of two elements; of a number and NaN the number. Shapes broadcast. The gradient of equal elements is split.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![1.0, f32::NAN].fmax(&tensor![3.0, 2.0])?.to_vec::<f32>()?, [3.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`].
    pub fn fmax(&self, rhs: impl Operand<B>) -> Result<Tensor<B>> {
        rhs.with(|rhs| self.number_beside_nan("fmax", BinaryOp::Maximum, rhs))
    }

    /// Minimum of two elements; of a number and NaN the number. As [`fmax`](Tensor::fmax).
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![1.0, f32::NAN].fmin(2.0)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`fmax`](Tensor::fmax).
    pub fn fmin(&self, rhs: impl Operand<B>) -> Result<Tensor<B>> {
        rhs.with(|rhs| self.number_beside_nan("fmin", BinaryOp::Minimum, rhs))
    }

    /// The extremum of two elements, each of which takes the place of the other one where that is NaN.
    fn number_beside_nan(
        &self,
        op: &'static str,
        extremum: BinaryOp,
        rhs: Input<'_, B>,
    ) -> Result<Tensor<B>> {
        let rhs = rhs.into_tensor(op, self)?;
        let both = || match self.dtype().is_float() {
            true => {
                let a = self.isnan()?.select(&rhs, self)?;
                a.binary(extremum, &rhs.isnan()?.select(self, &rhs)?)
            }
            false => self.binary(extremum, &rhs),
        };
        both().map_err(|e| e.named(op))
    }

    /// The magnitude of `self` with the sign of `rhs`, that of -0 and of NaN too. Shapes broadcast. As in PyTorch the derivative
    /// is ±1, 0 where `self` is 0, and 0 for `rhs`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![3.0, -4.0].copysign(-0.0)?.to_vec::<f32>()?, [-3.0, -4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for integers.
    pub fn copysign(&self, rhs: impl Operand<B>) -> Result<Tensor<B>> {
        let op = "copysign";
        let rhs = rhs.with(|rhs| self.float_beside(op, rhs))?;
        let negative = rhs.detach().signbit()?;
        let signed = |x: &Tensor<B>| negative.select(&x.neg()?, x);
        let y = signed(&self.detach().abs()?)?;
        let slope = signed(&self.detach().sign()?)?;
        Ok(record(op, y.into_data(), &[self, &rhs], |_| {
            rule_keeping(
                bytes_of([Some(slope.data())]),
                move |upstream: &Upstream<'_, B>, wanted| {
                    let of_b = wanted[1].then(|| upstream.g.zeros_like()).transpose()?;
                    Ok(smallvec![Some(upstream.g.mul(&slope)?), of_b])
                },
            )
        }))
    }

    /// The operand beside this tensor of floats, of the same dtype and of a shape that broadcasts.
    fn float_beside(&self, op: &'static str, rhs: Input<'_, B>) -> Result<Tensor<B>> {
        self.check_float(op)?;
        let rhs = rhs.into_tensor(op, self)?;
        self.check_dtype(op, rhs.dtype())?;
        broadcast_shape_for(op, self.shape(), rhs.shape())?;
        Ok(rhs)
    }

    /// Heaviside's step: 0 for negative numbers, `at_zero` for 0, 1 for positive ones; 0 for NaN, as in PyTorch (NumPy: NaN).
    /// Shapes broadcast. It has no gradient.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![-1.5, 0.0, 2.0].heaviside(0.5)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`].
    pub fn heaviside(&self, at_zero: impl Operand<B>) -> Result<Tensor<B>> {
        let (op, x) = ("heaviside", self.detach());
        let at_zero = at_zero.with(|value| value.into_tensor(op, &x))?.detach();
        x.check_dtype(op, at_zero.dtype())?;
        let step = x.gt(0)?.to_dtype(x.dtype())?;
        x.eq(0)?.select(&at_zero, &step).map_err(|e| e.named(op))
    }

    /// `self^exponent`, computed in and returned as `F64`; both may be of any dtype. See [`pow`](Tensor::pow).
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![i64; 2, 3].float_power(-1)?.to_vec::<f64>()?, [0.5, 1.0 / 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::Unsupported`] on a backend without `F64`.
    pub fn float_power(&self, exponent: impl Operand<B>) -> Result<Tensor<B>> {
        let wide = self.to_dtype(DType::F64)?;
        let y = exponent.with(|exponent| match exponent.tensor() {
            Some(exponent) => wide.pow(exponent.to_dtype(DType::F64)?),
            None => B::engine_binary(BinaryOp::Pow, Input::Ref(&wide), exponent),
        });
        y.map_err(|e| e.named("float_power"))
    }

    /// `self · 2^exponent`, rounded once even where `2^exponent` is out of range. The exponent is a number, or a tensor of
    /// integers or of the dtype of `self`; shapes broadcast. The derivative with respect to floats that are exponents
    /// is `ln 2` times the result.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let y = tensor![3.0, f32::MIN_POSITIVE / 16.0].ldexp(&tensor![i64; -2, 131])?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.75, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`] for other floats as exponents; [`Error::UnsupportedDType`] for
    /// integers as `self`.
    pub fn ldexp(&self, exponent: impl Operand<B>) -> Result<Tensor<B>> {
        let op = "ldexp";
        self.check_float(op)?;
        let exponent = exponent.with(|exponent| exponent.into_tensor(op, self))?;
        if exponent.dtype().is_float() {
            self.check_dtype(op, exponent.dtype())?;
        }
        broadcast_shape_for(op, self.shape(), exponent.shape())?;
        let (x, wide) = (self.detach().widened()?, self.dtype().at_least_f32());
        // 2^e as three factors. Only the last one, of at least 2^-bits, can make the product subnormal.
        let (limit, bits) = if wide == DType::F64 { (2100.0, 60.0) } else { (280.0, 30.0) };
        let e = exponent.detach().to_dtype(wide)?.clamp(-limit, limit)?;
        let last = e.clamp(-bits, bits)?;
        let rest = e.sub(&last)?;
        let half = rest.mul(0.5)?.trunc()?;
        let y = x.mul(half.exp2()?)?.mul(rest.sub(&half)?.exp2()?)?.mul(last.exp2()?)?;
        let y = y.to_dtype(self.dtype())?;
        Ok(record(op, y.into_data(), &[self, &exponent], |_| {
            let (x, e) = (self.clone(), exponent.clone());
            let bytes = bytes_of([Some(x.data()), Some(e.data())]);
            rule_keeping(bytes, move |upstream: &Upstream<'_, B>, wanted| {
                let of_x = wanted[0].then(|| upstream.g.ldexp(&e)).transpose()?;
                let of_e = || upstream.g.mul(x.ldexp(&e)?)?.mul(LN_2);
                Ok(smallvec![of_x, wanted[1].then(of_e).transpose()?])
            })
        }))
    }

    /// `ln(x / (1 - x))`, the inverse of [`sigmoid`](Tensor::sigmoid); with `eps`, of x clamped to `eps` … `1 - eps`. Accurate
    /// near ½ too. Outside of 0 … 1 it and its derivative are NaN.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![0.5, 1.0].logit(None)?.to_vec::<f32>()?, [0.0, f32::INFINITY]);
    /// assert!(tensor![0.0, 1.0].logit(1e-6)?.isfinite()?.all(None, false)?.item::<bool>()?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`] for integers; [`Error::InvalidArgument`] for an `eps` above ½.
    pub fn logit(&self, eps: impl Into<Option<f64>>) -> Result<Tensor<B>> {
        let op = "logit";
        self.check_float(op)?;
        let tracked = match eps.into() {
            Some(eps) => &self.clamp(eps, 1.0 - eps).map_err(|e| e.named(op))?,
            None => self,
        };
        let x = tracked.detach().widened()?;
        // 2 artanh (2x - 1) near ½, where 2x - 1 is exact.
        let centred = x.affine(2.0, -1.0)?;
        let outside = x.log()?.sub(x.neg()?.log1p()?)?;
        let y = centred.abs()?.le(0.5)?.select(&centred.atanh()?.mul(2.0)?, &outside)?;
        let y = y.to_dtype(self.dtype())?.into_data();
        Ok(record(op, y, &[tracked], |_| {
            let x = tracked.clone();
            rule_keeping(bytes_of([Some(x.data())]), move |upstream: &Upstream<'_, B>, _| {
                let x = x.widened()?;
                let plain = x.detach();
                let outside = plain.lt(0.0)?.logical_or(&plain.gt(1.0)?)?;
                let slope = x.mul(x.affine(-1.0, 1.0)?)?.masked_fill(&outside, f64::NAN)?;
                let g = upstream.g;
                Ok(smallvec![Some(g.widened()?.div(slope)?.to_dtype(g.dtype())?)])
            })
        }))
    }

    /// x where `|x| > lambda`, else 0; NaN gives NaN. The derivative at `±lambda` is 0.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![-2.0, 0.25, 0.5].hardshrink(0.5)?.to_vec::<f32>()?, [-2.0, 0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`] for integers.
    pub fn hardshrink(&self, lambda: f64) -> Result<Tensor<B>> {
        self.check_float("hardshrink")?;
        self.masked_fill(&self.detach().abs()?.le(lambda)?, 0.0)
    }

    /// `x - lambda` above `lambda`, `x + lambda` below `-lambda`, else 0; NaN gives NaN. The derivative at `±lambda` is 0.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![-2.0, 0.25, 1.5].softshrink(0.5)?.to_vec::<f32>()?, [-1.5, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`] for integers; [`Error::InvalidArgument`] for a `lambda` that is negative or NaN.
    pub fn softshrink(&self, lambda: f64) -> Result<Tensor<B>> {
        let op = "softshrink";
        self.check_float(op)?;
        if lambda.is_nan() || lambda < 0.0 {
            let reason = format!("lambda must not be negative, got {lambda}");
            return Err(Error::InvalidArgument { op, reason });
        }
        let x = self.detach();
        let moved = self.sub(x.clamp(-lambda, lambda)?)?;
        moved.masked_fill(&x.abs()?.le(lambda)?, 0.0)
    }

    /// `alpha x + beta`, clamped to 0 … 1, as ONNX's `HardSigmoid`, whose defaults are 0.2 and 0.5. The derivative at the ends
    /// is 0. PyTorch's is [`hardsigmoid`](Tensor::hardsigmoid).
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![-9.0, 1.0].hardsigmoid_with(0.25, 0.5)?.to_vec::<f32>()?, [0.0, 0.75]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`] for integers.
    pub fn hardsigmoid_with(&self, alpha: f64, beta: f64) -> Result<Tensor<B>> {
        self.check_float("hardsigmoid_with")?;
        self.widened()?.affine(alpha, beta)?.clamp(0.0, 1.0)?.to_dtype(self.dtype())
    }
}

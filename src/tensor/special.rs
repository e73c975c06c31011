//! Special functions, of one table: each is computed element by element in `f64`, on the CPU, and recorded with the rule
//! of its row.

use smallvec::smallvec;

use crate::autodiff::graph::{Upstream, bytes_of, record, rule_keeping};
use crate::backend::cpu::{CpuBackend, CpuTensor, map_f64};
use crate::backend::{Backend, IntoBackend};
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::special as f64s;

use super::base::Tensor;

/// `x` on the CPU; another handle to its storage if it is there.
pub(super) fn on_cpu<B: Backend>(x: &Tensor<B>) -> Result<CpuTensor> {
    <B as IntoBackend<CpuBackend>>::convert(x.data())
}

/// A tensor of the CPU where `beside` is.
pub(super) fn from_cpu<B: Backend>(y: &CpuTensor, beside: &Tensor<B>) -> Result<B::Tensor> {
    B::beside(beside.data(), || <CpuBackend as IntoBackend<B>>::convert(y))
}

macro_rules! special {
    ($(
        $(#[$doc:meta])*
        $visibility:vis fn $method:ident($x:ident $(, $n:ident)?) as $name:literal = $value:expr;
        gradient: |$g:ident $(, $y:ident)?| $gradient:expr; $example:literal
    )*) => {
        /// # Special functions
        ///
        /// They are computed in `f64`, which for the other floats is rounded once: `f32` is within 1 ULP. Integers give
        /// [`Error::UnsupportedDType`](crate::Error::UnsupportedDType).
        impl<B: Backend> Tensor<B> {$(
            $(#[$doc])*
            ///
            #[doc = concat!("```\nuse swath::prelude::*;\nassert_eq!(", $example, ");\n# Ok::<(), Error>(())\n```")]
            $visibility fn $method(&self $(, $n: u32)?) -> Result<Tensor<B>> {
                let (op, f) = ($name, move |$x: f64| $value);
                self.check_float(op)?;
                let y = from_cpu(&map_f64(op, &on_cpu(self)?, &f)?, self)?;
                Ok(record(op, y, &[self], |_y| {
                    let $x = self.clone();
                    $(let $y = _y.clone();)?
                    let bytes = bytes_of([Some($x.data()) $(, Some(&$y))?]);
                    rule_keeping(bytes, move |upstream: &Upstream<'_, B>, _| {
                        // In `f32` at least, and rounded once.
                        #[allow(unused_variables, reason = "not every rule names x")]
                        let ($x, $g) = (&$x.widened()?, &upstream.g.widened()?);
                        $(let $y = &upstream.output(&$y).widened()?;)?
                        let gradient: Tensor<B> = $gradient?;
                        Ok(smallvec![Some(gradient.to_dtype(upstream.g.dtype())?)])
                    })
                }))
            }
        )*}
    };
}

special! {
    /// Inverse of [`erf`](Tensor::erf); ±∞ at ±1, NaN beyond. `f64` is within 6 ULP.
    pub fn erfinv(x) as "erfinv" = f64s::erfinv(x);
    gradient: |g, y| y.square()?.exp()?.mul(HALF_ROOT_PI)?.mul(g);
    "tensor![0.0, 1.0, -2.0].erfinv()?.isfinite()?.to_vec::<bool>()?, [true, false, false]"

    /// Logarithm of `|Γ(x)|`; +∞ at 0, -1, -2, … `f64` is within 4 ULP for `x > -¼`; below, where zeros lie
    /// between the poles, within 4 ULP of the larger of 1 and the value at `-x`.
    pub fn lgamma(x) as "lgamma" = f64s::lgamma(x);
    gradient: |g| x.digamma()?.mul(g);
    "tensor![1.0, 2.0, 0.0].lgamma()?.to_vec::<f32>()?, [0.0, 0.0, f32::INFINITY]"

    /// Digamma function, the derivative of [`lgamma`](Tensor::lgamma); NaN at -1, -2, … and ∓∞ at ±0, as in PyTorch. `f64` is
    /// within 4 ULP for positive x; below, within 4 ULP of the larger of 1 and `π cot πx`.
    pub fn digamma(x) as "digamma" = f64s::digamma(x);
    gradient: |g| x.polygamma(1)?.mul(g);
    "tensor![1.0].digamma()?.to_vec::<f32>()?, [-0.5772157]"

    /// Derivative of order `n` of [`digamma`](Tensor::digamma); ±∞ at 0, -1, -2, … Unlike PyTorch's it has a value at all
    /// other negative numbers. `f64` is within 4 ULP for positive x and n up to 4, and within 8 for n up to 20.
    pub fn polygamma(x, n) as "polygamma" = f64s::polygamma(n, x);
    gradient: |g| x.polygamma(n.saturating_add(1))?.mul(g);
    "tensor![1.0].polygamma(1)?.to_vec::<f32>()?, [1.644934]"

    /// Modified Bessel function of the first kind and order 0. `f64` is within 4 ULP.
    pub fn i0(x) as "i0" = f64s::bessel_i(0, x, false);
    gradient: |g| x.i1()?.mul(g);
    "tensor![0.0, 1.0].i0()?.to_vec::<f32>()?, [1.0, 1.2660658]"

    /// `e^-|x|` times [`i0`](Tensor::i0). `f64` is within 4 ULP.
    pub fn i0e(x) as "i0e" = f64s::bessel_i(0, x, true);
    gradient: |g, y| x.i1e()?.sub(x.sign()?.mul(y)?)?.mul(g);
    "tensor![0.0, 1.0].i0e()?.to_vec::<f32>()?, [1.0, 0.4657596]"

    /// Modified Bessel function of the first kind and order 1. `f64` is within 4 ULP.
    pub fn i1(x) as "i1" = f64s::bessel_i(1, x, false);
    gradient: |g| x.i0()?.add(x.bessel_i(2)?)?.mul(0.5)?.mul(g);
    "tensor![0.0, 1.0].i1()?.to_vec::<f32>()?, [0.0, 0.5651591]"

    /// `e^-|x|` times [`i1`](Tensor::i1). `f64` is within 5 ULP.
    pub fn i1e(x) as "i1e" = f64s::bessel_i(1, x, true);
    gradient: |g, y| x.i0e()?.add(x.bessel_ie(2)?)?.mul(0.5)?.sub(x.sign()?.mul(y)?)?.mul(g);
    "tensor![0.0, 1.0].i1e()?.to_vec::<f32>()?, [0.0, 0.20791042]"

    pub(crate) fn bessel_i(x, n) as "i1" = f64s::bessel_i(n, x, false);
    gradient: |g| x.bessel_i(n - 1)?.add(x.bessel_i(n + 1)?)?.mul(0.5)?.mul(g);
    "tensor![1.0].i1()?.dims(), [1]"

    pub(crate) fn bessel_ie(x, n) as "i1e" = f64s::bessel_i(n, x, true);
    gradient: |g, y| {
        x.bessel_ie(n - 1)?.add(x.bessel_ie(n + 1)?)?.mul(0.5)?.sub(x.sign()?.mul(y)?)?.mul(g)
    };
    "tensor![1.0].i1e()?.dims(), [1]"

    /// `sin πx / πx`, and 1 at 0. `f64` is within 2 ULP, at large x too.
    pub fn sinc(x) as "sinc" = f64s::sinc(0, x);
    gradient: |g| x.sinc_derivative(1)?.mul(g);
    "tensor![0.0, 0.5, 1.0].sinc()?.to_vec::<f32>()?, [1.0, 0.63661975, 0.0]"

    pub(crate) fn sinc_derivative(x, n) as "sinc" = f64s::sinc(n, x);
    gradient: |g| x.sinc_derivative(n + 1)?.mul(g);
    "tensor![1.0].sinc()?.dims(), [1]"
}

/// √π / 2.
const HALF_ROOT_PI: f64 = 0.886_226_925_452_758;

impl<B: Backend> Tensor<B> {
    /// Mantissa and exponent: `self = m · 2^e` with `½ ≤ |m| < 1`, e as `I32`; `(self, 0)` for 0, infinities and NaN. The
    /// exponent has no gradient; that of the mantissa is `g / 2^e`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (mantissa, exponent) = tensor![10.0, -0.25].frexp()?;
    /// assert_eq!(mantissa.to_vec::<f32>()?, [0.625, -0.5]);
    /// assert_eq!(exponent.to_vec::<i32>()?, [4, -1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`](crate::Error::UnsupportedDType) for integers.
    pub fn frexp(&self) -> Result<(Tensor<B>, Tensor<B>)> {
        let op = "frexp";
        self.check_float(op)?;
        let host = on_cpu(self)?;
        let part = |f: fn(f64) -> f64| from_cpu(&map_f64(op, &host, &f)?, self);
        let mantissa = part(|x| f64s::frexp(x).0)?;
        let exponent = Tensor::from_data(part(|x| f64s::frexp(x).1)?);
        let kept = exponent.clone();
        let mantissa = record(op, mantissa, &[self], |_| {
            rule_keeping(bytes_of([Some(kept.data())]), move |upstream: &Upstream<'_, B>, _| {
                Ok(smallvec![Some(upstream.g.ldexp(kept.neg()?)?)])
            })
        });
        Ok((mantissa, exponent.to_dtype(DType::I32)?))
    }
}

//! `sincos`.

use smallvec::smallvec;

use crate::autodiff::graph::{SharedRule, Upstream, bytes_of, record, rule_keeping};
use crate::backend::Backend;
use crate::error::Result;
use crate::ops::FusedOp;

use super::kernel;
use crate::tensor::base::Tensor;

/// # Sine and cosine
impl<B: Backend> Tensor<B> {
    /// Sine and cosine of angles in radians, in one pass. The bits are those of
    /// [`sin`](Tensor::sin) and [`cos`](Tensor::cos). The derivative of each uses the other.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![0.0, 1.0, 1e6];
    /// let (sine, cosine) = x.sincos()?;
    /// assert_eq!(sine.to_vec::<f32>()?, x.sin()?.to_vec::<f32>()?);
    /// assert_eq!(cosine.to_vec::<f32>()?, x.cos()?.to_vec::<f32>()?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`](crate::Error::UnsupportedDType) for integers.
    pub fn sincos(&self) -> Result<(Self, Self)> {
        B::engine_sincos(self)
    }

    pub(crate) fn sincos_body(x: &Tensor<B>) -> Result<(Self, Self)> {
        let op = "sincos";
        x.check_float(op)?;
        let Some([sine, cosine]) = kernel::<B, 2>(&FusedOp::SinCos { x: x.data() })? else {
            return Ok((x.sin()?, x.cos()?));
        };
        let y = record(op, sine.clone(), &[x], |_| sincos_rule(x, cosine.clone(), true));
        Ok((y, record(op, cosine, &[x], |_| sincos_rule(x, sine, false))))
    }
}

/// Gradient of the sine, `g cos(x)`, or of the cosine, `-g sin(x)`, from the other result.
fn sincos_rule<B: Backend>(x: &Tensor<B>, other: B::Tensor, of_sine: bool) -> SharedRule<B> {
    let x = x.clone();
    rule_keeping(bytes_of([Some(x.data()), Some(&other)]), move |upstream: &Upstream<'_, B>, _| {
        let other = match (upstream.create_graph(), of_sine) {
            (true, true) => x.cos()?,
            (true, false) => x.sin()?,
            (false, _) => Tensor::from_data(other.clone()),
        };
        let gradient = upstream.g.mul(&other)?;
        Ok(smallvec![Some(if of_sine { gradient } else { gradient.neg()? })])
    })
}

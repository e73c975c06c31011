//! `sincos`.

use crate::autodiff::graph::record;
use crate::autodiff::ops::fused::sincos::{cosine_rule, sine_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::ops::FusedOp;

use super::{check_float, exactly};
use crate::tensor::Tensor;

impl<B: Backend> Tensor<B> {
    /// Sine and cosine of angles in radians, of this tensor's shape, in one pass: the bits of
    /// [`sin`](Tensor::sin) and [`cos`](Tensor::cos). Each keeps the other for its derivative.
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
        let op = "sincos";
        check_float(op, self)?;
        let [sine, cosine] = exactly(op, B::fused(&FusedOp::SinCos, &[Some(self.data())])?)?;
        let y = record(op, sine.clone(), &[self], |_| sine_rule(self, cosine.clone()));
        Ok((y, record(op, cosine, &[self], |_| cosine_rule(self, sine))))
    }
}

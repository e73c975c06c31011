//! `dropout`.

use crate::autodiff::graph::record;
use crate::autodiff::ops::linear;
use crate::backend::{Backend, check_mask};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops::{DropoutMask, FusedOp};
use crate::rng::{Rng, RngState};

use super::kernel;
use crate::tensor::base::Tensor;

/// # Dropout
impl<B: Backend> Tensor<B> {
    /// Zeroes each element with probability `mask.p` and divides the others by `1 - p`. The choice
    /// depends only on the mask's seed and stream and on the element's row-major index: nothing is
    /// stored for the backward pass, and the same mask gives the same zeros again. NaN stays NaN.
    ///
    /// ```
    /// use swath::{ops::DropoutMask, prelude::*};
    /// let x = Tensor::<CpuBackend>::ones(1000, DType::F32)?;
    /// let y = x.dropout(DropoutMask { p: 0.25, seed: 7, stream: 0 })?;
    /// let kept = y.to_vec::<f32>()?.iter().filter(|&&y| y == 1.0 / 0.75).count();
    /// assert!((700..800).contains(&kept));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) unless `0 <= p < 1`;
    /// [`Error::UnsupportedDType`](crate::Error::UnsupportedDType) for integers.
    pub fn dropout(&self, mask: DropoutMask) -> Result<Self> {
        B::engine_dropout(self, mask)
    }

    pub(crate) fn dropout_body(x: &Tensor<B>, mask: DropoutMask) -> Result<Self> {
        x.check_float("dropout")?;
        check_mask("dropout", &mask)?;
        match kernel::<B, 1>(&FusedOp::Dropout { x: x.data(), mask })? {
            // The gradient is the same dropout; the mask is recomputed.
            Some([y]) => {
                Ok(record("dropout", y, &[x], |_| linear(move |g: &Tensor<B>| g.dropout(mask))))
            }
            None => x.dropout_composite(mask),
        }
    }

    /// Defines [`Tensor::dropout`].
    pub(super) fn dropout_composite(&self, mask: DropoutMask) -> Result<Self> {
        self.mul(&dropout_factors(&mask, self)?)
    }
}

/// 0 or `1 / (1 - p)` for each element of a tensor like `x`.
fn dropout_factors<B: Backend>(mask: &DropoutMask, x: &Tensor<B>) -> Result<Tensor<B>> {
    let (seed, stream) = (mask.seed, mask.stream);
    let mut rng = Rng::from_state(RngState { seed, stream, position: 0 });
    let threshold = mask.p * (1u64 << 32) as f64;
    let words: Vec<bool> = (0..x.numel()).map(|_| f64::from(rng.next_u32()) >= threshold).collect();
    let scale = 1.0 / (1.0 - mask.p);
    let factor = |i: usize| Scalar::Float(if words[i] { scale } else { 0.0 });
    let dtype = if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    Tensor::from_scalars("dropout", *x.shape(), dtype, factor)?.to_dtype(x.dtype())
}

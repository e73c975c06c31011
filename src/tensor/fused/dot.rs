//! `dot`.

use crate::autodiff::graph::{SharedRule, record};
use crate::autodiff::ops::bilinear;
use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::FusedOp;

use super::kernel;
use crate::tensor::base::Tensor;

/// # Dot product
impl<B: Backend> Tensor<B> {
    /// Inner product `Σ aᵢ bᵢ` of two vectors `[n]`, as a tensor without axes; 0 for no elements.
    ///
    /// Floats up to 32 bits are multiplied and accumulated in `f64` and rounded once; `f64` uses
    /// fused multiply-adds. The order of addition is that of [`sum`](Tensor::sum). Integers are
    /// multiplied and accumulated as `i64`, wrapping; the result is `I64`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (a, b) = (tensor![1e8, 1.0, -1e8], tensor![1.0, 2.0, 1.0]);
    /// assert_eq!(a.dot(&b)?.item::<f32>()?, 2.0);
    /// assert_eq!(tensor![i64; 3, -4].dot(&tensor![i64; 5, 6])?.item::<i64>()?, -9);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the lengths differ; [`Error::InvalidArgument`] unless both are
    /// vectors; [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for booleans.
    pub fn dot(&self, rhs: &Tensor<B>) -> Result<Self> {
        let op = "dot";
        self.check_dtype(op, rhs.dtype())?;
        if self.rank() != 1 || rhs.rank() != 1 {
            let reason =
                format!("expected two vectors, got shapes {} and {}", self.shape(), rhs.shape());
            return Err(Error::InvalidArgument { op, reason });
        }
        if self.shape() != rhs.shape() {
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *rhs.shape() });
        }
        match self.dtype() {
            dtype if dtype.is_float() => self.dot_rows(rhs),
            dtype @ DType::Bool => Err(Error::UnsupportedDType { op, dtype, shape: *self.shape() }),
            _ => self.dot_of_integers(rhs).map_err(|e| e.named(op)),
        }
    }

    /// Inner product of integers, in pieces that bound the memory for `i64` copies. At half the
    /// length a conversion would run on one thread, since regions of less than 15 µs are not
    /// shared.
    fn dot_of_integers(&self, rhs: &Tensor<B>) -> Result<Self> {
        const PIECE: usize = 1 << 17;
        let mut sum = Tensor::zeros((), DType::I64)?;
        for start in (0..self.numel()).step_by(PIECE) {
            let len = PIECE.min(self.numel() - start);
            let wide = |x: &Tensor<B>| x.narrow(0, start, len)?.to_dtype(DType::I64);
            sum = sum.add(&wide(self)?.mul(&wide(rhs)?)?.sum(None, false)?)?;
        }
        Ok(sum)
    }

    /// Inner product of each row, `[…, n] × […, n] → […]`, for floats or `I64` of one shape and dtype.
    pub(crate) fn dot_rows(&self, rhs: &Tensor<B>) -> Result<Self> {
        B::engine_dot(self, rhs)
    }

    pub(crate) fn dot_body(x: &Tensor<B>, rhs: &Tensor<B>) -> Result<Self> {
        let is_float = x.dtype().is_float();
        let fused = FusedOp::Dot { a: x.data(), b: rhs.data() };
        match if is_float { kernel::<B, 1>(&fused)? } else { None } {
            Some([y]) => Ok(record("dot", y, &[x, rhs], |_| dot_rule(x, rhs))),
            None => {
                let wide = if is_float { B::wide(Some(x.data())) } else { x.dtype() };
                let [a, b] = [x, rhs].map(|factor| factor.to_dtype(wide));
                a?.mul(&b?)?.sum(Some(&[x.rank() - 1]), false)?.to_dtype(x.dtype())
            }
        }
    }
}

/// Gradients `g b` and `g a`, row by row.
fn dot_rule<B: Backend>(a: &Tensor<B>, b: &Tensor<B>) -> SharedRule<B> {
    bilinear([a, b], |upstream, _, other| upstream.g.unsqueeze(-1)?.mul(other))
}

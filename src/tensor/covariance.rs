//! Covariances and correlations.

use crate::backend::Backend;
use crate::error::{Error, Result};

use super::base::Tensor;

/// # Covariance
impl<B: Backend> Tensor<B> {
    /// Covariances of variables, the rows of floats `[r, n]`, from n observations: `Σ w (x - mean) (y - mean) / k` as
    /// `[r, r]`, or without axes for one variable `[n]`. PyTorch's `cov`.
    ///
    /// The weight w of an observation is the product of `fweights`, how often it occurs (integers `[n]`), and `aweights`,
    /// how much it counts (`[n]`, of the variables' dtype), 1 by default. The divisor k is `Σ w - ddof`, with `aweights`
    /// `Σ w - ddof Σ w aweights / Σ w`; 0 if that is negative.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]];
    /// assert_eq!(x.cov(1, None, None)?.to_vec::<f32>()?, [1.0, -1.0, -1.0, 1.0]);
    /// let twice = x.cov(0, Some(&tensor![i64; 1, 2, 1]), None)?;
    /// assert_eq!(twice.to_vec::<f32>()?, [0.5, -0.5, -0.5, 0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] for more than two axes; [`Error::ShapeMismatch`] or [`Error::DTypeMismatch`] if weights do
    /// not fit; [`Error::InvalidArgument`] if one is negative or all are 0; [`Error::UnsupportedDType`] for integers.
    pub fn cov(
        &self,
        ddof: usize,
        fweights: Option<&Tensor<B>>,
        aweights: Option<&Tensor<B>>,
    ) -> Result<Self> {
        let op = "cov";
        self.check_float(op)?;
        let (rows, count) = match *self.dims() {
            [] => (1, 1),
            [count] => (1, count),
            [rows, count] => (rows, count),
            _ => {
                let reason = "expected variables with one axis, or two";
                return Err(Error::InvalidShape { op, shape: *self.shape(), reason });
            }
        };
        let x = self.widened()?.reshape((rows, count))?;
        let refused = |cause| {
            let reason = format!("{cause}, for {count} observations");
            Error::InvalidArgument { op, reason }
        };
        let checked = |weights: Tensor<B>| {
            self.check_beside(op, &weights)?;
            if weights.dims() != [count] {
                let (lhs, rhs) = (*self.shape(), *weights.shape());
                return Err(Error::ShapeMismatch { op, lhs, rhs });
            }
            match weights.lt(0)?.any(None, false)?.item::<bool>()? {
                true => Err(refused("weights must not be negative")),
                false => weights.to_dtype(x.dtype()),
            }
        };
        let fweights = fweights.map(|w| checked(w.as_index(op)?)).transpose()?;
        let aweights = aweights.map(|w| {
            self.check_dtype(op, w.dtype())?;
            checked(w.clone())
        });
        let aweights = aweights.transpose()?;
        let weights = match (&fweights, &aweights) {
            (Some(f), Some(a)) => Some(f.mul(a)?),
            (f, a) => f.as_ref().or(a.as_ref()).cloned(),
        };
        let weighted = |x: &Tensor<B>| weights.as_ref().map_or(Ok(x.clone()), |w| x.mul(w));
        let total = match &weights {
            Some(weights) => weights.sum_all()?,
            None => Tensor::full_as((), count, x.dtype())?,
        };
        if weights.is_some() && total.eq(0.0)?.item::<bool>()? {
            return Err(refused("the sum of the weights is 0"));
        }
        let lost = match (&weights, &aweights) {
            (Some(w), Some(a)) => w.mul(a)?.sum_all()?.div(&total)?.mul(ddof)?,
            _ => total.full_like(ddof)?,
        };
        let freedom = total.sub(&lost)?.clamp_min(0.0)?;
        let distances = x.sub(weighted(&x)?.sum_axis(1, true)?.div(&total)?)?;
        let sums = distances.matmul(&weighted(&distances)?.t()?)?;
        let y = sums.div(&freedom)?.to_dtype(self.dtype())?;
        if rows == 1 { y.reshape(()) } else { Ok(y) }
    }

    /// Pearson's correlations of variables, the rows of floats `[r, n]`: [`covariances`](Tensor::cov) divided by both
    /// standard deviations, clamped to `[-1, 1]`, as `[r, r]`; without axes for one variable `[n]`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]];
    /// assert_eq!(x.corrcoef()?.to_vec::<f32>()?, [1.0, -1.0, -1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] for more than two axes; [`Error::UnsupportedDType`] for integers.
    pub fn corrcoef(&self) -> Result<Self> {
        let op = "corrcoef";
        let correlations = || {
            self.check_float(op)?;
            let c = self.widened()?.cov(1, None, None)?;
            let y = match c.rank() {
                0 => c.div(&c)?,
                _ => {
                    let deviation = c.diagonal(0, 1)?.sqrt()?;
                    c.div(deviation.unsqueeze(1)?)?.div(&deviation)?.clamp(-1.0, 1.0)?
                }
            };
            y.to_dtype(self.dtype())
        };
        correlations().map_err(|error| error.named(op))
    }
}

//! Powers: of matrices, of a base, of the elements of vectors.

use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::shape::Shape;

use super::base::Tensor;
use super::elementwise::check_scalar;

/// # Powers
///
/// # Errors
/// [`Error::InvalidShape`] for matrices that are not square and for a scalar instead of vectors;
/// [`Error::InvalidArgument`] for a negative power of a matrix, for bounds that are not finite, and for a value that an
/// integer dtype does not represent; [`Error::UnsupportedDType`] for booleans; [`Error::Overflow`].
impl<B: Backend> Tensor<B> {
    /// The n-th power of square matrices `[…, k, k]`, by repeated squaring; the identity for 0. Powers of integers are
    /// `I64` and wrap; 16-bit floats are multiplied in `f32` and rounded once.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let fibonacci = tensor![i64; [1, 1], [1, 0]].matrix_power(30)?;
    /// assert_eq!(fibonacci.to_vec::<i64>()?, [1346269, 832040, 832040, 514229]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn matrix_power(&self, n: i64) -> Result<Self> {
        let op = "matrix_power";
        let mut base = self.summable(op)?.widened()?;
        let (shape, dtype) = (self.shape(), self.dtype().accumulated());
        let size = match *self.dims() {
            [.., rows, columns] if rows == columns => rows,
            _ => {
                let reason = "expected square matrices";
                return Err(Error::InvalidShape { op, shape: *shape, reason });
            }
        };
        if n < 0 {
            let reason = format!(
                "the exponent must be at least 0, got {n} for shape {shape}; faer inverts matrices (feature `faer`)"
            );
            return Err(Error::InvalidArgument { op, reason });
        }
        let mut product = || {
            let (mut power, mut left): (Option<Self>, _) = (None, n);
            while left > 0 {
                if left % 2 == 1 {
                    power = Some(match power {
                        Some(power) => power.matmul(&base)?,
                        None => base.clone(),
                    });
                }
                left /= 2;
                if left > 0 {
                    base = base.matmul(&base)?;
                }
            }
            match power {
                Some(power) => power.to_dtype(dtype),
                None => Tensor::eye(size, dtype)?.broadcast_to(*shape),
            }
        };
        product().map_err(|error: Error| error.named(op))
    }

    /// Creates the vector of `count` powers of `base` with evenly spaced exponents from `start` to `end`, both included,
    /// with dtype `F32`.
    ///
    /// A power with an integer exponent that an `f64` represents is exact, before it is rounded to the dtype.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// assert_eq!(Tensor::logspace(-1.0, 2.0, 4, 10.0)?.to_vec::<f32>()?, [0.1, 1.0, 10.0, 100.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn logspace(start: f64, end: f64, count: usize, base: f64) -> Result<Self> {
        Tensor::logspace_as(start, end, count, base, DType::F32)
    }

    /// Like [`logspace`](Tensor::logspace), with the given dtype.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let x = Tensor::logspace_as(0.0, 18.0, 3, 10.0, DType::I64)?;
    /// assert_eq!(x.to_vec::<i64>()?, [1, 1_000_000_000, 1_000_000_000_000_000_000]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn logspace_as(
        start: f64,
        end: f64,
        count: usize,
        base: f64,
        dtype: DType,
    ) -> Result<Self> {
        let op = "logspace";
        let shape = Shape::from(count);
        shape.validate(op)?;
        let span = end - start;
        if !(span.is_finite() && base.is_finite()) {
            let reason = format!("bounds and base must be finite, got {start}, {end}, {base}");
            return Err(Error::InvalidArgument { op, reason });
        }
        let last = count.saturating_sub(1);
        // Integers stay exact: only the quotient is rounded.
        let exponent = |i: usize| match i == last && i > 0 {
            true => end,
            false => start + span * i as f64 / last.max(1) as f64,
        };
        let float = |i| Scalar::Float(exponent(i));
        let exponents = Tensor::<CpuBackend>::from_scalars(op, shape, DType::F64, float)?;
        let powers = Tensor::<CpuBackend>::full((), base)?.pow(&exponents)?.to_vec::<f64>()?;
        let value = |i: usize| exact_power(base, exponent(i)).unwrap_or(Scalar::Float(powers[i]));
        (0..count).try_for_each(|i| check_scalar(op, value(i), dtype, &shape))?;
        Tensor::from_scalars(op, shape, dtype, value)
    }

    /// Powers of the elements of vectors `[…, n]`, from 0 to `columns - 1`, as the rows of matrices `[…, n, columns]`, or in
    /// reverse order unless `increasing`. `None` makes square matrices. Powers of integers are `I64`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![2.0, 3.0];
    /// assert_eq!(x.vander(3, true)?.to_vec::<f32>()?, [1.0, 2.0, 4.0, 1.0, 3.0, 9.0]);
    /// assert_eq!(x.vander(None, false)?.to_vec::<f32>()?, [2.0, 1.0, 3.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn vander(&self, columns: impl Into<Option<usize>>, increasing: bool) -> Result<Self> {
        let op = "vander";
        let Some(&n) = self.dims().last() else {
            let reason = "expected at least one axis";
            return Err(Error::InvalidShape { op, shape: *self.shape(), reason });
        };
        let columns = columns.into().unwrap_or(n);
        let powers = || {
            let x = self.summable(op)?.widened()?.unsqueeze(-1)?;
            let shape = x.shape().with_axis(self.rank(), Some(columns.saturating_sub(1)));
            let factors = Tensor::cat(&[&x.ones_like()?, &x.broadcast_to(shape)?], -1)?;
            let powers = factors.cumprod(-1)?.narrow(-1, 0, columns)?;
            let powers = if increasing { powers } else { powers.flip(-1)? };
            powers.to_dtype(self.dtype().accumulated())
        };
        powers().map_err(|error: Error| error.named(op))
    }
}

/// The power of an integer to an integer exponent, if 128 bits, or its inverse if an `f64`, represent it.
fn exact_power(base: f64, exponent: f64) -> Option<Scalar> {
    if base.fract() != 0.0 || exponent.fract() != 0.0 || base.abs().max(exponent.abs()) > 1e9 {
        return None;
    }
    let power = (base as i128).checked_pow(exponent.abs() as u32)?;
    let is_integer = (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&power);
    match exponent < 0.0 {
        false if is_integer => Some(Scalar::from_i128(power)),
        false => Some(Scalar::Float(power as f64)),
        true if power as f64 as i128 == power => Some(Scalar::Float(1.0 / power as f64)),
        true => None,
    }
}

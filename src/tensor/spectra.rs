//! Fourier transforms (feature `fft`), computed by the crates rustfft and realfft.
//!
//! Complex numbers are a last axis of 2, the real and the imaginary part, as of PyTorch's `view_as_real`. With n points
//! along an axis and a factor s, which [`FftNorm`] chooses:
//!
//! ```text
//! fft      y[k] = s Σ x[j] e^(-2πi jk/n)        ifft     the same with e^(+2πi jk/n)
//! rfft     the first n/2 + 1 of fft of n real numbers; the others are their conjugates
//! irfft    ifft of a spectrum that is completed by conjugates, whose result is real
//! ```
//!
//! Each is one recorded op, whose adjoint is another one of them, with the same factor:
//!
//! ```text
//! fft      ifft                                 ifft     fft
//! rfft     irfft, in which all numbers count twice except the first and, if n is even, the last: w g with w = ½ for those
//! irfft    rfft, and 2 g for those
//! ```

mod stft;
mod window;

use smallvec::SmallVec;

pub use stft::StftOptions;
pub use window::Window;

use crate::autodiff::graph::record;
use crate::autodiff::ops::linear;
use crate::backend::Backend;
use crate::backend::cpu::fft::{Transform, transform};
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::options::setters;
use crate::shape::{Axes, Shape};

use super::base::Tensor;
use super::pad::PadMode;
use super::special::{from_cpu, on_cpu};

/// Which transform of n points has which factor. `Forward` names the one that is divided by n, as in NumPy and PyTorch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FftNorm {
    /// 1/n of the inverse transforms.
    #[default]
    Backward,
    /// 1/√n of both, which keeps Σ |x|².
    Ortho,
    /// 1/n of the forward transforms.
    Forward,
}

/// What Fourier transforms are computed along, and of how many points. An axis or several alone are options, too.
///
/// ```
/// use swath::{FftNorm, FftOptions, prelude::*};
/// let x = Tensor::<CpuBackend>::ones((3, 4), DType::F32)?;
/// assert_eq!(x.rfft(-1)?.dims(), [3, 3, 2]);
/// assert_eq!(x.rfft([0, 1])?.dims(), [3, 3, 2]);
/// let options = FftOptions::new(-1).n(16).norm(FftNorm::Ortho);
/// assert_eq!(x.rfft(options)?.dims(), [3, 9, 2]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FftOptions {
    /// The axes, counted among those without the last one of 2.
    pub axes: Axes,
    /// The number of points along each axis, to which it is cut or padded with zeros at its end. `None`: its extent, and
    /// for the last axis of [`irfft`](Tensor::irfft) twice the extent minus 2.
    pub n: Option<Shape>,
    /// The factor.
    pub norm: FftNorm,
}

impl FftOptions {
    /// Transforms along an axis or several.
    pub fn new(axes: impl Into<Axes>) -> Self {
        FftOptions { axes: axes.into(), n: None, norm: FftNorm::Backward }
    }

    /// Sets `n`: a number for each axis.
    #[must_use]
    pub fn n(mut self, n: impl Into<Shape>) -> Self {
        self.n = Some(n.into());
        self
    }
}

setters! {
    [] FftOptions {
        norm: FftNorm;
    }
}

impl<A: Into<Axes>> From<A> for FftOptions {
    fn from(axes: A) -> Self {
        FftOptions::new(axes)
    }
}

/// The shape of complex numbers, without the last axis of 2.
fn complex_shape<B: Backend>(op: &'static str, x: &Tensor<B>) -> Result<Shape> {
    match x.dims() {
        [axes @ .., 2] => Ok(Shape::new(axes)),
        _ => {
            let reason = "expected a last axis of 2, the real and the imaginary part";
            Err(Error::InvalidShape { op, shape: *x.shape(), reason })
        }
    }
}

/// # Fourier transforms
///
/// With the feature `fft`. Complex numbers are a last axis of 2, the real and the imaginary part, as of PyTorch's
/// `view_as_real`; axes are counted without it, so that −1 is the last of the others. The argument is an axis, or several
/// for NumPy's `fft2` and `fftn`, or [`FftOptions`] with the numbers of points and the factor. Results have the dtype of
/// the operand: `F32` and `F64` are computed in their own precision, 16-bit floats in `F32` and rounded once.
///
/// The crate rustfft has kernels for several instruction sets, of which it chooses one when the program runs, and
/// factors by the system's sine. So spectra alone may differ by rounding between machines, and `SWATH_ISA` does not change
/// them. On one machine they are the same for any number of threads.
///
/// # Errors
/// [`Error::InvalidShape`] for complex numbers without a last axis of 2; [`Error::AxisOutOfRange`];
/// [`Error::RepeatedAxis`]; [`Error::InvalidArgument`] for 0 points, unless there are as many numbers of points as axes,
/// and without an axis for the real transforms; [`Error::UnsupportedDType`] for integers; [`Error::TooManyAxes`].
impl<B: Backend> Tensor<B> {
    /// Discrete Fourier transform of complex numbers `[…, 2]`: `y[k] = Σ x[j] e^(-2πi jk/n)`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// // 1, i, -1, -i: e^(2πi j/4).
    /// let x = tensor![[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]];
    /// let y = x.fft(-1)?;
    /// assert!(y.allclose(&tensor![[0.0, 0.0], [4.0, 0.0], [0.0, 0.0], [0.0, 0.0]], 0.0, 1e-6)?);
    /// assert!(y.ifft(-1)?.allclose(&x, 0.0, 1e-6)?);
    /// // Real numbers: all of the spectrum, of which rfft computes half.
    /// let x = tensor![1.0, 2.0, 4.0];
    /// let y = Tensor::stack(&[&x, &x.zeros_like()?], -1)?.fft(-1)?;
    /// assert!(y.narrow(0, 0, 2)?.allclose(&x.rfft(-1)?, 0.0, 1e-6)?);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn fft(&self, options: impl Into<FftOptions>) -> Result<Self> {
        self.spectrum(Transform::Forward, options.into())
    }

    /// Inverse of [`fft`](Tensor::fft): `y[j] = 1/n Σ x[k] e^(2πi jk/n)`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let y = tensor![[4.0, 0.0], [0.0, 0.0]].ifft(0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 0.0, 2.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn ifft(&self, options: impl Into<FftOptions>) -> Result<Self> {
        self.spectrum(Transform::Inverse, options.into())
    }

    /// Discrete Fourier transform of real numbers: the n/2 + 1 first of the spectrum, `[…, n/2 + 1, 2]`. Along several
    /// axes the last one named is halved.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 2.0, 4.0, 1.0];
    /// let y = x.rfft(-1)?;
    /// assert_eq!(y.dims(), [3, 2]);
    /// assert_eq!(y.to_vec::<f32>()?, [8.0, 0.0, -3.0, -1.0, 2.0, 0.0]);
    /// let power = y.square()?.sum_axis(-1, false)?;
    /// assert_eq!(power.to_vec::<f32>()?, [64.0, 10.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn rfft(&self, options: impl Into<FftOptions>) -> Result<Self> {
        self.spectrum(Transform::RealForward, options.into())
    }

    /// Inverse of [`rfft`](Tensor::rfft): n real numbers from `[…, n/2 + 1, 2]`, where n is even unless the options name
    /// it. The imaginary parts of the first number and, if n is even, of the last have no part in the result.
    ///
    /// ```
    /// use swath::{FftOptions, prelude::*};
    /// let x = tensor![1.0, 2.0, 4.0];
    /// let y = x.rfft(-1)?.irfft(FftOptions::new(-1).n(3))?;
    /// assert!(y.allclose(&x, 0.0, 1e-6)?);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn irfft(&self, options: impl Into<FftOptions>) -> Result<Self> {
        self.spectrum(Transform::RealInverse, options.into())
    }

    fn spectrum(&self, kind: Transform, FftOptions { axes, n, norm }: FftOptions) -> Result<Self> {
        let op = kind.name();
        self.check_float(op)?;
        let (shape, inner) = match kind {
            Transform::RealForward => (*self.shape(), Transform::Forward),
            Transform::RealInverse => (complex_shape(op, self)?, Transform::Inverse),
            Transform::Forward | Transform::Inverse => (complex_shape(op, self)?, kind),
        };
        let axes = axes.resolve(op, &shape)?;
        let invalid = |expected: String| {
            let reason = format!("expected {expected}, of shape {}", self.shape());
            Err(Error::InvalidArgument { op, reason })
        };
        if let Some(n) = n.filter(|n| n.ndim() != axes.len()) {
            return invalid(format!("{} numbers of points, got {n}", axes.len()));
        }
        let mut steps: SmallVec<[_; 4]> = (0..axes.len()).map(|i| (inner, i)).collect();
        match steps.last_mut() {
            Some(last) => last.0 = kind,
            None if kind != inner => return invalid("at least one axis, got none".to_owned()),
            None => {}
        }
        if kind == Transform::RealForward {
            steps.reverse();
        }
        let mut y = self.widened()?;
        for (kind, i) in steps {
            let extent = shape.dim(axes[i]);
            let n = n.map_or_else(
                || if kind == Transform::RealInverse { 2 * extent.max(1) - 2 } else { extent },
                |n| n.dim(i),
            );
            if n == 0 {
                return invalid(format!("at least 1 point along axis {}, got 0", axes[i]));
            }
            y = y.transformed_along(axes[i], kind, n, norm).map_err(|error| error.named(op))?;
        }
        y.to_dtype(self.dtype())
    }

    /// Transforms along an axis, which is cut or padded first.
    fn transformed_along(
        &self,
        axis: usize,
        kind: Transform,
        n: usize,
        norm: FftNorm,
    ) -> Result<Self> {
        let is_forward = matches!(kind, Transform::Forward | Transform::RealForward);
        let scale = match norm {
            FftNorm::Ortho => 1.0 / (n as f64).sqrt(),
            _ if is_forward == (norm == FftNorm::Forward) => 1.0 / n as f64,
            _ => 1.0,
        };
        let (last, beside) = (-1isize, -2);
        let (from, to, count) = match kind {
            Transform::Forward | Transform::Inverse => (beside, beside, n),
            Transform::RealForward => (last, beside, n),
            Transform::RealInverse => (beside, last, n / 2 + 1),
        };
        let (x, extent) = (self.movedim(axis, from)?, self.dims()[axis]);
        let at = x.rank() - from.unsigned_abs();
        let x = match extent >= count {
            true => x.narrow(at, 0, count)?,
            false => x.extended(at, [0, count - extent], PadMode::Constant(0.0))?,
        };
        x.transformed(kind, n, scale)?.movedim(to, axis)
    }

    /// Transforms the rows along the last axis of real or complex numbers, on the CPU, and records it.
    fn transformed(&self, kind: Transform, n: usize, scale: f64) -> Result<Self> {
        let (op, shape, last) = (kind.name(), *self.shape(), self.rank() - 1);
        let shape = match kind {
            Transform::Forward | Transform::Inverse => shape,
            Transform::RealForward => {
                shape.with_axis(last, Some(n / 2 + 1)).insert(op, last + 1, 2)?
            }
            Transform::RealInverse => shape.with_axis(last, None).with_axis(last - 1, Some(n)),
        };
        shape.validate(op)?;
        let y = from_cpu(&transform(kind, n, scale, &on_cpu(self)?, &shape)?, self)?;
        Ok(record(op, y, &[self], |_| {
            linear(move |g: &Tensor<B>| match kind {
                Transform::Forward => g.transformed(Transform::Inverse, n, scale),
                Transform::Inverse => g.transformed(Transform::Forward, n, scale),
                Transform::RealForward => {
                    g.weighted(n, 0.5)?.transformed(Transform::RealInverse, n, scale)
                }
                Transform::RealInverse => {
                    g.transformed(Transform::RealForward, n, scale)?.weighted(n, 2.0)
                }
            })
        }))
    }

    /// Multiplies those of the n/2 + 1 complex numbers by a weight that stand for two of n.
    fn weighted(&self, n: usize, weight: f64) -> Result<Self> {
        let is_alone = |k| k == 0 || 2 * k == n;
        let weight = |k| Scalar::Float(if is_alone(k) { 1.0 } else { weight });
        let weights = self.along("fft", self.rank() - 2, n / 2 + 1, self.dtype(), weight)?;
        self.mul(&weights)
    }
}

//! Windows, frequencies, and their order.

use smallvec::SmallVec;

use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::special::bessel_i;
use crate::shape::{Axes, Shape};
use crate::tensor::base::Tensor;

/// A function on 0 to 1 that is largest in the middle, by c = cos 2πt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Window {
    /// `0.5 - 0.5 c`.
    Hann,
    /// `0.54 - 0.46 c`.
    Hamming,
    /// `0.42 - 0.5 c + 0.08 cos 4πt`.
    Blackman,
    /// `I₀(beta √(1 - (2t - 1)²)) / I₀(beta)`, with the modified Bessel function of order 0 (Kaiser, 1966).
    Kaiser {
        /// Width of the main lobe, in units of 1/π.
        beta: f64,
    },
}

/// Largest beta of a Kaiser window: beyond, I₀ leaves the range of `f64`.
const MAX_BETA: f64 = 700.0;

macro_rules! windows {
    ($($(#[$doc:meta])* $method:ident($($beta:ident: f64)?) = $window:expr;)*) => {$(
        $(#[$doc])*
        pub fn $method(n: usize, periodic: bool $(, $beta: f64)?) -> Result<Self> {
            Tensor::window_named(stringify!($method), $window, n, periodic, DType::F32)
        }
    )*};
}

/// # Windows and frequencies
///
/// With the feature `fft`. A window of n elements is a function at `i / (n - 1)`, and so symmetric; a periodic one is
/// that of n + 1 without the last, for [`stft`](Tensor::stft). A window of one element is 1. Computed in `f64` and
/// rounded once; dtype `F32` unless given.
impl<B: Backend> Tensor<B> {
    /// A window in the given dtype.
    ///
    /// ```
    /// use swath::{Window, cpu::prelude::*};
    /// let window = Tensor::window(Window::Hann, 4, true, DType::F64)?;
    /// assert!(window.allclose(&tensor![f64; 0.0, 0.5, 1.0, 0.5], 1e-15, 0.0)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`] for integers; [`Error::InvalidArgument`] for a beta that is not finite or beyond
    /// ±700; [`Error::Overflow`].
    pub fn window(window: Window, n: usize, periodic: bool, dtype: DType) -> Result<Self> {
        Tensor::window_named("window", window, n, periodic, dtype)
    }

    windows! {
        /// [`Window::Hann`]: PyTorch's `hann_window`; symmetric, NumPy's `hanning`.
        ///
        /// ```
        /// use swath::cpu::prelude::*;
        /// assert_eq!(Tensor::hann_window(3, false)?.to_vec::<f32>()?, [0.0, 1.0, 0.0]);
        /// # Ok::<(), Error>(())
        /// ```
        hann_window() = Window::Hann;
        /// [`Window::Hamming`].
        ///
        /// ```
        /// use swath::cpu::prelude::*;
        /// assert_eq!(Tensor::hamming_window(3, false)?.to_vec::<f32>()?, [0.08, 1.0, 0.08]);
        /// # Ok::<(), Error>(())
        /// ```
        hamming_window() = Window::Hamming;
        /// [`Window::Blackman`].
        ///
        /// ```
        /// use swath::cpu::prelude::*;
        /// assert_eq!(Tensor::blackman_window(3, false)?.to_vec::<f32>()?, [0.0, 1.0, 0.0]);
        /// # Ok::<(), Error>(())
        /// ```
        blackman_window() = Window::Blackman;
        /// [`Window::Kaiser`]. Its beta is 12 in PyTorch unless given.
        ///
        /// ```
        /// use swath::cpu::prelude::*;
        /// let window = Tensor::kaiser_window(3, false, 2.0)?;
        /// assert_eq!(window.to_vec::<f32>()?, [0.43867627, 1.0, 0.43867627]); // 1 / I₀(2)
        /// # Ok::<(), Error>(())
        /// ```
        kaiser_window(beta: f64) = Window::Kaiser { beta };
    }

    fn window_named(
        op: &'static str,
        window: Window,
        n: usize,
        periodic: bool,
        dtype: DType,
    ) -> Result<Self> {
        let scale = match window {
            Window::Kaiser { beta } if beta.abs() <= MAX_BETA => bessel_i(0, beta, false),
            Window::Kaiser { beta } => {
                let reason = format!("expected a beta from -{MAX_BETA} to {MAX_BETA}, got {beta}");
                return Err(Error::InvalidArgument { op, reason });
            }
            _ => 1.0,
        };
        // The second half has the values of the first.
        let last = if periodic { n } else { n.saturating_sub(1) };
        let value = |i: usize| {
            let t = i.min(last - i) as f64 / last.max(1) as f64;
            // The kernels' cosine has the same bits on every machine, unlike the system's.
            let mut cosine = [0.0];
            swath_kernels::cos(&[std::f64::consts::TAU * t], &mut cosine[..]);
            let c = cosine[0];
            match window {
                _ if n == 1 => 1.0,
                Window::Hann => 0.5 - 0.5 * c,
                Window::Hamming => 0.54 - 0.46 * c,
                // The same, and 0 where c is 1.
                Window::Blackman => (1.0 - c) * (0.34 - 0.16 * c),
                Window::Kaiser { beta } => {
                    bessel_i(0, beta * (4.0 * t * (1.0 - t)).sqrt(), false) / scale
                }
            }
        };
        floats(op, n, dtype, value)
    }

    /// The frequencies of the n numbers of [`fft`](Tensor::fft) along an axis, for points at distance d:
    /// `0, 1, …, -2, -1` divided by n d.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let f = Tensor::fftfreq(4, 0.5)?;
    /// assert_eq!(f.to_vec::<f32>()?, [0.0, 0.5, -1.0, -0.5]);
    /// assert_eq!(f.fftshift(0)?.to_vec::<f32>()?, [-1.0, -0.5, 0.0, 0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn fftfreq(n: usize, d: f64) -> Result<Self> {
        Tensor::fftfreq_as(n, d, DType::F32)
    }

    /// Like [`fftfreq`](Tensor::fftfreq), with the given dtype.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// assert_eq!(Tensor::fftfreq_as(3, 1.0, DType::F64)?.to_vec::<f64>()?, [0.0, 1.0 / 3.0, -1.0 / 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`] for integers; [`Error::Overflow`].
    pub fn fftfreq_as(n: usize, d: f64, dtype: DType) -> Result<Self> {
        let step = |i: usize| if i < n.div_ceil(2) { i as f64 } else { -((n - i) as f64) };
        floats("fftfreq", n, dtype, |i| step(i) / (n as f64 * d))
    }

    /// The frequencies of the n/2 + 1 numbers of [`rfft`](Tensor::rfft): `0, 1, …, n/2` divided by n d.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// assert_eq!(Tensor::rfftfreq(4, 0.5)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn rfftfreq(n: usize, d: f64) -> Result<Self> {
        Tensor::rfftfreq_as(n, d, DType::F32)
    }

    /// Like [`rfftfreq`](Tensor::rfftfreq), with the given dtype.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// assert_eq!(Tensor::rfftfreq_as(3, 1.0, DType::F64)?.to_vec::<f64>()?, [0.0, 1.0 / 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`] for integers; [`Error::Overflow`].
    pub fn rfftfreq_as(n: usize, d: f64, dtype: DType) -> Result<Self> {
        floats("rfftfreq", n / 2 + 1, dtype, |i| i as f64 / (n as f64 * d))
    }

    /// Moves the numbers of negative frequencies along axes in front of the others. These are the axes of the tensor:
    /// the last one of a complex spectrum is that of real and imaginary part. Any dtype.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let f = tensor![0.0, 1.0, 2.0, -2.0, -1.0].fftshift(0)?;
    /// assert_eq!(f.to_vec::<f32>()?, [-2.0, -1.0, 0.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`]; [`Error::RepeatedAxis`].
    pub fn fftshift(&self, axes: impl Into<Axes>) -> Result<Self> {
        self.shifted("fftshift", axes.into(), |extent| extent / 2)
    }

    /// Undoes [`fftshift`](Tensor::fftshift).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 2.0, 3.0];
    /// assert_eq!(x.fftshift(0)?.to_vec::<f32>()?, [3.0, 1.0, 2.0]);
    /// assert_eq!(x.fftshift(0)?.ifftshift(0)?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`fftshift`](Tensor::fftshift).
    pub fn ifftshift(&self, axes: impl Into<Axes>) -> Result<Self> {
        self.shifted("ifftshift", axes.into(), |extent| extent.div_ceil(2))
    }

    fn shifted(&self, op: &'static str, axes: Axes, by: fn(usize) -> usize) -> Result<Self> {
        let axes = axes.resolve(op, self.shape())?.into_iter();
        let shift = |axis: usize| (axis, by(self.dims()[axis]) % self.dims()[axis].max(1));
        let moves: SmallVec<[(usize, usize); 4]> = axes.map(shift).collect();
        self.rolled(moves).map_err(|error| error.named(op))
    }
}

/// A vector of n floats.
fn floats<B: Backend>(
    op: &'static str,
    n: usize,
    dtype: DType,
    value: impl Fn(usize) -> f64,
) -> Result<Tensor<B>> {
    let shape = Shape::from(n);
    shape.validate(op)?;
    match dtype.is_float() {
        true => Tensor::from_scalars(op, shape, dtype, |i| Scalar::Float(value(i))),
        false => Err(Error::UnsupportedDType { op, dtype, shape }),
    }
}

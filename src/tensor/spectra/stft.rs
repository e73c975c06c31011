//! `stft` and `istft`.

use super::{FftNorm, FftOptions, complex_shape};
use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::options::setters;
use crate::shape::Shape;
use crate::tensor::base::Tensor;
use crate::tensor::pad::PadMode;

/// Frames of a signal and their spectra, for [`Tensor::stft`] and [`Tensor::istft`]. Names and defaults are PyTorch's.
#[derive(Clone, Debug)]
pub struct StftOptions<B: Backend> {
    /// Number of points of a frame.
    pub n_fft: usize,
    /// Distance of the beginnings of frames; `None`: n_fft/4.
    pub hop_length: Option<usize>,
    /// Number of elements of the window, at most n_fft; it lies in the middle of a frame that is otherwise 0. `None`:
    /// n_fft.
    pub win_length: Option<usize>,
    /// By what frames are multiplied, with the dtype of the signal; `None`: ones.
    pub window: Option<Tensor<B>>,
    /// True if the middle of frame i is at element `i hop_length`, for which the signal is padded by n_fft/2 elements at
    /// each end. True by default.
    pub center: bool,
    /// How the signal is padded: mirrored by default.
    pub pad_mode: PadMode,
    /// True if the transforms are divided by √n_fft in both directions ([`FftNorm::Ortho`]). False by default.
    pub normalized: bool,
    /// True if the spectra have n_fft/2 + 1 numbers, false for all n_fft. `None`: true for `stft`; `istft` has it from the
    /// shape.
    pub onesided: Option<bool>,
}

impl<B: Backend> StftOptions<B> {
    /// Frames of so many points.
    pub fn new(n_fft: usize) -> Self {
        StftOptions {
            n_fft,
            hop_length: None,
            win_length: None,
            window: None,
            center: true,
            pad_mode: PadMode::Reflect,
            normalized: false,
            onesided: None,
        }
    }

    /// Sets `window`, and `win_length` to the number of its elements.
    #[must_use]
    pub fn window(mut self, window: &Tensor<B>) -> Self {
        (self.win_length, self.window) = (Some(window.numel()), Some(window.clone()));
        self
    }

    /// The distance of frames, and the window padded to a frame in the dtype of the computation.
    fn frame(&self, op: &'static str, x: &Tensor<B>) -> Result<(usize, Tensor<B>)> {
        let n = self.n_fft;
        let (hop, len) = (self.hop_length.unwrap_or(n / 4), self.win_length.unwrap_or(n));
        if hop == 0 || len == 0 || len > n {
            let reason = format!(
                "expected a positive hop_length and a win_length from 1 to n_fft = {n}, got {hop} and {len}"
            );
            return Err(Error::InvalidArgument { op, reason });
        }
        let window = match &self.window {
            None => Tensor::ones(len, x.dtype())?,
            Some(window) if window.shape() == &Shape::from(len) => {
                x.check_beside(op, window)?;
                x.check_dtype(op, window.dtype())?;
                window.clone()
            }
            Some(window) => {
                let (lhs, rhs) = (*window.shape(), len.into());
                return Err(Error::ShapeMismatch { op, lhs, rhs });
            }
        };
        let before = (n - len) / 2;
        let padding = [before, n - len - before];
        Ok((hop, window.widened()?.extended(0, padding, PadMode::Constant(0.0))?))
    }

    fn options(&self, axis: i32) -> FftOptions {
        let norm = if self.normalized { FftNorm::Ortho } else { FftNorm::Backward };
        FftOptions::new(axis).n(self.n_fft).norm(norm)
    }
}

setters! {
    [B: Backend] StftOptions<B> {
        hop_length: usize, into;
        win_length: usize, into;
        onesided: bool, into;
        center: bool;
        pad_mode: PadMode;
        normalized: bool;
    }
}

/// # Spectra of frames
///
/// With the feature `fft`. Complex numbers are a last axis of 2; 16-bit floats are computed in `F32` and rounded once.
impl<B: Backend> Tensor<B> {
    /// Short-time Fourier transform of real signals `[t]` or `[b, t]`: the spectra of overlapping frames, each multiplied
    /// by a window, in the layout of PyTorch, `[frequencies, frames, 2]` or `[b, frequencies, frames, 2]`.
    ///
    /// ```
    /// use swath::{StftOptions, cpu::prelude::*};
    /// let x = Tensor::arange(0.0, 100.0, 1.0)?.mul(0.5)?.sin()?;
    /// let options = StftOptions::new(16).window(&Tensor::hann_window(16, true)?);
    /// let y = x.stft(&options)?;
    /// assert_eq!(y.dims(), [9, 26, 2]);
    /// assert!(y.istft(&options, Some(100))?.allclose(&x, 0.0, 1e-5)?);
    /// let power = y.square()?.sum_axis(-1, false)?;
    /// assert_eq!(power.dims(), [9, 26]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] unless there are one or two axes; [`Error::InvalidArgument`] if a signal, padded, is
    /// shorter than a frame, if it cannot be padded ([`pad`](Tensor::pad)), for a hop_length of 0 and for a win_length
    /// that is 0 or more than n_fft; [`Error::ShapeMismatch`] and [`Error::DTypeMismatch`] for the window;
    /// [`Error::UnsupportedDType`] for integers.
    pub fn stft(&self, options: &StftOptions<B>) -> Result<Self> {
        let op = "stft";
        self.check_float(op)?;
        if !matches!(self.rank(), 1 | 2) {
            let reason = "expected signals with the axes [t] or [b, t]";
            return Err(Error::InvalidShape { op, shape: *self.shape(), reason });
        }
        let (mut x, n) = (self.widened()?, options.n_fft);
        if options.center {
            let half = (n / 2).min(isize::MAX as usize) as isize;
            x = x.pad(&[(half, half)], options.pad_mode).map_err(|error| error.named(op))?;
        }
        if n > x.dims()[x.rank() - 1] {
            let reason = format!("frames of {n} in padded signals of shape {}", x.shape());
            return Err(Error::InvalidArgument { op, reason });
        }
        let (hop, window) = options.frame(op, self)?;
        let frames = x.unfold(-1, n, hop)?.mul(&window)?;
        let spectra = match options.onesided {
            Some(false) => {
                Tensor::stack(&[&frames, &frames.zeros_like()?], -1)?.fft(options.options(-1))
            }
            _ => frames.rfft(options.options(-1)),
        };
        let spectra = spectra.map_err(|error| error.named(op))?;
        spectra.movedim(-2, -3)?.to_dtype(self.dtype())
    }

    /// Inverse of [`stft`](Tensor::stft) with the same options, by least squares: frames multiplied by the window are
    /// added up and divided by the sum of the squares of the windows (Griffin and Lim, 1984). The result is real, `[t]` or
    /// `[b, t]`. `length` is the number of its elements, by default those that the frames cover, without the padding; what
    /// no frame covers is 0.
    ///
    /// ```
    /// use swath::{StftOptions, cpu::prelude::*};
    /// let x = Tensor::arange(0.0, 16.0, 1.0)?;
    /// let options = StftOptions::new(4);
    /// let y = x.stft(&options)?.istft(&options, Some(16))?;
    /// assert!(y.allclose(&x, 1e-5, 1e-5)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] unless the axes are `[frequencies, frames, 2]` or `[b, frequencies, frames, 2]`;
    /// [`Error::InvalidArgument`] for another number of frequencies than the options say, without a frame, for a
    /// hop_length of more than win_length, and if the squares of the windows add up to less than 1e-11 anywhere in the
    /// result; others as for [`stft`](Tensor::stft).
    pub fn istft(&self, options: &StftOptions<B>, length: Option<usize>) -> Result<Self> {
        let op = "istft";
        self.check_float(op)?;
        let shape = complex_shape(op, self)?;
        let invalid = |reason: String| {
            let reason = format!("{reason}, for spectra of shape {}", self.shape());
            Err(Error::InvalidArgument { op, reason })
        };
        let (&[frequencies, frames] | &[_, frequencies, frames]) = shape.dims() else {
            let reason = "expected spectra with the axes [frequencies, frames, 2] or [b, …]";
            return Err(Error::InvalidShape { op, shape: *self.shape(), reason });
        };
        let n = options.n_fft;
        let expected = match options.onesided.unwrap_or(frequencies != n) {
            true => n / 2 + 1,
            false => n,
        };
        if frequencies != expected || n == 0 || frames == 0 {
            return invalid(format!("expected {expected} frequencies and at least one frame"));
        }
        let (hop, window) = options.frame(op, self)?;
        let len = options.win_length.unwrap_or(n);
        if hop > len {
            return invalid(format!("hop_length {hop} is more than win_length {len}"));
        }
        // The other frequencies are the conjugates.
        let half = self.widened()?.narrow(-3, 0, n / 2 + 1)?.movedim(-3, -2)?;
        let parts = half.irfft(options.options(-1)).map_err(|error| error.named(op))?;
        let covered = n.saturating_add(hop.saturating_mul(frames - 1));
        let first = if options.center { n / 2 } else { 0 };
        let end = length.map_or(covered - first, |length| first.saturating_add(length));
        // Sums of frames, of the elements that are in the result.
        let added = |parts: Tensor<B>| {
            parts.overlapped(hop)?.narrow(-1, first, end.min(covered).saturating_sub(first))
        };
        let signal = added(parts.mul(&window)?)?;
        let weights = added(window.square()?.broadcast_to([frames, n])?)?;
        if weights.numel() > 0
            && weights.min(None, false)?.to_dtype(DType::F32)?.item::<f32>()? < 1e-11
        {
            return invalid("the squares of the windows add up to less than 1e-11".to_owned());
        }
        let axis = signal.rank() - 1;
        let rest = [0, end.saturating_sub(covered)];
        let signal = signal.div(&weights)?.extended(axis, rest, PadMode::Constant(0.0));
        signal.map_err(|error| error.named(op))?.to_dtype(self.dtype())
    }

    /// Adds up frames `[…, frames, n]` that begin `hop` elements after one another, in blocks of `hop` elements.
    fn overlapped(&self, hop: usize) -> Result<Self> {
        let n = self.dims()[self.rank() - 1];
        let blocks = n.div_ceil(hop);
        let block = |i: usize| {
            let len = hop.min(n - i * hop);
            let pads = [(i as isize, (blocks - 1 - i) as isize), (0, (hop - len) as isize)];
            self.narrow(-1, i * hop, len)?.pad(&pads, PadMode::Constant(0.0))
        };
        let sum = (1..blocks).try_fold(block(0)?, |sum, i| sum.add(&block(i)?))?;
        sum.flatten(-2, -1)
    }
}

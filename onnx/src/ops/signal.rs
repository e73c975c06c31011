//! Fourier transforms, and what is made for them: windows and filters.

use std::cmp::Ordering;
use std::f64::consts::TAU;

use swath::{Backend, DType, FftOptions, PadMode, Tensor};

use super::Rows;
use super::cast::dtype;
use crate::error::{Error, Result};
use crate::row::Default::{self, Int};
use crate::row::{Call, Results, Row, axis, extents, one, row};

/// The integer in an input, not negative.
fn size<B: Backend>(call: &Call<'_, B>, at: usize) -> Result<Option<usize>> {
    match call.ints_of(at)?.as_deref() {
        None => Ok(None),
        Some(list @ &[_]) => Ok(extents(list)?.pop()),
        Some(list) => {
            Err(Error::operator(format!("input {at} must be one number, but has {}", list.len())))
        }
    }
}

/// The integer in an input that must be there.
fn required<B: Backend>(call: &Call<'_, B>, at: usize) -> Result<usize> {
    size(call, at)?.ok_or_else(|| Error::operator(format!("input {at} is missing")))
}

/// Complex numbers: real ones, with a last axis of 1, get the imaginary part 0.
fn complex<B: Backend>(x: &Tensor<B>) -> Result<Tensor<B>> {
    match x.dims() {
        [_, .., 1] => Ok(x.pad(&[(0, 1)], PadMode::Constant(0.0))?),
        [_, .., 2] => Ok(x.clone()),
        _ => Err(Error::operator(format!(
            "expected a last axis of 1 or 2 after others, got shape {}",
            x.shape()
        ))),
    }
}

/// The transform of n numbers along an axis, or the n/2 + 1 first numbers of it.
fn spectrum<B: Backend>(
    x: &Tensor<B>,
    axis: usize,
    n: usize,
    is_onesided: bool,
) -> Result<Tensor<B>> {
    let options = FftOptions::new(axis).n(n);
    if x.dims().last() != Some(&1) {
        let all = complex(x)?.fft(options)?;
        return Ok(if is_onesided { all.narrow(axis, 0, n / 2 + 1)? } else { all });
    }
    let half = x.squeeze(-1)?.rfft(options)?;
    if is_onesided {
        return Ok(half);
    }
    // The other half are the conjugates, from the last to the first.
    let signs = Tensor::from_slice(&[1.0, -1.0], 2)?.to_dtype(x.dtype())?;
    let rest = half.narrow(axis, 1, (n - 1) / 2)?.flip(axis)?.mul(&signs)?;
    Ok(Tensor::cat(&[half, rest], axis)?)
}

/// `DFT`: the discrete Fourier transform along an axis, or its inverse.
fn transform<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let given = match call.version() < 20 {
        true => call.int("axis")?,
        false => call.number_of(2)?.map_or(-2, |given| given as i64),
    };
    let axis = axis(given, x.rank())?;
    if axis + 1 == x.rank() {
        return Err(Error::operator("the last axis is that of real and imaginary part"));
    }
    let (is_onesided, is_inverse) = (call.flag("onesided")?, call.flag("inverse")?);
    let n = match is_onesided && is_inverse {
        true => 2 * x.dims()[axis].saturating_sub(1),
        false => x.dims()[axis],
    };
    let n = size(call, 1)?.unwrap_or(n);
    let options = FftOptions::new(axis).n(n);
    one(match (is_inverse, is_onesided) {
        (false, _) => spectrum(x, axis, n, is_onesided),
        (true, false) => Ok(complex(x)?.ifft(options)?),
        (true, true) => Ok(complex(x)?.irfft(options)?.unsqueeze(-1)?),
    })
}

/// `STFT`: the spectra of the windows of signals.
fn short_time_transform<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (signal, window) = (call.tensor(0)?, call.find(2));
    // Real signals without the last axis are taken as well.
    let signal = if signal.rank() == 2 { signal.unsqueeze(-1)? } else { signal.clone() };
    let &[_, extent, _] = signal.dims() else {
        return Err(Error::operator("expected signals with the axes [batch, time, 1 or 2]"));
    };
    let (step, n) = (required(call, 1)?, size(call, 3)?);
    let n = n.or(window.map(Tensor::numel)).unwrap_or(extent);
    if step == 0 || n == 0 || n > extent {
        return Err(Error::operator(format!(
            "expected a step and a frame of 1 to {extent}, got {step} and {n}"
        )));
    }
    let mut frames = signal.unfold(1, n, step)?.movedim(-1, 2)?;
    if let Some(window) = window {
        frames = frames.mul(window.reshape((n, 1))?)?;
    }
    one(spectrum(&frames, 2, n, call.flag("onesided")?))
}

/// A window: `a - b cos t + c cos 2t`, for t from 0 to 2π.
fn window<B: Backend>(call: &Call<'_, B>, [a, b, c]: [f64; 3]) -> Results<B> {
    let n = required(call, 0)?;
    let dtype = dtype(call, "output_datatype")?;
    let last = if call.flag("periodic")? { n } else { n.saturating_sub(1) };
    if last == 0 {
        return one(Tensor::ones(n, dtype));
    }
    let t = Tensor::arange_as(0.0, n as f64, 1.0, DType::F64)?.mul(TAU)?.div(last as f64)?;
    let wave = t.cos()?.mul(-b)?.add(t.mul(2.0)?.cos()?.mul(c)?)?;
    one(wave.add(a)?.to_dtype(dtype))
}

/// A matrix that sums the frequencies of a spectrum into triangular bands of equal width on the mel scale.
fn mel_weights<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (bands, length) = (required(call, 0)?, required(call, 1)?);
    let number = |at| {
        let found: Option<f64> = call.number_of(at)?;
        found.ok_or_else(|| Error::operator(format!("input {at} is missing")))
    };
    let (rate, low, high) = (number(2)?, number(3)?, number(4)?);
    let mel = |hertz: f64| 2595.0 * (hertz / 700.0).ln_1p() / 10f64.ln();
    let step = (mel(high) - mel(low)) / (bands as f64 + 2.0);
    let rows = length / 2 + 1;
    let bin = |i: usize| {
        let hertz = 700.0 * ((mel(low) + i as f64 * step) / 2595.0 * 10f64.ln()).exp_m1();
        let bin = ((length as f64 + 1.0) * hertz / rate).floor();
        match bin >= 0.0 && bin <= rows as f64 {
            true => Ok(bin as usize),
            false => Err(Error::operator(format!(
                "{hertz} Hz is not among the {rows} frequencies of the spectrum"
            ))),
        }
    };
    // swath refuses shapes that are too large.
    let mut weights = Tensor::<B>::zeros((rows, bands), DType::F64)?.to_vec::<f64>()?;
    for band in 0..bands {
        let (left, center, right) = (bin(band)?, bin(band + 1)?, bin(band + 2)?);
        for row in left..right.max(center + 1).min(rows) {
            weights[row * bands + band] = match row.cmp(&center) {
                Ordering::Less => (row - left) as f64 / (center - left) as f64,
                Ordering::Equal => 1.0,
                Ordering::Greater => (right - row) as f64 / (right - center) as f64,
            };
        }
    }
    one(Tensor::from_vec(weights, (rows, bands))?.to_dtype(dtype(call, "output_datatype")?))
}

const DATATYPE: (&str, Default) = ("output_datatype", Int(1));
const WINDOW: &[(&str, Default)] = &[DATATYPE, ("periodic", Int(1))];

impl<B: Backend> Rows<B> {
    pub const SIGNAL: &'static [Row<B>] = &[
        row("DFT", 17, &[("axis", Int(1)), ("inverse", Int(0)), ("onesided", Int(0))], transform),
        row("STFT", 17, &[("onesided", Int(1))], short_time_transform),
        row("HannWindow", 17, WINDOW, |c| window(c, [0.5, 0.5, 0.0])),
        row("HammingWindow", 17, WINDOW, |c| window(c, [25.0 / 46.0, 21.0 / 46.0, 0.0])),
        row("BlackmanWindow", 17, WINDOW, |c| window(c, [0.42, 0.5, 0.08])),
        row("MelWeightMatrix", 17, &[DATATYPE], mel_weights),
    ];
}

//! Images and spectra.

use swath::cpu::prelude::*;
use swath::{FftNorm, FftOptions, GridMode, GridPadding, ImageSize, Interpolation, StftOptions};

use super::{Results, one};
use crate::sample::{Arg, Call};

pub fn call(op: &str, c: &Call) -> Results {
    let number = |at: usize, name: &str| c.int(at, name).expect("a number") as usize;
    match op {
        "grid_sample" => {
            let mode = match c.word(2, "mode") {
                Some("nearest") => GridMode::Nearest,
                Some("bicubic") => GridMode::Bicubic,
                _ => GridMode::Bilinear,
            };
            let padding = match c.word(3, "padding_mode") {
                Some("border") => GridPadding::Border,
                Some("reflection") => GridPadding::Reflection,
                _ => GridPadding::Zeros,
            };
            let grid = c.tensor(1, "grid").expect("a grid");
            one(c.x().grid_sample(grid, mode, padding, c.bool(4, "align_corners")))
        }
        "max_unpool1d" | "max_unpool2d" | "max_unpool3d" => {
            let spatial = op.as_bytes()[10] as usize - b'0' as usize;
            let size = c.ints(9, "output_size").filter(|size| size.len() >= spatial);
            let Some(size) = size else { return Ok(vec![]) };
            let size: Vec<usize> =
                size[size.len() - spatial..].iter().map(|&extent| extent as usize).collect();
            let (x, at) = (c.x(), c.tensor(1, "indices").expect("positions"));
            let batched = x.rank() == spatial + 2;
            let [x, at] = [x, at].map(|x| if batched { Ok(x.clone()) } else { x.unsqueeze(0) });
            let (x, at) = (x?, at?);
            let y = match size[..] {
                [a] => x.max_unpool1d(&at, [a])?,
                [a, b] => x.max_unpool2d(&at, [a, b])?,
                [a, b, c] => x.max_unpool3d(&at, [a, b, c])?,
                _ => return Ok(vec![]),
            };
            one(if batched { Ok(y) } else { y.squeeze(0) })
        }
        "pixel_shuffle" => one(c.x().pixel_shuffle(number(1, "upscale_factor"))),
        "pixel_unshuffle" => one(c.x().pixel_unshuffle(number(1, "downscale_factor"))),
        "channel_shuffle" => one(c.x().channel_shuffle(number(1, "groups"))),
        "local_response_norm" if !c.x().dtype().is_float() => Ok(vec![]),
        "local_response_norm" => {
            let float = |name: &str, or: f64| c.float(9, name).unwrap_or(or);
            let (alpha, beta, k) = (float("alpha", 1e-4), float("beta", 0.75), float("k", 1.0));
            one(c.x().local_response_norm(number(1, "size"), alpha, beta, k))
        }
        _ if op.starts_with("interpolate") => interpolate(c),
        _ => spectrum(op, c),
    }
}

fn interpolate(c: &Call) -> Results {
    let x = c.x();
    if !x.dtype().is_float() {
        return Ok(vec![]);
    }
    let align_corners = c.bool(9, "align_corners");
    let mode = match c.word(3, "mode").unwrap_or("nearest") {
        "nearest" => Interpolation::Nearest,
        "nearest-exact" => Interpolation::NearestExact,
        "bicubic" => Interpolation::Bicubic { align_corners },
        "area" => Interpolation::Area,
        _ => Interpolation::Bilinear { align_corners },
    };
    let spatial = x.rank() - 2;
    let size = match (c.ints(1, "size"), c.floats(2, "scale_factor")) {
        (Some(size), _) => {
            let extent = |i: usize| *size.get(i).unwrap_or(&size[0]) as usize;
            ImageSize::Extents((0..spatial).map(extent).collect())
        }
        (None, Some(factors)) => {
            let factor = |i: usize| *factors.get(i).unwrap_or(&factors[0]);
            let factors: Vec<f64> = (0..spatial).map(factor).collect();
            match c.bool(9, "recompute_scale_factor") {
                true => ImageSize::Extents(
                    factors
                        .iter()
                        .zip(&x.dims()[2..])
                        .map(|(f, &n)| (f * n as f64) as usize)
                        .collect(),
                ),
                false => ImageSize::Factors(factors),
            }
        }
        _ => return Ok(vec![]),
    };
    one(x.interpolate(size, mode))
}

fn spectrum(op: &str, c: &Call) -> Results {
    let norm = match c.word(9, "norm") {
        Some("ortho") => FftNorm::Ortho,
        Some("forward") => FftNorm::Forward,
        _ => FftNorm::Backward,
    };
    let x = c.x();
    let x = if x.dtype().is_float() { x.clone() } else { x.to_dtype(DType::F32)? };
    let mut options = FftOptions::new(c.int(2, "dim").unwrap_or(-1) as isize).norm(norm);
    if let Some(n) = c.int(1, "n") {
        options = options.n(n as usize);
    }
    let axes = || c.ints(1, "dim").map(|list| list.iter().map(|&axis| axis as isize).collect());
    let shift = |f: &dyn Fn(Vec<isize>) -> Result<Tensor>| {
        let all = (0..x.rank() as isize).collect();
        one(f(axes().unwrap_or(all)))
    };
    match op {
        "fft.fft" => one(x.fft(options)),
        "fft.ifft" => one(x.ifft(options)),
        "fft.rfft" => one(x.rfft(options)),
        "fft.irfft" => one(x.irfft(options)),
        "fft.fftshift" => shift(&|axes| c.x().fftshift(&axes[..])),
        "fft.ifftshift" => shift(&|axes| c.x().ifftshift(&axes[..])),
        "stft" | "istft" => {
            let at = |name: &str, position: usize| c.int(position, name).map(|n| n as usize);
            let mut options = StftOptions::new(at("n_fft", 1).expect("a length"));
            if let Some(hop) = at("hop_length", 2) {
                options = options.hop_length(hop);
            }
            options.win_length = at("win_length", 3);
            if let Some(window) = c.tensor(4, "window") {
                if window.rank() == 2 {
                    // A window of complex numbers.
                    return Ok(vec![]);
                }
                options.window = Some(window.clone());
            }
            if let Arg::Bool(false) = c.get(5, "center") {
                options.center = false;
            }
            options.normalized = c.bool(9, "normalized");
            if let Arg::Bool(one) = c.get(9, "onesided") {
                options = options.onesided(*one);
            }
            one(match op {
                "stft" => x.stft(&options),
                _ => x.istft(&options, at("length", 9)),
            })
        }
        other => panic!("no call of {other}"),
    }
}

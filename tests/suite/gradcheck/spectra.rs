//! Cases of Fourier transforms.

use super::cases::{ALL, Suite};
use swath::{Axes, FftNorm, FftOptions, StftOptions};

fn along(axes: impl Into<Axes>) -> FftOptions {
    FftOptions::new(axes)
}

pub fn spectra(op: &str, s: &mut Suite) {
    let ortho = FftNorm::Ortho;
    match op {
        "fft" => {
            s.add("rows", &[&[2, 3, 2]], &ALL, |xs| xs[0].fft(-1));
            s.add("columns, padded", &[&[3, 2, 2]], &ALL, move |xs| {
                xs[0].fft(along(0).n(4).norm(ortho))
            });
            s.add("two axes", &[&[3, 2, 2]], &ALL, |xs| xs[0].fft([0, 1]));
        }
        "ifft" => {
            s.add("rows", &[&[2, 4, 2]], &ALL, |xs| xs[0].ifft(-1));
            s.add("cut", &[&[2, 4, 2]], &ALL, move |xs| xs[0].ifft(along(1).n(3).norm(ortho)));
        }
        "rfft" => {
            s.one("even", |x| x.rfft(-1));
            s.one("odd", move |x| x.rfft(along(1).norm(ortho)));
            s.one("two axes", move |x| x.rfft(along([0, 2]).n([3, 5])));
        }
        "irfft" => {
            s.add("even", &[&[2, 3, 2]], &ALL, |xs| xs[0].irfft(-1));
            s.add("odd", &[&[2, 3, 2]], &ALL, move |xs| xs[0].irfft(along(1).n(5).norm(ortho)));
            s.add("two axes", &[&[2, 3, 2]], &ALL, |xs| xs[0].irfft([1, 0]));
        }
        "stft" => {
            let frames = StftOptions::new(4).hop_length(3);
            s.add("signals", &[&[2, 7]], &ALL, move |xs| xs[0].stft(&frames));
            s.add("window", &[&[7], &[3]], &ALL, |xs| {
                let options = StftOptions::new(4).hop_length(2).window(&xs[1]);
                xs[0].stft(&options.onesided(false).normalized(true).center(false))
            });
        }
        "istft" => {
            let frames = StftOptions::new(4).hop_length(3);
            s.add("signals", &[&[2, 3, 3, 2]], &ALL, move |xs| xs[0].istft(&frames, Some(9)));
            s.add("window", &[&[3, 3, 2], &[4]], &ALL, |xs| {
                let window = xs[1].square()?.add(1.0)?;
                let options = StftOptions::new(4).hop_length(2).window(&window);
                xs[0].istft(&options.normalized(true), None)
            });
        }
        "fftshift" => {
            s.one("two axes", |x| x.fftshift([1, 2]));
            s.one("back", |x| x.ifftshift(1));
        }
        _ => {}
    }
}

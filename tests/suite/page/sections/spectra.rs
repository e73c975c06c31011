//! Spectra. Written by `tests/vectors/check_page.py`.

use crate::page::{found, row};
use swath::cpu::prelude::*;

pub fn rows() -> Result<()> {
    use swath::{FftNorm, FftOptions, StftOptions};
    let z = tensor![[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]];
    let x = Tensor::arange(0.0, 16.0, 1.0)?.reshape((2, 8))?;
    let y = x.rfft(-1)?;
    let w = Tensor::hann_window(4, true)?;
    let options = StftOptions::new(4).window(&w);
    let f = x.stft(&options)?;
    row(
        "`np.fft.fft(z)` `torch.fft.ifft(z)` `z.fft(-1)?` `z.ifft(-1)?`",
        &[found(&(z.fft(-1)?)), found(&(z.ifft(-1)?))],
        &["[4, 2]: 0 0 4 0 0 0 0 0", "[4, 2]: 0 0 0 0 0 0 1 0"],
    );
    row(
        "`np.fft.rfft(x)` `torch.fft.irfft(y)` `x.rfft(-1)?` `y.irfft(-1)?`",
        &[found(&(x.rfft(-1)?)), found(&(y.irfft(-1)?))],
        &[
            "[2, 5, 2]: 28 0 -4 9.656854629516602 -4 4 -4 1.656854271888733 -4 0 92 0 -4 9.656854629516602 -4 4 -4 1.656854271888733 -4 0",
            "[2, 8]: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
        ],
    );
    row(
        "`np.fft.rfft2(x)` `torch.fft.rfftn(x)` `x.rfft([0, 1])?`",
        &[found(&(x.rfft([0, 1])?))],
        &[
            "[2, 5, 2]: 120 0 -8 19.313709259033203 -8 8 -8 3.313708543777466 -8 0 -64 0 0 0 0 0 0 0 0 0",
            "[2, 5, 2]: 120 0 -8 19.313709259033203 -8 8 -8 3.3137083053588867 -8 0 -64 0 0 0 0 0 0 0 0 0",
        ],
    );
    row(
        "`torch.fft.rfft(x, n=6, norm=\"ortho\")` `x.rfft(FftOptions::new(-1).n(6).norm(FftNorm::Ortho))?`",
        &[found(&(x.rfft(FftOptions::new(-1).n(6).norm(FftNorm::Ortho))?))],
        &[
            "[2, 4, 2]: 6.123724460601807 0 -1.2247449159622192 2.1213202476501465 -1.2247449159622192 0.7071067690849304 -1.2247449159622192 0 25.719642639160156 0 -1.2247449159622192 2.1213202476501465 -1.2247449159622192 0.7071067690849304 -1.2247449159622192 0",
        ],
    );
    row(
        "`np.fft.fftfreq(4, 0.5)` `torch.fft.rfftfreq(4, 0.5)` `Tensor::fftfreq(4, 0.5)?` `Tensor::rfftfreq(4, 0.5)?`",
        &[found(&(Tensor::fftfreq(4, 0.5)?)), found(&(Tensor::rfftfreq(4, 0.5)?))],
        &["[4]: 0 0.5 -1 -0.5", "[3]: 0 0.5 1"],
    );
    row(
        "`np.fft.fftshift(x)` `torch.fft.ifftshift(x, 0)` `x.fftshift([0, 1])?` `x.ifftshift(0)?`",
        &[found(&(x.fftshift([0, 1])?)), found(&(x.ifftshift(0)?))],
        &[
            "[2, 8]: 12 13 14 15 8 9 10 11 4 5 6 7 0 1 2 3",
            "[2, 8]: 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7",
        ],
    );
    row(
        "`torch.hann_window(4)` `np.kaiser(4, 8.0)` `Tensor::hann_window(4, true)?` `Tensor::kaiser_window(4, false, 8.0)?`",
        &[found(&(Tensor::hann_window(4, true)?)), found(&(Tensor::kaiser_window(4, false, 8.0)?))],
        &[
            "[4]: 0 0.5 1 0.5",
            "[4]: 0.002338830512733327 0.6524786744624014 0.6524786744624014 0.002338830512733327",
        ],
    );
    row(
        "`torch.stft(x, 4, window=w, return_complex=True)` `torch.istft(f, 4, window=w)` `x.stft(&options)?` `f.istft(&options, None)?` `StftOptions::new(4).window(&w)`",
        &[found(&(x.stft(&options)?)), found(&(f.istft(&options, None)?))],
        &[
            "[2, 3, 9, 2]: 1 0 2 0 4 0 6 0 8 0 10 0 12 0 13 0 12 0 0 0 -1 1 -2 1 -3 1 -4 1 -5 1 -6 1 -7 0 -6 -1 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 0 0 17 0 18 0 20 0 22 0 24 0 26 0 28 0 29 0 28 0 -8 0 -9 1 -10 1 -11 1 -12 1 -13 1 -14 1 -15 0 -14 -1 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 0 0",
            "[2, 8]: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
        ],
    );
    Ok(())
}

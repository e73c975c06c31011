"""Writes spectra.txt beside this file: Fourier transforms and windows by PyTorch, in float64.

usage: python make_spectra.py       with a PyTorch for the CPU

A line is a name, a dtype, a shape and values in row-major order. A case has inputs 0, 1, …, the result y, the gradient g
of the result, and those of the inputs, d0, d1, …. Inputs are multiples of 1/8, exact in every dtype. Complex numbers are
a last axis of 2.
"""
import pathlib

import torch
from torch import fft

HERE = pathlib.Path(__file__).parent
torch.manual_seed(56)
torch.set_default_dtype(torch.float64)
lines = []


def show(name, x):
    shape = "x".join(map(str, x.shape)) or "-"
    values = " ".join(f"{v:.13g}" for v in x.detach().flatten().tolist())
    lines.append(f"{name} f64 {shape} {values}")


def eighths(*shape):
    return (torch.randn(*shape) * 8).round() / 8


def case(name, f, *shapes):
    inputs = [eighths(*shape).requires_grad_() for shape in shapes]
    y = f(*inputs)
    y = torch.view_as_real(y) if y.is_complex() else y
    g = eighths(*y.shape)
    y.backward(g)
    for i, x in enumerate(inputs):
        show(f"{name}/{i}", x)
        show(f"{name}/d{i}", x.grad)
    show(f"{name}/y", y)
    show(f"{name}/g", g)


def of_complex(f, **options):
    return lambda x, *rest: f(torch.view_as_complex(x), *rest, **options)


case("fft", of_complex(fft.fft, dim=0), (5, 2, 2))
case("fft_padded", of_complex(fft.fft, n=7, norm="ortho"), (2, 4, 2))
case("ifft_cut", of_complex(fft.ifft, n=3, dim=-2), (4, 2, 2))
case("ifft_forward", of_complex(fft.ifft, norm="forward"), (6, 2))
case("fft2", of_complex(fft.fftn, s=(4, 2), dim=(2, 0), norm="forward"), (3, 1, 3, 2))
case("rfft", lambda x: fft.rfft(x, dim=0), (6, 2))
case("rfft_odd", lambda x: fft.rfft(x, n=5, norm="forward"), (2, 7))
case("rfft2", lambda x: fft.rfftn(x, s=(2, 5), dim=(-1, -2), norm="ortho"), (4, 3))
case("irfft", of_complex(fft.irfft), (2, 4, 2))
case("irfft_odd", of_complex(fft.irfft, n=5, dim=0, norm="ortho"), (2, 2, 2))
case("irfft2", of_complex(fft.irfftn, s=(3, 4), dim=(0, 1)), (2, 4, 2))

hann = lambda x, w, **options: torch.stft(x, 8, window=w, return_complex=True, **options)
case("stft", lambda x: torch.stft(x, 8, return_complex=True), (20,))
case("stft_window", lambda x, w: hann(x, w, win_length=5, hop_length=3, normalized=True), (2, 13), (5,))
case("stft_left", lambda x, w: hann(x, w, center=False, onesided=False), (2, 13), (8,))
case("stft_constant", lambda x: torch.stft(x, 5, hop_length=2, pad_mode="constant", return_complex=True), (7,))
case("istft", of_complex(torch.istft, n_fft=8), (5, 6, 2))
case("istft_window", of_complex(lambda x, w: torch.istft(x, 8, hop_length=3, win_length=6, window=w, normalized=True)),
     (2, 5, 4, 2), (6,))
case("istft_left", of_complex(torch.istft, n_fft=6, hop_length=2, center=False, onesided=False), (6, 3, 2))
case("istft_long", of_complex(torch.istft, n_fft=5, hop_length=2, length=12), (2, 3, 3, 2))

for periodic in [False, True]:
    for n in [1, 2, 5, 8]:
        for kind, window in [("hann", torch.hann_window), ("hamming", torch.hamming_window), ("blackman", torch.blackman_window),
                             ("kaiser", lambda n, periodic: torch.kaiser_window(n, periodic, 6.5))]:
            show(f"{kind}_{n}{'_periodic' if periodic else ''}", window(n, periodic=periodic))

(HERE / "spectra.txt").write_text("\n".join(lines) + "\n")

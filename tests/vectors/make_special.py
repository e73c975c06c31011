"""Writes special.txt: arguments and values of special functions as the bits of f64, correctly rounded from 40 digits.

python3 tests/vectors/make_special.py (with mpmath); with the argument `coefficients` it prints those of
src/ops/special.rs instead.
"""

import random
import struct
import sys
from pathlib import Path

import mpmath
from mpmath import mp, mpf

mp.dps = 60


def fit(name, f, center, width, count):
    """A polynomial in x - center for |x - center| <= width, of `count` coefficients, lowest power first."""
    coefficients, error = mpmath.chebyfit(
        lambda u: f(mpf(center) + u), [-mpf(width), mpf(width)], count, error=True
    )
    print(name, "error", mp.nstr(error, 3))
    print(", ".join(repr(float(c)) for c in coefficients[::-1]))


def coefficients():
    tiny = mpf(10) ** -40
    low = lambda x: mpmath.loggamma(x + tiny) / ((x + tiny - 1) * (x + tiny - 2))
    fit("LOG_GAMMA", low, 1.5, 0.75, 28)
    root = mpmath.findroot(mpmath.digamma, 1.46)
    print("DIGAMMA_ROOT", float(root), float(root - mpf(float(root))))
    fit("DIGAMMA", lambda x: mpmath.digamma(x) / (x - root), 2, 1, 30)


def log_gamma(x):
    if x > 0:
        return mpmath.loggamma(x)
    return mpmath.log(mpmath.pi / abs(x * mpmath.sinpi(x))) - mpmath.loggamma(-x)


def scaled(order):
    return lambda x: mpmath.besseli(order, x) * mpmath.exp(-abs(x))


uniform = random.uniform
positive = [
    lambda: uniform(0, 1),
    lambda: uniform(0.9, 3.1),
    lambda: uniform(3, 12),
    lambda: 10 ** uniform(-30, 30),
]
negative = [lambda: -uniform(0, 8), lambda: -uniform(8, 60)]
near = lambda at, least: lambda: at + uniform(-1, 1) * 10 ** uniform(least, -1)
bessel = [lambda: uniform(-21, 21), lambda: uniform(15, 80), lambda: 10 ** uniform(-30, 0)]
FUNCTIONS = {
    "erfinv": (
        mpmath.erfinv,
        [lambda: uniform(-1, 1), lambda: 1 - 10 ** uniform(-15, -1), lambda: 10 ** uniform(-30, 0)],
    ),
    "lgamma": (log_gamma, positive + negative + [near(1, -15), near(2, -15), near(-2.457024738220801, -7)]),
    "digamma": (mpmath.digamma, positive + negative + [near(1.4616321449683623, -15)]),
    "polygamma1": (lambda x: mpmath.polygamma(1, x), positive + negative),
    "polygamma2": (lambda x: mpmath.polygamma(2, x), positive + negative),
    "polygamma4": (lambda x: mpmath.polygamma(4, x), positive),
    "i0": (lambda x: mpmath.besseli(0, x), bessel),
    "i1": (lambda x: mpmath.besseli(1, x), bessel),
    "i0e": (scaled(0), bessel + [lambda: 10 ** uniform(0, 30)]),
    "i1e": (scaled(1), bessel + [lambda: 10 ** uniform(0, 30)]),
    "sinc": (mpmath.sincpi, [lambda: uniform(-9, 9), near(3, -8), lambda: 10 ** uniform(-8, 6)]),
}


def bits(x):
    return struct.pack(">d", x).hex()


def main():
    random.seed(1)
    lines = []
    for name, (f, draws) in FUNCTIONS.items():
        for draw in draws:
            for i in range(24):
                # Every second argument is one of f32.
                x = draw() if i % 2 else struct.unpack("f", struct.pack("f", draw()))[0]
                lines.append(f"{name} {bits(x)} {bits(float(mpmath.re(f(mpf(x)))))}")
    Path(__file__).with_name("special.txt").write_text("\n".join(lines) + "\n")


if sys.argv[1:] == ["coefficients"]:
    coefficients()
else:
    main()

#!/usr/bin/env python3
"""Prints every constant of src/math/: python3 coefficients.py [family] (needs mpmath).

A polynomial is fitted to the smallest weighted error, by Remez exchange or by least squares at
Chebyshev's points, which come close to it. Then its coefficients are rounded one after the other,
lowest power first, and the rest is fitted again around each rounded one. The error printed is that of
the rounded coefficients in exact arithmetic, times the weight.
"""

import math
import struct
import sys

from mpmath import mp, mpf, acosh, asin, asinh, atan, atanh, cos, cosh, erf, erfc, erfinv, exp, log
from mpmath import log1p, lu_solve, matrix, pi, sinh, sqrt, tan

mp.prec = 200


def f32(x):
    """The nearest f32, exactly. Normal range only."""
    if x == 0:
        return mpf(0)
    e = mp.floor(mp.log(abs(x), 2))
    ulp = mpf(2) ** (e - 23)
    return mp.nint(x / ulp) * ulp


def f64(x):
    """The nearest f64, exactly. Normal range only."""
    if x == 0:
        return mpf(0)
    e = mp.floor(mp.log(abs(x), 2))
    ulp = mpf(2) ** (e - 52)
    return mp.nint(x / ulp) * ulp


def truncated(x, bits):
    """x cut to `bits` significant bits."""
    e = mp.floor(mp.log(abs(x), 2))
    ulp = mpf(2) ** (e - bits + 1)
    return mp.floor(x / ulp) * ulp


def remez(f, weight, powers, a, b):
    """Coefficients of the given powers that minimise max |weight(x) (f(x) - p(x))| on [a, b]."""
    n = len(powers)
    steps = 60 * n
    nodes = [(a + b) / 2 - (b - a) / 2 * cos(pi * (2 * i + 1) / (2 * n + 2)) for i in range(n + 1)]
    coefficients = [mpf(0)] * n
    for _ in range(30):
        system = matrix(n + 1, n + 1)
        right = matrix(n + 1, 1)
        for i, x in enumerate(nodes):
            w = weight(x)
            for j, power in enumerate(powers):
                system[i, j] = w * x**power
            system[i, n] = (-1) ** i
            right[i] = w * f(x)
        solution = lu_solve(system, right)
        coefficients = [solution[j] for j in range(n)]

        def error(x):
            return weight(x) * (f(x) - sum(c * x**p for c, p in zip(coefficients, powers)))

        grid = [a + (b - a) * (1 - cos(pi * i / steps)) / 2 for i in range(steps + 1)]
        values = [error(x) for x in grid]
        extrema = []
        for i, (x, v) in enumerate(zip(grid, values)):
            if extrema and (v > 0) == (extrema[-1][1] > 0):
                if abs(v) > abs(extrema[-1][1]):
                    extrema[-1] = (x, v)
            else:
                extrema.append((x, v))
        while len(extrema) > n + 1:
            extrema.pop(0 if abs(extrema[0][1]) < abs(extrema[-1][1]) else -1)
        if len(extrema) < n + 1:
            break
        nodes = [x for x, _ in extrema]
        sizes = [abs(v) for _, v in extrema]
        if max(sizes) < min(sizes) * mpf("1.001"):
            break
    return coefficients


def fit(f, weight, degree, a, b, rounding, fixed=()):
    """Rounded coefficients of 1, x, … x^degree, and their largest weighted error."""
    known = [rounding(mpf(c)) for c in fixed]
    while len(known) <= degree:
        powers = list(range(len(known), degree + 1))
        rest = lambda x: f(x) - sum(c * x**i for i, c in enumerate(known))
        known.append(rounding(remez(rest, weight, powers, a, b)[0]))
    points = [a + (b - a) * mpf(i) / 4001 for i in range(1, 4001)]
    worst = max(abs(weight(x) * (f(x) - sum(c * x**i for i, c in enumerate(known)))) for x in points)
    return known, worst


def least_squares(f, weight, count, h, rounding, centre=mpf(0)):
    """`count` coefficients within h of the centre, rounded one after the other and the rest fitted again, at
    Chebyshev's points: many intervals in the time that exchanges take for one."""
    nodes = [centre + h * cos(pi * (2 * i + 1) / (4 * count)) for i in range(2 * count)]
    return least_squares_at(nodes, f, weight, count, rounding)


def least_squares_at(nodes, f, weight, count, rounding):
    """As `least_squares`, at the given points."""
    weights, values = [weight(x) for x in nodes], [f(x) for x in nodes]
    known = []
    while len(known) < count:
        powers = range(len(known), count)
        system = matrix([[w * x**p for p in powers] for w, x in zip(weights, nodes)])
        known.append(rounding(lu_solve(system, matrix([w * v for w, v in zip(weights, values)]))[0]))
        values = [f(x) - sum(c * x**i for i, c in enumerate(known)) for x in nodes]
    return known


def text(x, name):
    """Shortest decimal that reads back as the same float, in Rust's notation."""
    x = float(x)
    if name == "f64":
        digits = repr(x)
    else:
        bits = struct.pack("f", x)
        digits = next(
            d for d in ("%.*g" % (p, x) for p in range(6, 12)) if struct.pack("f", float(d)) == bits
        )
    if "e" in digits:
        mantissa, exponent = digits.split("e")
        return f"{mantissa}e{int(exponent)}"
    return digits if "." in digits else digits + ".0"


def show(label, values, name, note=""):
    print(f"// {name} {label} {note}")
    print("    [" + ", ".join(text(v, name) for v in values) + "]")


def show_series(label, f, weight, count, low, high):
    """f32 coefficients of f from `low` to `high`, by least squares at Chebyshev's points."""
    nodes = [(low + high) / 2 + (high - low) / 2 * cos(pi * (2 * i + 1) / (8 * count)) for i in range(4 * count)]
    c = least_squares_at(nodes, f, weight, count, f32)
    points = [low + (high - low) * mpf(i) / 1000 for i in range(1001)]
    worst = max(abs(weight(x) * (f(x) - mp.polyval(c[::-1], x))) for x in points)
    show(label, c, "f32", f"weighted: 2^{float(mp.log(worst, 2)):.2f}")


ROUND = {"f32": f32, "f64": f64}
LN2 = log(mpf(2))


def exp_rest(r):
    """(e^r - 1 - r) / r^2, by its series where the closed form would cancel."""
    if abs(r) > 1e-3:
        return (exp(r) - 1 - r) / r**2
    return sum(r**i / mp.factorial(i + 2) for i in range(14))


def log_rest(r):
    """(ln(1 + r) - r + r^2 / 2) / r^3, likewise."""
    if abs(r) > 1e-3:
        return (log1p(r) - r + r**2 / 2) / r**3
    return sum((-1) ** i * r**i / (i + 3) for i in range(14))


def exp_family():
    bound = LN2 / 16 * mpf("1.001")
    for name, degree in (("f32", 2), ("f64", 6)):
        rounding = ROUND[name]
        c, worst = fit(exp_rest, lambda r: abs(r), degree, -bound, bound, rounding, fixed=[0.5])
        show("EXP_POLY", c, name, f"relative to r: 2^{float(mp.log(worst, 2)):.2f}")
        step = LN2 / 8
        hi = rounding(step)
        show("INVERSE, STEP_HI, STEP_LO", [rounding(1 / step), hi, rounding(step - hi)], name)
        t = [rounding(mpf(2) ** (mpf(j) / 8)) for j in range(8)]
        show("TABLE", t, name)
        show("TABLE_LOG", [rounding(LN2 * j / 8 - log(t[j])) for j in range(8)], name)
        for label, base in (("2", mpf(2)), ("10", mpf(10))):
            unit = log(base)
            power = lambda r: (exp(r * unit) - 1) / r if abs(r) > 1e-20 else unit
            h = bound / unit
            c = least_squares(power, lambda r: mpf(1), degree + 2, h, rounding)
            error = lambda r: sum(x * r ** (i + 1) for i, x in enumerate(c)) / mp.expm1(r * unit) - 1
            worst = max(abs(error(h * k / 200)) for k in range(-200, 201) if k)
            show(f"EXP{label}_POLY", c, name, f"relative to p: 2^{float(mp.log(worst, 2)):.2f}")
            step = LN2 / unit / 8
            hi = rounding(step)
            show("INVERSE, STEP_HI, STEP_LO", [rounding(1 / step), hi, rounding(step - hi)], name)
            show("TABLE_LOG", [rounding((LN2 * j / 8 - log(t[j])) / unit) for j in range(8)], name)
            least = {"f32": -126, "f64": -1022}[name] * LN2 / unit
            ulp = mpf(2) ** (mp.floor(mp.log(-least, 2)) - {"f32": 23, "f64": 52}[name])
            show("MIN_NORMAL", [mp.ceil(least / ulp) * ulp], name)
        for label, bits in (("2", None), ("10", {"f32": 16, "f64": 42}[name])):
            k = 1 / log(mpf(int(label)))
            show(f"LOG{label} of e", [rounding(k), rounding(k - rounding(k))], name)
            if bits:
                hi = truncated(LN2 * k, bits)
                show(f"LOG{label} of 2", [hi, rounding(LN2 * k - hi)], name)


def log_family():
    start = struct.unpack("<I", struct.pack("<f", 0.7084))[0]
    ends = [mpf(struct.unpack("<f", struct.pack("<I", start + (j << 20)))[0]) for j in range(9)]
    inverses, most = [], mpf(0)
    for low, high in zip(ends, ends[1:]):
        # As few bits as keep r small: next to 1, where the logarithm is small, r is exact then.
        for bits in (4, 5, 6):
            floor = mp.floor(2 / (low + high) * 2**bits)
            candidates = [floor / 2**bits, (floor + 1) / 2**bits]
            r, c = min((max(abs(low * c - 1), abs(high * c - 1)), c) for c in candidates)
            if r < 0.0625:
                break
        # The logarithm of 2^e / c is then larger than r, or 0.
        assert r < 0.0625 and (c == 1 or abs(log(c)) >= r)
        inverses.append(c)
        most = max(most, r)
    c = least_squares(log_rest, lambda r: r * r, 4, most, f32)
    points = [most * k / 400 for k in range(-400, 401)]
    worst = max(r * r * abs(log_rest(r) - mp.polyval(c[::-1], r)) for r in points)
    show("LOG_POLY", c, "f32", f"relative to r: 2^{float(mp.log(worst, 2)):.2f}, |r| <= {float(most):.4f}")
    show("INVERSE", inverses, "f32")
    for label, unit in (("ln", mpf(1)), ("log2", LN2), ("log10", log(mpf(10)))):
        logs = [-log(c) / unit for c in inverses]
        highs = [mp.nint(x * 2**16) / mpf(2) ** 16 for x in logs]
        show(f"CENTRES of {label}", highs, "f32")
        show(f"CENTRES of {label}, rest", [f32(x - h) for x, h in zip(logs, highs)], "f32")
    hi = truncated(LN2, 16)
    show("LN2_HI, LN2_LO", [hi, f32(LN2 - hi)], "f32")
    a, b = mpf("0.6965") - 1, mpf("1.3931") - 1
    # 2 atanh(s) = s (2 + z R(z)), z = s^2
    r = lambda z: sum(2 * z**i / (2 * i + 3) for i in range(30))
    s = max(abs(a / (2 + a)), abs(b / (2 + b)))
    c, worst = fit(r, lambda z: z / 2, 6, mpf(0), s * s, f64)
    show("LOG_POLY", c, "f64", f"relative to log: 2^{float(mp.log(worst, 2)):.2f}")
    hi = truncated(LN2, 42)
    show("LN2_HI, LN2_LO", [hi, f64(LN2 - hi)], "f64")


def log1p_family():
    a, b = mpf("-0.25"), mpf("0.5")
    centre, h = (a + b) / 2, (b - a) / 2
    weight = lambda r: abs(r**3 / log1p(r)) if r else mpf(0)
    for (name, rounding), count in zip(ROUND.items(), (9, 22)):
        c = least_squares(log_rest, weight, count, h, rounding, centre)
        points = [centre + h * k / 400 for k in range(-400, 401)]
        error = lambda r: abs(log_rest(r) - sum(x * r**i for i, x in enumerate(c)))
        worst = max(weight(r) * error(r) for r in points)
        show("LOG1P_POLY", c, name, f"relative to log1p: 2^{float(mp.log(worst, 2)):.2f}")


def trig_family():
    bound = mpf("0.7915") ** 2
    for name, degree in (("f32", 3), ("f64", 6)):
        rounding = ROUND[name]
        s = lambda z: sum((-1) ** (i + 1) * z**i / mp.factorial(2 * i + 3) for i in range(18))
        c, worst = fit(s, lambda z: z, degree, mpf(0), bound, rounding)
        show("SIN_POLY", c, name, f"relative to r: 2^{float(mp.log(worst, 2)):.2f}")
        k = lambda z: sum((-1) ** i * z**i / mp.factorial(2 * i + 4) for i in range(30))
        degree = {"f32": 2, "f64": 5}[name]
        c, worst = fit(k, lambda z: z * z, degree, mpf(0), bound, rounding)
        show("COS_POLY", c, name, f"absolute: 2^{float(mp.log(worst, 2)):.2f}")
        p1 = rounding(pi / 2)
        p2 = rounding(pi / 2 - p1)
        show("2/PI, PI_2 in three parts", [rounding(2 / pi), p1, p2, rounding(pi / 2 - p1 - p2)], name)
        p2 = truncated(pi / 2 - p1, {"f32": 15, "f64": 44}[name])
        show("NEAR_PI_2, second part short", [p1, p2, rounding(pi / 2 - p1 - p2)], name)
    mp.prec = 2000
    bits = int(mp.floor(2 / mp.pi * mpf(2) ** (64 * 20)))
    mp.prec = 200
    print("// 2/PI, 64 bits a word, first word = first 64 bits behind the point")
    for i in range(20):
        print(f"    0x{(bits >> (64 * (19 - i))) & (2**64 - 1):016x},")
    hi = f64(pi / 2)
    show("PI_2 in two parts", [hi, f64(pi / 2 - hi)], "f64")


def odd_rest(f):
    """(f(√z) / √z - 1) / z of an odd function."""
    return lambda z: (f(sqrt(z)) / sqrt(z) - 1) / z


def fit_from_zero(label, f, weight, degrees, bound):
    """Coefficients of f on [0, bound], by least squares at Chebyshev's points."""
    for name, degree in degrees.items():
        count = degree + 1
        nodes = [bound * (1 + cos(pi * (2 * i + 1) / (4 * count))) / 2 for i in range(2 * count)]
        c = least_squares_at(nodes, f, weight, count, ROUND[name])
        points = [bound * mpf(i) / 1000 for i in range(1, 1001)]
        worst = max(abs(weight(x) * (f(x) - mp.polyval(c[::-1], x))) for x in points)
        show(label, c, name, f"relative to the result: 2^{float(mp.log(worst, 2)):.2f}")


def odd_series(label, f, degrees, bound):
    """P with f(x) = x + x³ P(x²) for |x| <= bound."""
    weight = lambda z: z * sqrt(z) / f(sqrt(z))
    fit_from_zero(label, odd_rest(f), weight, degrees, mpf(bound) ** 2)


def tan_family():
    odd_series("TANGENT", tan, {"f32": 6, "f64": 15}, "0.7915")


def inverse_trig_family():
    odd_series("ATAN", atan, {"f32": 9, "f64": 21}, 1)
    odd_series("ASIN", asin, {"f32": 5, "f64": 13}, "0.5")
    for name, rounding in ROUND.items():
        show("PI_2 in two parts", [rounding(pi / 2), rounding(pi / 2 - rounding(pi / 2))], name)


def hyperbolic_family():
    odd_series("SINH", sinh, {"f32": 2, "f64": 6}, "0.36")
    rest = lambda z: (cosh(sqrt(z)) - 1 - z / 2) / z**2
    bound = (LN2 / 16 * mpf("1.001")) ** 2
    fit_from_zero("COSH", rest, lambda z: z * z, {"f32": 0, "f64": 3}, bound)


def inverse_hyperbolic_family():
    odd_series("ASINH", asinh, {"f32": 5, "f64": 12}, "0.5")
    odd_series("ATANH", atanh, {"f32": 6, "f64": 14}, "0.5")
    near_one = lambda d: acosh(1 + d) / sqrt(2 * d)
    rest = lambda d: (near_one(d) - 1) / d
    fit_from_zero("ACOSH", rest, lambda d: d / near_one(d), {"f32": 5, "f64": 11}, mpf("0.5"))


def gelu_family():
    for name, short in (("f32", 12), ("f64", 26)):
        rounding = ROUND[name]
        c1 = 2 * sqrt(2 / pi)
        c2 = c1 * mpf("0.044715")
        hi = truncated(c1, short)
        show("C1_HI, C1_LO", [hi, rounding(c1 - hi)], name)
        hi = rounding(c2)
        show("C2_HI, C2_LO", [hi, rounding(c2 - hi)], name)


def tail_family():
    density = 1 / sqrt(2 * pi)
    ratio = lambda a: exp(a * a / 2) * erfc(a / sqrt(mpf(2))) / 2
    for name, degree, stretch in (("f32", 8, mpf(1)), ("f64", 18, mpf("2.625"))):
        rounding = ROUND[name]
        # Interval i is where 1 + a / stretch is in [2^e, 1.5 2^e) or [1.5 2^e, 2^(e+1)), e = i // 2.
        bound = lambda i: (mpf(2) ** (i // 2) * (1 + mpf(i % 2) / 2) - 1) * stretch
        rows, worst = [], mpf(0)
        for i in range(8):
            centre, h = (bound(i) + bound(i + 1)) / 2, (bound(i + 1) - bound(i)) / 2
            top = ratio(centre)
            slope = lambda d: (ratio(centre + d) - top) / d if abs(d) > 1e-25 else centre * top - density
            c = least_squares(slope, lambda d: abs(d) / ratio(centre + d), degree, h, rounding)
            high = rounding(top)
            rows.append([centre, high, rounding(top - high)] + c)
            for k in range(-200, 201):
                d = h * k / 200
                value = sum(x * d**j for j, x in enumerate(rows[i][1:2] + c)) + rows[i][2]
                worst = max(worst, abs(value / ratio(centre + d) - 1))
        # The last three bits of exponent and half: 6 for the first interval.
        slots = [rows[(slot + 2) % 8] for slot in range(8)]
        print(f"// {name} 1/stretch, 1/sqrt(2 pi); relative to R: 2^{float(mp.log(worst, 2)):.2f}")
        print("    " + ", ".join(text(rounding(x), name) for x in (1 / stretch, density)))
        for label, column in zip(["CENTRE", "RATIO", "RATIO_LOW"] + ["SLOPE"] * degree, zip(*slots)):
            show(label, column, name)


def rows_family(label, f, slope, double, saturated):
    """Rows of tables of an odd function that tends to 1, from |x| = `saturated` on 1 to within rounding;
    `slope` its derivative, `double` the function in double precision."""
    # An interval is a quarter of an octave, named by the exponent and two bits: bits >> 21 & 31.
    slot = lambda x: struct.unpack("I", struct.pack("f", x))[0] >> 21
    near_f32 = lambda x: struct.unpack("f", struct.pack("f", x))[0]
    start = lambda i: mpf(struct.unpack("f", struct.pack("I", i << 21))[0])
    first, last = slot(0.0625) - 1, slot(saturated)
    rows, worst = {}, mpf(0)
    for i in range(first, last + 1):
        a, b = start(i), min(start(i + 1), mpf(saturated))
        if i == first:
            # x + x q(x): the base is x itself.
            centre = top = mpf(0)
            c1 = f32(slope(mpf(0)) - 1)
            h = start(first + 1)
            weight = lambda d: d / f(d) if abs(d) > 1e-9 else 1 / slope(mpf(0))
            target = lambda d: (f(d) / d - 1 - c1) / d if abs(d) > 1e-9 else mpf(0)
        else:
            # The float near the middle at which f and its slope are nearest to floats.
            step, h = float((b - a) / 200000), float((b - a) / 2)
            middle = float((a + b) / 2)
            def miss(c):
                t, s = double(c), float(slope(c))
                return max(abs(near_f32(t) - t), h * abs(near_f32(s) - s)) / t
            near = (near_f32(middle + k * step) for k in range(-20000, 20001))
            centre = mpf(min(near, key=miss))
            top, c1 = f32(f(centre)), f32(slope(centre))
            h = max(centre - a, b - centre)
            weight = lambda d: d * d / f(centre + d)
            target = lambda d: ((f(centre + d) - top) / d - c1) / d
        rest = least_squares(target, weight, 5, h, f32)
        rows[i % 32] = [centre, top, c1] + rest
        for k in range(-100, 101):
            d = h * k / 100
            if d == 0 or (i > first and not a <= centre + d <= b):
                continue
            value = (d if i == first else top) + c1 * d + sum(c * d ** (j + 2) for j, c in enumerate(rest))
            worst = max(worst, abs(value / f(centre + d) - 1))
    note = f"relative: 2^{float(mp.log(worst, 2)):.2f}"
    print(f"// f32 {label} ROWS: centre, function, coefficients of d … d^6; {note}")
    for i in range(32):
        row = [text(x, "f32") for x in rows.get(i, [mpf(0)] * 8)]
        print("    [" + ", ".join(row[:4]) + ",\n     " + ", ".join(row[4:]) + "],")


def tanh_family():
    # In a double's arithmetic the slope of the search is exact enough, and many times faster.
    slope = lambda x: 1 - (math.tanh(x) if isinstance(x, float) else mp.tanh(x)) ** 2
    rows_family("tanh", mp.tanh, slope, math.tanh, 9.0625)


def gate_family():
    for name, degree, candidates in (("f32", 4, 200000), ("f64", 8, 3000)):
        rounding = ROUND[name]
        # 2^(j/8) e^-shift: the shift for which all eight are nearest to floats.
        if name == "f32":
            near = lambda x: struct.unpack("f", struct.pack("f", x))[0]
            miss = lambda s: max(abs(near(x) / x - 1) for x in (2 ** (j / 8) * math.exp(-s) for j in range(8)))
        else:
            miss = lambda s: max(abs(f64(x) / x - 1) for x in (mpf(2) ** (mpf(j) / 8) * exp(-mpf(s)) for j in range(8)))
        shift = mpf(min((1e-8 * i for i in range(1, candidates)), key=miss))
        t = [rounding(mpf(2) ** (mpf(j) / 8) * exp(-shift)) for j in range(8)]
        number, bits, place = ("f", "I", 20) if name == "f32" else ("d", "Q", 49)
        pattern = lambda x: struct.unpack(bits, struct.pack(number, float(x)))[0]
        moved = [struct.unpack(number, struct.pack(bits, pattern(x) - (j << place)))[0] for j, x in enumerate(t)]
        show("DECAY_TABLE", moved, name, f"within 2^{float(mp.log(miss(float(shift)), 2)):.2f}, then less j/8 in the exponent's place")
        f = lambda r: mp.expm1(r * LN2 / 8 + shift)
        c, worst = fit(f, lambda r: mpf(1), degree, mpf("-0.501"), mpf("0.501"), rounding)
        show("DECAY_POLY", c, name, f"relative to e^r: 2^{float(mp.log(worst, 2)):.2f}")
        step = 8 / LN2
        hi = rounding(step)
        show("DECAY_SCALE (negative)", [-hi, rounding(hi - step)], name)
        c1, c2 = -step * 2 * sqrt(2 / pi), -step * 2 * sqrt(2 / pi) * mpf("0.044715")
        hi = -truncated(-c1, 12 if name == "f32" else 26)
        show("gelu_tanh C1, cut and rest", [hi, rounding(c1 - hi)], name)
        hi = rounding(c2)
        show("gelu_tanh C2, rounded and rest", [hi, rounding(c2 - hi)], name)


def spacing(x, name):
    """Distance of x to the next float."""
    return mpf(2) ** (mp.floor(mp.log(abs(x), 2)) - {"f32": 23, "f64": 52}[name])


def near_exact(f, inverse, x, window, name):
    """A float near x where f is nearly a float: (the float, f there rounded)."""
    rounding = ROUND[name]
    target = rounding(f(x))
    step = spacing(target, name)
    best = None
    for k in sorted(range(-100, 101), key=abs):
        value = target + k * step
        if not 0 < value < 1:
            continue
        point = rounding(inverse(value))
        if best is None or abs(point - x) < window:
            miss = abs(f(point) - value) / step
            if best is None or miss < best[0]:
                best = (miss, point, value)
    return best[1], best[2]


def erf_family():
    slope = 2 / sqrt(pi)
    density = 2 / math.sqrt(math.pi)
    bell = lambda x: density * math.exp(-x * x) if isinstance(x, float) else slope * exp(-x * x)
    rows_family("erf", erf, bell, math.erf, 3.96)
    show("2/sqrt(pi)", [f32(slope)], "f32")

    # f64: intervals.
    rounding, own, count = f64, 3, 15
    scale = rounding(mpf("2.58"))
    rows, worst = [], mpf(0)
    for i in range(16):
        low, high = max((i - mpf(1) / 2) / scale, mpf(0)), (i + mpf(1) / 2) / scale
        if i < own:
            centre, value = rounding(i / scale), mpf(0)

            def f(d):
                a = abs(centre + d)
                return erf(a) / a - 1 if a > 1e-20 else slope - 1

            size = lambda d: 1
        else:
            centre, value = near_exact(erf, erfinv, i / scale, mpf("0.004"), "f64")
            steepness = slope * exp(-centre * centre)

            def f(d):
                return (erf(centre + d) - erf(centre)) / d if abs(d) > 1e-25 else steepness

            size = lambda d: abs(d) / erf(centre + d)
        h = max(high - centre, centre - low if i else high)
        c = least_squares(f, size, count, h, rounding)
        if i == 0:
            c[1::2] = [mpf(0)] * len(c[1::2])
        rows.append([centre, value] + c)
        for k in range(-100, 101):
            d = h * k / 100
            if low <= abs(centre + d) <= high:
                error = abs(size(d) * (sum(x * d**j for j, x in enumerate(c)) - f(d)))
                if i >= own:
                    error += abs(erf(centre) - value) / value
                worst = max(worst, error)
    note = f"relative: 2^{float(mp.log(worst, 2)):.2f}"
    show("SCALE, 2/sqrt(pi)", [scale, rounding(slope)], "f64", note)
    for label, column in zip(["CENTRE", "VALUE"] + ["SLOPE"] * count, zip(*rows)):
        show(label, column, "f64")


def erfc_family():
    ratio = lambda a: exp(a * a) * erfc(a)
    for name, count, stretch in (("f32", 7, mpf("0.6875")), ("f64", 14, mpf("1.875"))):
        rounding = ROUND[name]
        # Interval i is where 1 + a / stretch is in 2^e [1 + j/4, 1 + (j + 1)/4), i = 4 e + j.
        bound = lambda i: (mpf(2) ** (i // 4) * (1 + mpf(i % 4) / 4) - 1) * stretch
        rows, worst = [], mpf(0)
        for i in range(16):
            centre, h = (bound(i) + bound(i + 1)) / 2, (bound(i + 1) - bound(i)) / 2
            top = ratio(centre)
            flat = 2 * centre * top - 2 / sqrt(pi)
            slope = lambda d: (ratio(centre + d) - top) / d if abs(d) > 1e-25 else flat
            c = least_squares(slope, lambda d: abs(d) / ratio(centre + d), count, h, rounding)
            high = rounding(top)
            rows.append([centre, high, rounding(top - high)] + c)
            for k in range(-100, 101):
                d = h * k / 100
                value = sum(x * d**j for j, x in enumerate(rows[i][1:2] + c)) + rows[i][2]
                worst = max(worst, abs(value / ratio(centre + d) - 1))
        # Exponents are biased by an odd number: the first interval has 12 in its last four bits.
        slots = [rows[(slot + 4) % 16] for slot in range(16)]
        note = f"relative: 2^{float(mp.log(worst, 2)):.2f}"
        show("1/STRETCH", [rounding(1 / stretch)], name, note)
        for label, column in zip(["CENTRE", "RATIO", "RATIO_LOW"] + ["SLOPE"] * count, zip(*slots)):
            show(label, column, name)


def power_family():
    def rest(r):
        if abs(r) > 1e-3:
            return (log1p(r) - r + r**2 / 2) / r**3
        return sum((-1) ** i * r**i / (i + 3) for i in range(25))

    for name, bits, degree, cut in (("f32", 4, 4, 16), ("f64", 5, 8, 42)):
        rounding = ROUND[name]
        entries = 2**bits
        hi = mp.nint(LN2 * 2**cut) / mpf(2) ** cut
        inverses, limit = [], [mpf(0), mpf(0)]
        for i in range(entries):
            low, high = 1 + mpf(i) / entries, 1 + mpf(i + 1) / entries
            unit = mpf(2) ** -(bits + 1)
            nearest = mp.nint(2 / (low + high) / unit)
            c = min(
                (k * unit for k in (nearest - 1, nearest, nearest + 1)),
                key=lambda c: max(abs(low * c - 1), abs(high * c - 1)),
            )
            if i in (0, entries - 1):
                c = mpf(1) if i == 0 else mpf("0.5")
            inverses.append(c)
            limit = [min(limit[0], low * c - 1), max(limit[1], high * c - 1)]
            # What the exact remainder and the two-sum of the kernel need.
            assert max(abs(low * c - 1), abs(high * c - 1)) <= 2 * unit
            for e in (-1, 0, 1):
                base = abs(e * LN2 - log(c))
                q = max(abs(low * c - 1), abs(high * c - 1)) * mpf("1.05")
                assert base < mpf(2) ** -40 or base >= q, (i, e, base, q)
        c, worst = fit(rest, lambda r: r * r, degree, limit[0], limit[1], rounding)
        note = f"relative to r: 2^{float(mp.log(worst, 2)):.2f}, {float(limit[0])} to {float(limit[1])}"
        show("REST", c, name, note)
        show("LN2", [hi, rounding(LN2 - hi)], name)
        show("INVERSE", inverses, name)
        highs = [mp.nint(-log(c) * 2**cut) / mpf(2) ** cut for c in inverses]
        show("LOG", highs, name)
        show("LOG_LOW", [rounding(-log(c) - h) for c, h in zip(inverses, highs)], name)


def root_family():
    root = lambda m: m ** (mpf(-1) / 3)
    for name in ("f32", "f64"):
        rounding = ROUND[name]
        c, worst = fit(root, lambda m: 1 / root(m), 4, mpf(1), mpf(2), rounding)
        show("CBRT_START", c, name, f"relative: 2^{float(mp.log(worst, 2)):.2f}")
        factors = [mpf(2) ** (mpf(-j) / 3) for j in (0, 1, 0, 0, 0, 0, 0, -1)]
        show("CBRT_FACTOR", [rounding(x) for x in factors], name)
        c = [mpf(2) / 3, mpf(5) / 9, mpf(40) / 81, mpf(110) / 243]
        show("CBRT_SERIES", [rounding(x) for x in c], name)
        rows, worst = [], mpf(0)
        for slot in range(8):
            # Last bit of the biased exponent and first two of the mantissa.
            factor = 1 / sqrt(mpf(1 if slot >= 4 else 2))
            low, high = 1 + mpf(slot % 4) / 4, 1 + mpf(slot % 4 + 1) / 4
            f = lambda m: factor / sqrt(m)
            c, miss = fit(f, lambda m: 1 / f(m), 2, low, high, rounding)
            rows.append(c)
            worst = max(worst, miss)
        for column in zip(*rows):
            show("RSQRT_START", column, name, f"relative: 2^{float(mp.log(worst, 2)):.2f}")


FAMILIES = {
    "exp": exp_family,
    "log": log_family,
    "log1p": log1p_family,
    "trig": trig_family,
    "tan": tan_family,
    "inverse_trig": inverse_trig_family,
    "hyperbolic": hyperbolic_family,
    "inverse_hyperbolic": inverse_hyperbolic_family,
    "tail": tail_family,
    "tanh": tanh_family,
    "gate": gate_family,
    "erf": erf_family,
    "erfc": erfc_family,
    "power": power_family,
    "root": root_family,
}
for family in sys.argv[1:] or FAMILIES:
    FAMILIES[family]()

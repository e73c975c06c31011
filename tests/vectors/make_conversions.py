"""Writes tests/vectors/conversions.txt: bits of NumPy's conversions between all dtypes (run with NumPy).

A line is a dtype and another, then pairs of the bits of a value of the first and of that value as the second; NaN is
`nan`. NumPy defines no integer for a float out of range, where swath saturates as Rust does; and NumPy rounds twice on
the way to 16 bits. There the nearest value in exact arithmetic stands.
"""

import numpy as np
from fractions import Fraction

DTYPES = {
    "f16": np.float16, "bf16": None, "f32": np.float32, "f64": np.float64, "i64": np.int64, "i32": np.int32,
    "u32": np.uint32, "u8": np.uint8, "i8": np.int8, "i16": np.int16, "u16": np.uint16, "u64": np.uint64,
    "bool": np.bool_,
}
FLOATS = {"f16": (10, -14, 15), "bf16": (7, -126, 127), "f32": (23, -126, 127), "f64": (52, -1022, 1023)}


def nearest(x, name):
    """The bits of the float nearest to a fraction, ties to even."""
    digits, least, most = FLOATS[name]
    sign = (x < 0) << (digits + (most + 1).bit_length())
    x = abs(x)
    exponent = least
    while x >= Fraction(2) ** (exponent + 1):
        exponent += 1
    units = round(x / Fraction(2) ** (exponent - digits))
    # A mantissa that is full carries into the exponent.
    bits = units + ((exponent - least) << digits)
    return sign | min(bits, (2 * most + 1) << digits)


def value(bits, name):
    """The value of bits: a fraction, an integer, or a float that is not finite."""
    if name == "bf16":
        wide = np.uint32(bits << 16).view(np.float32)
    else:
        size = np.dtype(DTYPES[name]).itemsize
        wide = np.frombuffer(int(bits).to_bytes(size, "little"), DTYPES[name])[0]
    if name in FLOATS:
        return Fraction(float(wide)) if np.isfinite(wide) else float(wide)
    return int(wide)


def converted(bits, a, b):
    x = value(bits, a)
    is_finite = not isinstance(x, float)
    if b == "bool":
        return int(x != 0)
    if b in FLOATS:
        if not is_finite:
            digits, _, most = FLOATS[b]
            infinity = (2 * most + 1) << digits
            return "nan" if x != x else infinity | ((x < 0) << (digits + (most + 1).bit_length()))
        result = nearest(Fraction(x), b)
        if "bf16" not in (a, b) and b in ("f32", "f64"):
            with np.errstate(over="ignore"):
                array = np.array([bits], f"u{np.dtype(DTYPES[a]).itemsize}").view(DTYPES[a]).astype(DTYPES[b])
            # Zero has a sign that fractions lack.
            result = int(array.view(f"u{array.itemsize}")[0])
            assert result in (nearest(Fraction(x), b), 1 << (8 * array.itemsize - 1)), (a, b, x)
        return result
    info, size = np.iinfo(DTYPES[b]), 8 * np.dtype(DTYPES[b]).itemsize
    if a in FLOATS:
        whole = 0 if x != x else min(max(int(x) if is_finite else x, info.min), info.max)
        if is_finite and "bf16" != a and whole == int(x):
            assert int(DTYPES[a](float(x)).astype(DTYPES[b])) == whole, (a, b, x)
        return int(whole) % 2**size
    return int(np.array([x], DTYPES[a]).astype(DTYPES[b])[0]) % 2**size


def samples(name):
    if name == "bool":
        return [0, 1]
    if name in FLOATS:
        digits, _, most = FLOATS[name]
        infinity = (2 * most + 1) << digits
        sign = 1 << (digits + (most + 1).bit_length())
        numbers = [0, 0.5, 0.99, 1.5, 2, 126.99, 127.5, 128, 254.99, 255.5, 256, 32767.9, 32768, 65504, 65535.5, 65536]
        numbers += [2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1024, 2**63, 2**64 - 2048, 2**64, 1e30, 1e-30]
        bits = sorted({nearest(Fraction(x), name) for x in numbers} | {1, infinity - 1, infinity})
        return bits + [bit | sign for bit in bits[1:]] + [infinity | 1 << (digits - 1)]
    info, size = np.iinfo(DTYPES[name]), 8 * np.dtype(DTYPES[name]).itemsize
    numbers = [0, 1, -1, 2, 100, 127, 128, -128, -129, 255, 256, 2049, 32767, 32768, -32768, 65519, 65520, 65535, 65536]
    numbers += [2**24 + 1, 2**31 - 1, 2**31, -(2**31), 2**32 - 1, 2**53 + 1, 2**62 + 2**54 + 1, 2**63 - 1, 2**63]
    numbers += [2**63 + 2**10 + 1, 2**63 + 2**39 + 1, 2**63 + 2**55, 2**63 + 2**55 + 1, 2**64 - 1, 2**64 - 2, -(2**63), -12345]
    return sorted({x % 2**size for x in numbers if info.min <= x <= info.max})


with open("tests/vectors/conversions.txt", "w") as file:
    for a in DTYPES:
        for b in DTYPES:
            results = [(bits, converted(bits, a, b)) for bits in samples(a)]
            text = " ".join(f"{x:x}:{y if y == 'nan' else format(y, 'x')}" for x, y in results)
            file.write(f"{a} {b} {text}\n")

#!/usr/bin/env python3
"""Sends NumPy's arrays through files that swath reads and writes, and compares them.

usage: python check_files.py PROGRAM        (the example `tensors`, built; numpy)
"""
import pathlib, subprocess, sys, tempfile

import numpy as np


def arrays():
    rng = np.random.default_rng(55)
    for name in "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1".split():
        for shape in [(), (0, 3), (1,), (2, 3), (5, 1, 4), (2, 2, 2, 2)]:
            for order in "<>":
                dtype = np.dtype(order + name)
                most = 2 if name == "b1" else 256
                bits = rng.integers(0, most, (*shape, dtype.itemsize), dtype="u1")
                x = np.ascontiguousarray(bits).view(dtype).reshape(shape)
                label = f"{name}-{'x'.join(map(str, shape))}-{'le' if order == '<' else 'be'}"
                yield label, x
                yield label + "-fortran", np.asfortranarray(x)


def same(x, y):
    x = x.astype(x.dtype.newbyteorder("="))
    return (x.shape, x.dtype, x.tobytes()) == (y.shape, y.dtype, y.tobytes())


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        expected = dict(arrays())
        for write in (np.savez, np.savez_compressed):
            write(folder / "from.npz", **expected)
            subprocess.run([program, folder / "from.npz", folder / "to.npz"], check=True)
            found = np.load(folder / "to.npz")
            assert sorted(found.files) == sorted(expected), "names differ"
            for name, x in expected.items():
                assert same(x, found[name]), (name, x, found[name])
        listed = subprocess.run([program, folder / "from.npz"], check=True, capture_output=True, text=True).stdout
        assert len(listed.splitlines()) == len(expected) + 1, listed
        print(f"{len(expected)} arrays came back as they were, from plain and compressed archives")


if __name__ == "__main__":
    main(sys.argv[1])

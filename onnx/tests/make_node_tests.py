"""Writes ONNX's node tests, of the package `onnx`, as one file.

    python onnx/tests/make_node_tests.py FILE [NAMES_FILE]

`onnx/tests/node.rs` runs them. With a file of names, one to a line, only these are written. The file is a message of
protocol buffers: a list of cases (field 1) with a name (1), a model (2), inputs (3), outputs (4), relative (5) and
absolute (6) tolerance; a value is a tensor (1) or a sequence of tensors (2), or has neither if it is left out.
"""

import struct
import sys
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def field(number, content):
    length, prefix = len(content), bytes([number << 3 | 2])
    while length >= 128:
        prefix += bytes([length & 127 | 128])
        length >>= 7
    return prefix + bytes([length]) + content


def double(number, value):
    return bytes([number << 3 | 1]) + struct.pack("<d", value)


def value(x):
    if x is None:
        return b""
    if isinstance(x, onnx.TensorProto):
        return field(1, x.SerializeToString())
    if isinstance(x, list):
        tensors = [numpy_helper.from_array(np.asarray(item)).SerializeToString() for item in x if item is not None]
        return field(2, b"".join(field(3, tensor) for tensor in tensors))
    return field(1, numpy_helper.from_array(np.asarray(x)).SerializeToString())


def main():
    warnings.simplefilter("ignore")
    names = set(open(sys.argv[2]).read().split()) if len(sys.argv) > 2 else None
    count, out = 0, bytearray()
    for case in collect_testcases(None):
        if names is not None and case.name not in names:
            continue
        for inputs, outputs in case.data_sets:
            content = field(1, case.name.encode()) + field(2, case.model.SerializeToString())
            content += b"".join(field(3, value(x)) for x in inputs)
            content += b"".join(field(4, value(x)) for x in outputs)
            out += field(1, content + double(5, case.rtol) + double(6, case.atol))
            count += 1
    open(sys.argv[1], "wb").write(out)
    print(f"{count} cases, {len(out) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()

"""Writes published models with inputs and ONNX Runtime's outputs, as cases for `onnx/tests/node.rs`.

    python onnx/tests/make_model_cases.py FILE FOLDER

The models are those below FOLDER, into which the wheels of the packages silero-vad, magika, rapidocr-onnxruntime, rapidocr
and basic-pitch were unpacked.
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime

from make_node_tests import double, field, value

RNG = np.random.default_rng(1)
EXTENTS = {
    "ch_PP-OCRv4_det": (1, 3, 320, 416), "PP-OCRv6_det": (1, 3, 320, 416), "ch_PP-OCRv4_rec": (2, 3, 48, 320),
    "PP-OCRv6_rec": (2, 3, 48, 320), "_cls_": (2, 3, 48, 192),
}


def inputs_of(name, session):
    for part, shape in EXTENTS.items():
        if part in name:
            return [RNG.standard_normal(shape, dtype=np.float32)]
    if "nmp" in name:
        return [RNG.standard_normal((1, 43844, 1), dtype=np.float32)]
    if "magika" in name or name == "model":
        return [RNG.integers(0, 256, (2, 2048)).astype(np.int32)]
    given = []
    for port in session.get_inputs():
        shape = [extent if isinstance(extent, int) else None for extent in port.shape]
        if port.name == "sr":
            given.append(np.array(16000, dtype=np.int64))
        elif port.name == "input":
            rows = 5 if "sequence" in name else 1
            given.append((0.1 * RNG.standard_normal((rows, 576 if rows == 5 or len(port.shape) == 2 and port.shape[-1] == 576 else 512))).astype(np.float32))
        elif port.name == "state":
            given.append(np.zeros((2, 1, 128), dtype=np.float32))
        else:
            given.append(np.zeros([1 if d is None else d for d in shape], dtype=np.float32))
    return given


def main():
    out, count = bytearray(), 0
    for path in sorted(pathlib.Path(sys.argv[2]).rglob("*.onnx")):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        given = inputs_of(path.stem, session)
        names = [port.name for port in session.get_inputs()]
        results = session.run(None, dict(zip(names, given)))
        model = onnx.load(path)
        initial = {tensor.name for tensor in model.graph.initializer}
        by_name = dict(zip(names, given))
        ports = [port.name for port in model.graph.input]
        content = field(1, path.stem.encode()) + field(2, path.read_bytes())
        content += b"".join(field(3, value(by_name.get(port))) for port in ports if port in by_name or port in initial)
        content += b"".join(field(4, value(result)) for result in results)
        largest = max(float(np.abs(result).max()) for result in results if result.size)
        out += field(1, content + double(5, 0.0) + double(6, 3e-5 * max(1.0, largest)))
        count += 1
        print(path.name, [x.shape for x in given], "largest output", largest)
    open(sys.argv[1], "wb").write(out)
    print(count, "cases")


if __name__ == "__main__":
    main()

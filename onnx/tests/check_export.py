"""Runs the models that the test `export` wrote with ONNX Runtime: `check_export.py FOLDER [PART OF A NAME …]`.

Each folder within has `model.onnx`, and folders of runs with inputs `in_NAME.npy` and expected outputs `out_NAME.npy`.
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime

# Relative to 1 + |expected|. Half floats round at other places.
TOLERANCE = {np.dtype(np.float16): 4e-3, np.dtype(np.float32): 2e-5, np.dtype(np.float64): 2e-5}


def difference(found, expected):
    """The largest difference relative to 1 + |expected|, 0 where both are the same infinity or NaN."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        raise ValueError(f"{found.dtype} {found.shape} in place of {expected.dtype} {expected.shape}")
    if found.dtype.kind not in "f":
        return 0.0 if (found == expected).all() else np.inf
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    with np.errstate(invalid="ignore"):
        error = np.abs(found - expected) / (1 + np.abs(expected))
    return float(np.nan_to_num(np.where(same, 0, error), nan=np.inf).max(initial=0))


def check(folder):
    """The largest difference of a model's outputs, and its number of nodes."""
    model = onnx.load(folder / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    largest = 0.0
    for run in sorted(folder.glob("run*")):
        inputs = {file.stem[3:]: np.load(file) for file in run.glob("in_*.npy")}
        names = [output.name for output in session.get_outputs()]
        assert len(names) == len(list(run.glob("out_*.npy")))
        for name, found in zip(names, session.run(names, inputs)):
            expected = np.load(run / f"out_{name}.npy")
            error = difference(np.asarray(found), expected)
            if error > TOLERANCE.get(expected.dtype, 0):
                raise ValueError(f"{run.name} {name} differs by {error:.2e}")
            largest = max(largest, error if expected.dtype != np.float16 else 0)
    return largest, len(model.graph.node)


def main(root, *parts):
    onnxruntime.set_default_logger_severity(3)
    folders = sorted(path.parent for path in pathlib.Path(root).glob("*/model.onnx"))
    folders = [folder for folder in folders if not parts or any(part in folder.name for part in parts)]
    failed, errors = 0, {}
    for folder in folders:
        try:
            errors[folder.name], nodes = check(folder)
        except Exception as error:  # Each model is reported.
            failed += 1
            print(f"{folder.name}: {str(error)[:400]}")
    for name, error in sorted(errors.items(), key=lambda item: -item[1])[:12]:
        print(f"{error:.1e}  {name}")
    print(f"{len(folders) - failed} of {len(folders)} models agree")
    return 1 if failed or not folders else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

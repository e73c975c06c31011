#!/usr/bin/env python3
"""Operations of tensors of swath, NumPy and PyTorch in turn, on one thread.

usage: PYTHON benches/peers/tensors.py [ROUNDS] [WORD...]

PYTHON has numpy and, if PyTorch is to be timed, torch. Builds the comparison with other crates, then runs
ROUNDS times (default 5) swath's cases of it, chosen by the words in their names, and the same operations of
NumPy and PyTorch, each of which makes a new array. Prints swath's median time an element and the median
ratio of their times over swath's.
"""
import os, re, statistics, subprocess, sys, time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SHAPES = (4096, 1024), (1024, 1024), (4096, 4096)
IMAGES, SWAPPED = (32, 64, 128, 64), (0, 2, 1, 3)
THREADS = {name: "1" for name in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}


def operations(package):
    """Place of the shape in SHAPES, name, and call of the operands."""
    if package == "numpy":
        import numpy as np

        contiguous = np.ascontiguousarray
        special = (
            ("argmax axis 1", lambda o: np.argmax(o.a, 1)),
            ("max", lambda o: np.max(o.a)),
            ("max axis 1", lambda o: np.max(o.a, 1)),
            ("variance axis 1", lambda o: np.var(o.a, 1, ddof=1)),
            ("cumsum axis 1", lambda o: np.cumsum(o.a, 1)),
            ("where_cond", lambda o: np.where(o.mask, o.a, o.b)),
            ("lt", lambda o: np.less(o.a, o.b)),
            ("to f16", lambda o: o.a.astype(np.float16)),
            ("to i64", lambda o: o.a.astype(np.int64)),
            ("gather axis 1", lambda o: np.take_along_axis(o.a, o.columns, 1)),
            ("index_select axis 0", lambda o: np.take(o.a, o.rows, 0)),
        )
        images = lambda o: o.a.reshape(IMAGES).transpose(SWAPPED)
        lib = np
    else:
        import torch

        contiguous = torch.Tensor.contiguous
        special = (
            ("argmax axis 1", lambda o: torch.argmax(o.a, 1)),
            ("max", lambda o: torch.max(o.a)),
            ("max axis 1", lambda o: torch.amax(o.a, 1)),
            ("variance axis 1", lambda o: torch.var(o.a, 1)),
            ("softmax", lambda o: torch.softmax(o.a, 1)),
            ("layer_norm", lambda o: torch.layer_norm(o.a, o.row.shape, o.row, o.row, 1e-5)),
            ("cumsum axis 1", lambda o: torch.cumsum(o.a, 1)),
            ("where_cond", lambda o: torch.where(o.mask, o.a, o.b)),
            ("lt", lambda o: torch.lt(o.a, o.b)),
            ("to f16", lambda o: o.a.to(torch.float16)),
            ("to i64", lambda o: o.a.to(torch.int64)),
            ("gather axis 1", lambda o: torch.gather(o.a, 1, o.columns)),
            ("index_select axis 0", lambda o: torch.index_select(o.a, 0, o.rows)),
        )
        images = lambda o: o.a.view(IMAGES).permute(SWAPPED)
        lib = torch
    yield 0, "sum", lambda o: lib.sum(o.a)
    yield 0, "sum axis 0", lambda o: lib.sum(o.a, 0)
    yield 0, "sum axis 1", lambda o: lib.sum(o.a, 1)
    yield 0, "mean", lambda o: lib.mean(o.a)
    for name, call in special:
        yield 0, name, call
    yield 1, "a + row 1024", lambda o: o.a + o.row
    yield 1, "a + column 1024", lambda o: o.a + o.column
    yield 1, "a + scalar 1024", lambda o: o.a + 0.5
    yield 1, "a.t() + b 1024", lambda o: o.a.T + o.b
    yield 2, "a.t() + b 4096", lambda o: o.a.T + o.b
    yield 2, "a.t() contiguous 4096", lambda o: contiguous(o.a.T)
    yield 2, "permute(0, 2, 1, 3)", lambda o: contiguous(images(o))


class Operands:
    def __init__(self, shape, package):
        import numpy as np

        random = np.random.default_rng(1)
        arrays = {name: random.uniform(-4, 4, shape).astype(np.float32) for name in "ab"}
        arrays["row"], arrays["column"] = arrays["b"][0].copy(), arrays["b"][:, :1].copy()
        arrays["mask"] = arrays["b"] < 0
        arrays["columns"] = random.integers(0, shape[1], shape)
        arrays["rows"] = random.integers(0, shape[0], shape[0])
        if package == "torch":
            import torch

            arrays = {name: torch.from_numpy(array) for name, array in arrays.items()}
        self.__dict__.update(arrays)


def measure(package, words):
    if package == "torch":
        import torch

        torch.set_num_threads(1)
        torch.set_grad_enabled(False)
    operands = {}
    for shape, name, call in operations(package):
        if words and not any(word in f"tensor {name}" for word in words):
            continue
        if shape not in operands:
            operands = {shape: Operands(SHAPES[shape], package)}
        times = []
        for _ in range(16):
            start = time.perf_counter()
            call(operands[shape])
            times.append(time.perf_counter() - start)
        print(f"{name}: {statistics.median(times[1:]) * 1e9 / (SHAPES[shape][0] * SHAPES[shape][1]):.5f} ns")


def times_of(command):
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ | THREADS)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{run.stdout}{run.stderr}")
    return {name: float(ns) for name, ns in re.findall(r"^(\S.*?):? +([0-9.]+) ns", run.stdout, re.M)}


def main(rounds, words):
    from importlib.util import find_spec

    cargo = ["--release", "--manifest-path", os.path.join(ROOT, "benches", "peers", "Cargo.toml")]
    subprocess.run(["cargo", "build", *cargo], check=True, cwd=ROOT)
    swath, ratios = {}, {}
    for _ in range(rounds):
        ours = times_of(["cargo", "run", *cargo, "--", "--alone", *(words or ["tensor"])])
        for package in filter(find_spec, ("numpy", "torch")):
            theirs = times_of([sys.executable, "-W", "ignore", __file__, "--theirs", package, *words])
            for name in theirs.keys() & ours.keys():
                ratios.setdefault(name, {}).setdefault(package, []).append(theirs[name] / ours[name])
        for name, ns in ours.items():
            swath.setdefault(name, []).append(ns)
    for name in filter(ratios.get, swath):
        text = ", ".join(f"{package} {statistics.median(list_):.2f}" for package, list_ in ratios[name].items())
        print(f"{name:22} {statistics.median(swath[name]):9.3f} ns   over swath's: {text}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--theirs"]:
        measure(sys.argv[2], sys.argv[3:])
    else:
        count = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else 5
        main(count, [word for word in sys.argv[1:] if not word.isdigit()])

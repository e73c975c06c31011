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
THREADS = {name: "1" for name in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}


def shape_of(name):
    """Name of the operation of a case, and the shape: src/tensors.rs has them."""
    operation, rows, columns = re.fullmatch(r"(.*?)(?: (1024|4096)| of (\d+))?", name).groups()
    if columns:
        return operation, ((4 << 20) // int(columns) // 2048 * 2048, int(columns))
    return operation, (int(rows),) * 2 if rows else (4096, 1024)


def operations(package):
    """Call of the operands by name."""
    if package == "numpy":
        import numpy as np

        contiguous = np.ascontiguousarray
        special = {
            "argmax axis 1": lambda o: np.argmax(o.a, 1),
            "max": lambda o: np.max(o.a),
            "max axis 1": lambda o: np.max(o.a, 1),
            "variance axis 1": lambda o: np.var(o.a, 1, ddof=1),
            "cumsum axis 1": lambda o: np.cumsum(o.a, 1),
            "where_cond": lambda o: np.where(o.mask, o.a, o.b),
            "lt": lambda o: np.less(o.a, o.b),
            "to f16": lambda o: o.a.astype(np.float16),
            "to i64": lambda o: o.a.astype(np.int64),
            "gather axis 1": lambda o: np.take_along_axis(o.a, o.columns, 1),
            "index_select axis 0": lambda o: np.take(o.a, o.rows, 0),
            "permute(0, 2, 1, 3)": lambda o: contiguous(o.a.reshape(o.images).transpose(0, 2, 1, 3)),
            "squares.t() + b": lambda o: o.a.reshape(o.squares).transpose(0, 2, 1) + o.b.reshape(o.squares),
            "a.flip(1).t() + b": lambda o: o.a[:, ::-1].T + o.b,
        }
        lib = np
    else:
        import torch

        contiguous = torch.Tensor.contiguous
        special = {
            "argmax axis 1": lambda o: torch.argmax(o.a, 1),
            "max": lambda o: torch.max(o.a),
            "max axis 1": lambda o: torch.amax(o.a, 1),
            "variance axis 1": lambda o: torch.var(o.a, 1),
            "logsumexp axis 1": lambda o: torch.logsumexp(o.a, 1),
            "softmax": lambda o: torch.softmax(o.a, 1),
            "layer_norm": lambda o: torch.layer_norm(o.a, o.row.shape, o.row, o.row, 1e-5),
            "cumsum axis 1": lambda o: torch.cumsum(o.a, 1),
            "where_cond": lambda o: torch.where(o.mask, o.a, o.b),
            "lt": lambda o: torch.lt(o.a, o.b),
            "to f16": lambda o: o.a.to(torch.float16),
            "to i64": lambda o: o.a.to(torch.int64),
            "gather axis 1": lambda o: torch.gather(o.a, 1, o.columns),
            "index_select axis 0": lambda o: torch.index_select(o.a, 0, o.rows),
            "permute(0, 2, 1, 3)": lambda o: contiguous(o.a.view(o.images).permute(0, 2, 1, 3)),
            "squares.t() + b": lambda o: o.a.view(o.squares).permute(0, 2, 1) + o.b.view(o.squares),
            "a.flip(1).t() + b": lambda o: torch.flip(o.a, (1,)).T + o.b,
        }
        lib = torch
    return special | {
        "sum": lambda o: lib.sum(o.a),
        "sum axis 0": lambda o: lib.sum(o.a, 0),
        "sum axis 1": lambda o: lib.sum(o.a, 1),
        "mean": lambda o: lib.mean(o.a),
        "a + row": lambda o: o.a + o.row,
        "a + column": lambda o: o.a + o.column,
        "a + scalar": lambda o: o.a + 0.5,
        "a.t() + b": lambda o: o.a.T + o.b,
        "a.t() contiguous": lambda o: contiguous(o.a.T),
        "-a[:, ::2].t()": lambda o: -o.a[:, ::2].T,
    }


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
        run = min(shape[1], 64)
        self.images = 32, 64, shape[0] * shape[1] // (32 * 64 * run), run
        self.squares = shape[0] // shape[1], shape[1], shape[1]


def measure(package, names):
    if package == "torch":
        import torch

        torch.set_num_threads(1)
        torch.set_grad_enabled(False)
    calls, made, operands = operations(package), None, None
    for name in names:
        operation, shape = shape_of(name)
        if operation not in calls:
            continue
        if shape != made:
            made, operands = shape, Operands(shape, package)
        times = []
        for _ in range(16):
            start = time.perf_counter()
            calls[operation](operands)
            times.append(time.perf_counter() - start)
        print(f"{name}: {statistics.median(times[1:]) * 1e9 / (shape[0] * shape[1]):.5f} ns")


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
            theirs = times_of([sys.executable, "-W", "ignore", __file__, "--theirs", package, *ours])
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

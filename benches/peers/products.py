#!/usr/bin/env python3
"""Products of square matrices by swath, NumPy and PyTorch in turn.

usage: PYTHON benches/peers/products.py [ROUNDS] [WORD...]

PYTHON has numpy and, if PyTorch is to be timed, torch. Builds the comparison with other crates, then runs
ROUNDS times (default 5), on one thread and on two, swath's cases of it, chosen by the words in their names
("f32 NN", "1024"), and the same products of NumPy and PyTorch, each of which makes a new array. Prints
swath's median time and the median ratio of their times over swath's.
"""
import os, re, statistics, subprocess, sys, time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LIMITS = "RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"
CASE = re.compile(r"product (f32|f64) (NN|NT) (\d+)")


def measure(package, threads, names):
    """Prints the time of a package for each of swath's cases."""
    import numpy as np

    if package == "torch":
        import torch

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
    for name in names:
        dtype, layout, size = CASE.fullmatch(name).groups()
        random = np.random.default_rng(1)
        type_ = {"f32": np.float32, "f64": np.float64}[dtype]
        a, b = (random.uniform(-4, 4, (int(size), int(size))).astype(type_) for _ in "ab")
        if package == "torch":
            a, b = torch.from_numpy(a), torch.from_numpy(b)
        b = b.T if layout == "NT" else b
        start = time.perf_counter()
        a @ b
        calls = max(1, min(10_000, int(0.5e-3 / (time.perf_counter() - start))))
        times = []
        for _ in range(32):
            start = time.perf_counter()
            for _ in range(calls):
                a @ b
            times.append((time.perf_counter() - start) / calls)
        print(f"{name}: {statistics.median(times[1:]) * 1e6:.3f} us")


def times_of(command, threads):
    limits = {name: str(threads) for name in LIMITS}
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ | limits)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{run.stdout}{run.stderr}")
    return {name: float(us) for name, us in re.findall(r"^(product .*?):? +([0-9.]+) us", run.stdout, re.M)}


def main(rounds, words):
    from importlib.util import find_spec

    cargo = ["--release", "--manifest-path", os.path.join(ROOT, "benches", "peers", "Cargo.toml")]
    subprocess.run(["cargo", "build", *cargo], check=True, cwd=ROOT)
    for threads in 1, 2:
        swath, ratios = {}, {}
        for _ in range(rounds):
            words = words or ["product"]
            ours = times_of(["cargo", "run", *cargo, "--", "--alone", *words], threads)
            for package in filter(find_spec, ("numpy", "torch")):
                command = [sys.executable, __file__, "--theirs", package, str(threads), *ours]
                for name, us in times_of(command, threads).items():
                    ratios.setdefault(name, {}).setdefault(package, []).append(us / ours[name])
            for name, us in ours.items():
                swath.setdefault(name, []).append(us)
        print(f"{threads} thread(s)")
        for name, all_ in swath.items():
            text = (f"{package} {statistics.median(list_):.2f}" for package, list_ in ratios[name].items())
            print(f"{name:24} {statistics.median(all_):11.2f} us   over swath's: {', '.join(text)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--theirs"]:
        measure(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    else:
        count = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else 5
        main(count, sys.argv[2:] if sys.argv[1:] and sys.argv[1].isdigit() else sys.argv[1:])

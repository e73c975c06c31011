#!/usr/bin/env python3
"""Products of square matrices by swath, NumPy and PyTorch in turn, or by a library through swath and directly.

usage: PYTHON benches/peers/products.py [--blas=PATH] [ROUNDS] [WORD...]

PYTHON has numpy and, if PyTorch is to be timed, torch. Builds the comparison with other crates, then runs
ROUNDS times (default 5), on one thread and on two, swath's cases of it, chosen by the words in their names
("f32 NN", "1024"), and the same products of NumPy and PyTorch, each of which makes a new array. Prints
swath's median time and the median ratio of their times over swath's.

--blas=PATH has swath take this library (feature `blas-dynamic`), and calls its CBLAS functions from a process
that does nothing else, with the library's own threads, into an array that is there. OPENBLAS_CORETYPE and
the like hold for both.
"""
import ctypes, os, re, statistics, subprocess, sys, time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LIMITS = "RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"
CASE = re.compile(r"product (f32|f64) (NN|NT) (\d+)")


def direct(path):
    """The product of two matrices by a BLAS library; `c` is a row-major matrix."""
    library = ctypes.CDLL(path)
    row_major, plain, transposed = 101, 111, 112

    def product(a, b, c):
        n, pointer = ctypes.c_int(len(a)), ctypes.c_void_p
        function, real = {
            "float32": (library.cblas_sgemm, ctypes.c_float), "float64": (library.cblas_dgemm, ctypes.c_double)
        }[a.dtype.name]
        b_is = plain if b.flags.c_contiguous else transposed
        a, b, c = (pointer(x.ctypes.data) for x in (a, b, c))
        function(row_major, plain, b_is, n, n, n, real(1), a, n, b, n, real(0), c, n)

    return product


def measure(package, threads, names):
    """Prints the time of a package, or of a library at this path, for each of swath's cases."""
    import numpy as np

    if package == "torch":
        import torch

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
    library = direct(package) if os.sep in package else None
    for name in names:
        dtype, layout, size = CASE.fullmatch(name).groups()
        random = np.random.default_rng(1)
        type_ = {"f32": np.float32, "f64": np.float64}[dtype]
        a, b = (random.uniform(-4, 4, (int(size), int(size))).astype(type_) for _ in "ab")
        if package == "torch":
            a, b = torch.from_numpy(a), torch.from_numpy(b)
        b = b.T if layout == "NT" else b
        run = lambda: a @ b
        if library:
            c = np.empty_like(a)
            run = lambda: library(a, b, c)
            run()
            assert np.allclose(c, a @ b, 1e-4, 1e-4 * len(a)), name
        start = time.perf_counter()
        run()
        calls = max(1, min(10_000, int(0.5e-3 / (time.perf_counter() - start))))
        times = []
        for _ in range(32):
            start = time.perf_counter()
            for _ in range(calls):
                run()
            times.append((time.perf_counter() - start) / calls)
        print(f"{name}: {statistics.median(times[1:]) * 1e6:.3f} us")


def times_of(command, threads, blas):
    environment = os.environ | {name: str(threads) for name in LIMITS}
    if blas:
        environment["SWATH_BLAS"] = blas
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{run.stdout}{run.stderr}")
    return {name: float(us) for name, us in re.findall(r"^(product .*?):? +([0-9.]+) us", run.stdout, re.M)}


def main(blas, rounds, words):
    from importlib.util import find_spec

    cargo = ["--release", "--manifest-path", os.path.join(ROOT, "benches", "peers", "Cargo.toml")]
    cargo += ["--features", "blas-dynamic"] if blas else []
    rivals = [blas] if blas else list(filter(find_spec, ("numpy", "torch")))
    subprocess.run(["cargo", "build", *cargo], check=True, cwd=ROOT)
    for threads in 1, 2:
        swath, ratios = {}, {}
        for _ in range(rounds):
            words = words or ["product"]
            ours = times_of(["cargo", "run", *cargo, "--", "--alone", *words], threads, blas)
            for package in rivals:
                command = [sys.executable, __file__, "--theirs", package, str(threads), *ours]
                for name, us in times_of(command, threads, None).items():
                    ratios.setdefault(name, {}).setdefault(package, []).append(us / ours[name])
            for name, us in ours.items():
                swath.setdefault(name, []).append(us)
        print(f"{threads} thread(s)")
        for name, all_ in swath.items():
            text = (f"{os.path.basename(package)} {statistics.median(list_):.2f}" for package, list_ in ratios[name].items())
            print(f"{name:24} {statistics.median(all_):11.2f} us   over swath's: {', '.join(text)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--theirs"]:
        measure(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    else:
        path = next((word[7:] for word in sys.argv[1:] if word.startswith("--blas=")), None)
        given = [word for word in sys.argv[1:] if not word.startswith("--blas=")]
        count = int(given.pop(0)) if given and given[0].isdigit() else 5
        main(path and os.path.abspath(path), count, given)

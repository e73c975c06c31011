#!/usr/bin/env python3
"""Convolutions, a pooling and the costs of a call and of a node by swath and PyTorch in turn.

usage: PYTHON benches/peers/convolution.py [ROUNDS] [WORD...]

PYTHON has torch. Builds the comparison with other crates, then runs ROUNDS times (default 5), on one thread
and on two, swath's cases of it, chosen by the words in their names (by default "convolution" and "overhead"),
and the same calls of PyTorch. Prints swath's median time, of chains the time a node, and the median ratio of
PyTorch's times over swath's.
"""
import os, re, statistics, subprocess, sys, time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# Of benches/support/cases.rs.
NODES, FACTOR = 10_000, 0.9999


def call_of(name):
    """PyTorch's call for a case of swath."""
    import torch
    from torch.nn.functional import conv2d, max_pool2d

    shapes = [tuple(map(int, shape.split("x"))) for shape in re.findall(r"\d+(?:x\d+)+", name)]
    tracked = name.endswith(("tracked", "backward"))
    if len(shapes) == 2:
        x, w = (torch.randn(shape, requires_grad=tracked) for shape in shapes)
        options = {"padding": w.shape[2] // 2, "groups": x.shape[1] // w.shape[1]}
        if not tracked:
            return lambda: conv2d(x, w, **options)
        ones = torch.ones_like(conv2d(x, w, **options))
        return lambda: torch.autograd.grad(conv2d(x, w, **options), (x, w), ones)
    if shapes:
        x = torch.randn(shapes[0])
        return lambda: max_pool2d(x, 2)
    if name.startswith("add"):
        a, b = (torch.randn(8, requires_grad=tracked) for _ in "ab")
        return lambda: a + b
    x = torch.ones(1, requires_grad=tracked)

    def chain():
        y = x
        for _ in range(NODES):
            y = y * FACTOR
        return y

    return chain if not name.endswith("backward") else lambda: torch.autograd.grad(chain(), x)


def measure(threads, names):
    import torch

    torch.set_num_threads(threads)
    for name in names:
        run = call_of(name)
        run()
        start = time.perf_counter()
        run()
        calls = max(1, min(10_000, int(0.5e-3 / (time.perf_counter() - start))))
        times = []
        for _ in range(31):
            start = time.perf_counter()
            for _ in range(calls):
                run()
            times.append((time.perf_counter() - start) / calls)
        nanoseconds = statistics.median(times) * 1e9 / (NODES if name.startswith("chain") else 1)
        print(f"{name}: {nanoseconds:.3f} ns")


def times_of(command, threads):
    """Nanoseconds by name, from lines of swath's program or of `measure`."""
    environment = os.environ | {name: str(threads) for name in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS")}
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{run.stdout}{run.stderr}")
    lines = re.findall(r"^(\S.*?):? +([0-9.]+) ([un])s", run.stdout, re.M)
    return {name: float(value) * (1e3 if unit == "u" else 1) for name, value, unit in lines}


def main(rounds, words):
    cargo = ["--release", "--manifest-path", os.path.join(ROOT, "benches", "peers", "Cargo.toml")]
    subprocess.run(["cargo", "build", *cargo], check=True, cwd=ROOT)
    for threads in 1, 2:
        swath, ratios = {}, {}
        for _ in range(rounds):
            ours = times_of(["cargo", "run", *cargo, "--", "--alone", *(words or ["convolution", "overhead"])], threads)
            theirs = times_of([sys.executable, "-W", "ignore", __file__, "--torch", str(threads), *ours], threads)
            for name, ns in ours.items():
                swath.setdefault(name, []).append(ns)
                ratios.setdefault(name, []).append(theirs[name] / ns)
        print(f"{threads} thread(s)")
        for name, all_ in swath.items():
            us, ratio = statistics.median(all_) * 1e-3, statistics.median(ratios[name])
            print(f"{name:35} {us:11.3f} us   over swath's: torch {ratio:.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--torch"]:
        measure(int(sys.argv[2]), sys.argv[3:])
    else:
        count = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else 5
        main(count, [word for word in sys.argv[1:] if not word.isdigit()])

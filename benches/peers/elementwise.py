#!/usr/bin/env python3
"""Element-wise functions of swath, NumPy and PyTorch in turn, on one thread.

usage: PYTHON benches/peers/elementwise.py [ROUNDS] [WORD...]

PYTHON has torch and numpy. Builds swath's benchmark `elementwise`, then runs ROUNDS times (default 5) its
cases at 4096 and 262144 elements, chosen by the words in their names, and the same functions of NumPy and
PyTorch into arrays that are there. Prints swath's median time and its median ratio to each of theirs.
"""
import os, re, statistics, subprocess, sys, time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SIZES = 4096, 262144
POSITIVE = "sqrt", "log", "pow", "pow_scalar"
# Of the benchmark's pow_scalar.
EXPONENT = 1.7


def functions():
    """Name, package and call of x, second argument and output."""
    import numpy
    import torch

    for name, theirs in (
        ("neg", "negative"), ("sqrt", "sqrt"), ("exp", "exp"), ("log", "log"), ("tanh", "tanh"), ("sin", "sin"), ("cos", "cos"),
    ):
        yield name, "numpy", lambda x, b, y, f=getattr(numpy, theirs): f(x, out=y)
    yield "relu", "numpy", lambda x, b, y: numpy.maximum(x, 0, out=y)
    for name, theirs in (("add", "add"), ("mul", "multiply")):
        yield name, "numpy", lambda x, b, y, f=getattr(numpy, theirs): f(x, b, out=y)
    yield "pow", "numpy", lambda x, b, y: numpy.power(x, b, out=y)
    yield "pow_scalar", "numpy", lambda x, b, y: numpy.power(x, numpy.float32(EXPONENT), out=y)
    yield "pow", "torch", lambda x, b, y: torch.pow(x, b, out=y)
    yield "pow_scalar", "torch", lambda x, b, y: torch.pow(x, EXPONENT, out=y)
    for name in ("neg", "sqrt", "exp", "log", "tanh", "sigmoid", "sin", "cos", "erf"):
        yield name, "torch", lambda x, b, y, f=getattr(torch, name): f(x, out=y)
    for name in ("add", "mul"):
        yield name, "torch", lambda x, b, y, f=getattr(torch, name): f(x, b, out=y)
    nn = torch._C._nn
    yield "relu", "torch", lambda x, b, y: torch.clamp_min(x, 0, out=y)
    yield "silu", "torch", lambda x, b, y: nn.silu(x, out=y)
    yield "gelu", "torch", lambda x, b, y: nn.gelu(x, out=y)
    yield "gelu_tanh", "torch", lambda x, b, y: nn.gelu(x, approximate="tanh", out=y)


def measure(words):
    import numpy
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    random = numpy.random.default_rng(1)
    for size in SIZES:
        drawn = [(2 * random.standard_normal(size)).astype(numpy.float32) for _ in range(2)]
        for name, package, call in functions():
            if words and not any(word in f"{name} {size}" for word in words):
                continue
            x, b = (abs(drawn[0]) if name in POSITIVE else drawn[0]), drawn[1]
            y = numpy.empty_like(x)
            if package == "torch":
                x, b, y = (torch.from_numpy(array) for array in (x, b, y))
            calls, times = max(1, 500_000 // size), []
            for _ in range(21):
                start = time.perf_counter()
                for _ in range(calls):
                    call(x, b, y)
                times.append((time.perf_counter() - start) / calls)
            print(f"{name} {size} {package} {statistics.median(times) * 1e9 / size:.5f}")


def output_of(command):
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{run.stdout}{run.stderr}")
    return run.stdout


def main(rounds, words):
    build = ["cargo", "bench", "--bench", "elementwise"]
    subprocess.run(build + ["--no-run"], check=True, cwd=ROOT)
    chosen = "|".join(re.escape(word.replace(" ", "/")) for word in words or map(str, SIZES))
    chosen = f"^elementwise/.*({chosen})"
    swath, ratios = {}, {}
    for _ in range(rounds):
        # Of the summary at the end.
        times = re.findall(r"^elementwise/(\w+)/(\d+) +([0-9.]+) us", output_of(build + ["--", "--noplot", chosen]), re.M)
        ours = {f"{name} {size}": float(us) * 1e3 / int(size) for name, size, us in times}
        theirs = output_of([sys.executable, "-W", "ignore", __file__, "--theirs", *words])
        for name, size, package, ns in re.findall(r"^(\w+) (\d+) (\w+) ([0-9.]+)$", theirs, re.M):
            case = f"{name} {size}"
            if case in ours:
                swath.setdefault(case, []).append(ours[case])
                ratios.setdefault(case, {}).setdefault(package, []).append(ours[case] / float(ns))
    for case, packages in ratios.items():
        text = ", ".join(f"over {package}'s {statistics.median(list_):.2f}" for package, list_ in packages.items())
        print(f"{case}: swath {statistics.median(swath[case]):.3f} ns, {text}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--theirs"]:
        measure(sys.argv[2:])
    else:
        count = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else 5
        main(count, [word for word in sys.argv[1:] if not word.isdigit()])

#!/usr/bin/env python3
"""Training steps of swath and of PyTorch in turn, on the same model, batch and threads.

usage: PYTHON benches/peers/training.py [ROUNDS]

PYTHON has torch. Builds swath's benchmark `training`, then runs ROUNDS times (default 5), for one and two
threads: swath's step, torch's step, each the median of a second or two. Prints the medians and the
median ratio over the rounds, which drifts of the clock cannot touch as they touch the figures.
"""
import os, re, statistics, subprocess, sys, time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def torch_steps(threads):
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    vocabulary, width, heads, layers, context, batch = 128, 128, 4, 4, 128, 16

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            q, k, v = self.qkv(self.norm1(x)).view(batch, context, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, context, width)
            x = x + self.projection(y)
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.positions = nn.Parameter(torch.randn(context, width) * 0.02)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

        def forward(self, ids):
            return self.head(self.norm(self.blocks(self.tokens(ids) + self.positions))).view(-1, vocabulary)

    gpt = Gpt()
    mlp = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    ids = torch.randint(0, vocabulary, (batch, context))
    next_ids = torch.randint(0, vocabulary, (batch * context,))
    images, labels = torch.randn(64, 784), torch.randint(0, 10, (64,))
    cases = {
        "gpt": (gpt, torch.optim.AdamW(gpt.parameters(), 3e-3, (0.9, 0.95), weight_decay=0.1, fused=True), ids, next_ids),
        "mlp": (mlp, torch.optim.Adam(mlp.parameters(), 1e-3, fused=True), images, labels),
    }
    for name, (model, optimizer, x, y) in cases.items():
        times = []
        end = time.perf_counter() + (2.5 if name == "gpt" else 0.7)
        while time.perf_counter() < end:
            start = time.perf_counter()
            loss = F.cross_entropy(model(x), y)
            loss.item()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            times.append(time.perf_counter() - start)
        print(f"{name} {statistics.median(times[len(times) // 5:]) * 1e3:.4f} ms")


def steps_of(command):
    """Milliseconds by name, from lines of torch_steps and of the summary that swath's benchmark ends with."""
    text = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if text.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{text.stdout}{text.stderr}")
    lines = re.findall(r"^(?:training_T\d/)?(gpt|mlp) +([0-9.]+) (us|ms)", text.stdout, re.M)
    return {name: float(time) * (1e-3 if unit == "us" else 1) for name, time, unit in lines}


def main(rounds):
    build = ["cargo", "bench", "--bench", "training", "--no-run"]
    subprocess.run(build, check=True, cwd=ROOT)
    for threads in (1, 2):
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(steps_of(build[:-1] + ["--", "--noplot", f"^training_T{threads}/"]))
            theirs.append(steps_of([sys.executable, "-W", "ignore", __file__, "--torch", str(threads)]))
        for name, tokens in (("gpt", 16 * 128), ("mlp", 64)):
            swath, torch = ([step[name] for step in steps] for steps in (ours, theirs))
            ratio = statistics.median(a / b for a, b in zip(swath, torch))
            a, b = statistics.median(swath), statistics.median(torch)
            print(
                f"{name}, {threads} thread{'s' * (threads > 1)}: swath {a:.2f} ms ({tokens / a * 1e3:,.0f} rows/s), "
                f"torch {b:.2f} ms ({tokens / b * 1e3:,.0f} rows/s), time over torch's {ratio:.2f}"
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--torch"]:
        torch_steps(int(sys.argv[2]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)

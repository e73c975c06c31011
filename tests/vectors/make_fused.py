#!/usr/bin/env python3
"""Writes fused.txt beside itself: PyTorch's cross-entropy, layer norm and optimizer steps, in double
precision.

python3 make_fused.py (needs torch). A line is `case/name: extents: values`.
"""

import pathlib

import torch
import torch.nn.functional as F

torch.manual_seed(11)
lines = []


def put(case, **tensors):
    for name, x in tensors.items():
        values = " ".join(repr(v) for v in x.detach().double().flatten().tolist())
        extents = " ".join(str(n) for n in x.shape)
        lines.append(f"{case}/{name}: {extents}: {values}")


def randn(*shape):
    return torch.randn(shape, dtype=torch.double)


def cross_entropy(case, targets, classes, **options):
    x = (3 * randn(len(targets), classes)).requires_grad_()
    targets = torch.tensor(targets)
    y = F.cross_entropy(x, targets, **options)
    g = randn(*y.shape)
    y.backward(g)
    put(case, x=x, targets=targets, g=g, y=y, dx=x.grad)


def layer_norm(case, shape, weight, bias, eps):
    n = shape[-1]
    x = randn(*shape).mul(2).add(1).requires_grad_()
    w = randn(n).requires_grad_() if weight else None
    b = randn(n).requires_grad_() if bias else None
    y = F.layer_norm(x, (n,), w, b, eps)
    g = randn(*shape)
    y.backward(g)
    put(case, x=x, g=g, y=y, dx=x.grad)
    if weight:
        put(case, w=w, dw=w.grad)
    if bias:
        put(case, b=b, db=b.grad)


def steps(case, make, state_names):
    """Three steps: the parameter and the optimizer's state before and after each."""
    p = randn(7).requires_grad_()
    optimizer = make([p])
    put(case, p0=p)
    for step in range(1, 4):
        p.grad = randn(7)
        put(case, **{f"g{step}": p.grad})
        optimizer.step()
        state = optimizer.state[p]
        put(case, **{f"p{step}": p})
        put(case, **{f"s{k}_{step}": state[name] for k, name in enumerate(state_names)})


cross_entropy("mean", [2, 0, 4, 1], 5)
cross_entropy("sum", [0, 1, 1], 2, reduction="sum")
cross_entropy("none", [6, 3], 7, reduction="none")
cross_entropy("ignore", [2, -100, 1, -100, 0], 4, ignore_index=-100)
cross_entropy("smooth", [1, 2, 0], 6, label_smoothing=0.2)
cross_entropy("smooth and ignore", [1, 3, 0, 3], 4, label_smoothing=0.1, ignore_index=3)
layer_norm("weight and bias", (2, 3, 6), True, True, 1e-5)
layer_norm("weight", (4, 5), True, False, 1e-3)
layer_norm("bias", (5, 17), False, True, 1e-5)
layer_norm("neither", (3, 8), False, False, 0.1)
steps("sgd", lambda p: torch.optim.SGD(p, 0.1), [])
steps("sgd decay", lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.3), [])
momentum = ["momentum_buffer"]
steps("momentum", lambda p: torch.optim.SGD(p, 0.1, 0.9, 0.25, weight_decay=0.1), momentum)
steps("nesterov", lambda p: torch.optim.SGD(p, 0.05, 0.8, nesterov=True), momentum)
means = ["exp_avg", "exp_avg_sq"]
steps("adam", lambda p: torch.optim.Adam(p, 0.05, (0.8, 0.95), 1e-6), means)
steps("adam decay", lambda p: torch.optim.Adam(p, 0.05, weight_decay=0.2), means)
steps("adamw", lambda p: torch.optim.AdamW(p, 0.05, (0.9, 0.99), weight_decay=0.2), means)

path = pathlib.Path(__file__).with_name("fused.txt")
path.write_text("\n".join(lines) + "\n")

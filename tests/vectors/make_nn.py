"""Makes nn.txt and optim.txt: what PyTorch computes, for tests/suite/nn.rs and tests/suite/optim.rs.

    python tests/vectors/make_nn.py        (PyTorch 2.15 made the committed files)

A line is a name, a dtype, a shape and values in row-major order. Inputs are values of f32, stored once;
results are there in f32 and f64.
"""

import pathlib

import numpy as np
import torch
from torch.nn import functional as F

HERE = pathlib.Path(__file__).parent
DTYPES = {"f32": torch.float32, "f64": torch.float64, "i64": torch.int64}


class Lines:
    def __init__(self):
        self.lines = []

    def put(self, name, x):
        x = torch.as_tensor(x).detach()
        dtype = {v: k for k, v in DTYPES.items()}[x.dtype]
        shape = "x".join(map(str, x.shape)) or "-"
        values = " ".join(text(v) for v in x.numpy().reshape(-1))
        self.lines.append(f"{name} {dtype} {shape} {values}".rstrip())

    def write(self, name):
        (HERE / name).write_text("\n".join(self.lines) + "\n")


def text(value):
    return str(int(value)) if isinstance(value, np.integer) else np.format_float_scientific(value, trim="-", exp_digits=1)


def uniform(*shape, low=-1.0, high=1.0):
    return torch.empty(shape).uniform_(low, high)


def leaf(x, dtype):
    return x.detach().clone().to(DTYPES[dtype]).requires_grad_()


def losses(out):
    x, y = uniform(4, 3, low=-3, high=3), uniform(4, 3, low=-3, high=3)
    p = torch.softmax(uniform(4, 3, low=-2, high=2), 1)
    p = torch.where(p < 0.15, torch.zeros(()), p)
    hard = torch.tensor([[0.0, 1.0, 0.5], [1.0, 0.0, 0.25], [1.0, 1.0, 0.0], [0.0, 0.75, 1.0]])
    logits = torch.tensor([[-40.0, 40.0, 0.0], [40.0, -12.0, 1.5], [12.0, 0.0, -40.0], [-1.0, 0.25, 3.0]])
    classes = torch.tensor([2, 0, 1, 2])
    for name, value in dict(x=x, y=y, p=p, hard=hard, logits=logits, classes=classes).items():
        out.put(f"loss.{name}", value)
    log_p = torch.log_softmax(x, 1)
    out.put("loss.log_p", log_p)
    cases = {
        "mse": (x, lambda i, r, t: F.mse_loss(i, y.to(t), reduction=r)),
        "mae": (x, lambda i, r, t: F.l1_loss(i, y.to(t), reduction=r)),
        "huber": (x, lambda i, r, t: F.huber_loss(i, y.to(t), reduction=r, delta=1.5)),
        "cross_entropy": (x, lambda i, r, t: F.cross_entropy(i, classes, reduction=r)),
        "cross_entropy_smooth": (
            x,
            lambda i, r, t: F.cross_entropy(i, classes, reduction=r, ignore_index=1, label_smoothing=0.2),
        ),
        "nll": (log_p, lambda i, r, t: F.nll_loss(i, classes, reduction=r)),
        "bce": (logits, lambda i, r, t: F.binary_cross_entropy_with_logits(i, hard.to(t), reduction=r)),
        "kl_div": (log_p, lambda i, r, t: F.kl_div(i, p.to(t), reduction=r)),
    }
    for name, (source, f) in cases.items():
        for dtype in ["f32", "f64"]:
            for reduction in ["none", "mean", "sum"]:
                i = leaf(source, dtype)
                value = f(i, reduction, DTYPES[dtype])
                out.put(f"loss.{name}.{reduction}.{dtype}", value)
                if reduction != "none":
                    value.backward()
                    out.put(f"loss.{name}.{reduction}.grad.{dtype}", i.grad)


def run(out, name, module, inputs, call):
    """Parameters and inputs once; results and all gradients in both dtypes."""
    for path, p in module.named_parameters():
        with torch.no_grad():
            p.copy_(uniform(*p.shape) * 0.5)
        out.put(f"{name}.{path}", p)
    for key, x in inputs.items():
        out.put(f"{name}.{key}", x)
    for dtype in ["f32", "f64"]:
        module.to(DTYPES[dtype]).zero_grad()
        xs = {k: leaf(v, dtype) for k, v in inputs.items()}
        y = call(module, xs)
        upstream = torch.arange(y.numel()).reshape(y.shape).to(y.dtype) / 16 - 1
        y.backward(upstream)
        out.put(f"{name}.y.{dtype}", y)
        for key, x in xs.items():
            out.put(f"{name}.{key}.grad.{dtype}", x.grad)
        for path, p in module.named_parameters():
            out.put(f"{name}.{path}.grad.{dtype}", p.grad)
        module.to(torch.float32)


def layers(out):
    width, heads, t = 6, 2, 4
    causal = torch.ones(t, t, dtype=torch.bool).triu(1)
    hidden = torch.zeros(t, t, dtype=torch.bool)
    hidden[1, 0] = hidden[3, 2] = hidden[0, 3] = True
    attention = lambda: torch.nn.MultiheadAttention(width, heads, batch_first=True)
    own = lambda mask: lambda m, xs: m(xs["x"], xs["x"], xs["x"], need_weights=False, attn_mask=mask)[0]
    run(out, "mha", attention(), {"x": uniform(2, t, width)}, own(None))
    run(out, "mha_causal", attention(), {"x": uniform(2, t, width)}, own(causal))
    run(out, "mha_masked", attention(), {"x": uniform(2, t, width)}, own(hidden))
    run(
        out,
        "mha_cross",
        attention(),
        {"x": uniform(2, t, width), "memory": uniform(2, t + 1, width)},
        lambda m, xs: m(xs["x"], xs["memory"], xs["memory"], need_weights=False)[0],
    )
    block = torch.nn.TransformerEncoderLayer(
        width, heads, 10, dropout=0.0, batch_first=True, norm_first=True,
        activation=lambda x: F.gelu(x, approximate="tanh"),
    )
    run(out, "block", block, {"x": uniform(2, t, width)}, lambda m, xs: m(xs["x"], src_mask=causal))
    run(out, "layer_norm", torch.nn.LayerNorm(width), {"x": uniform(3, width, low=-2, high=4)}, lambda m, xs: m(xs["x"]))
    run(out, "linear", torch.nn.Linear(width, 5), {"x": uniform(3, width)}, lambda m, xs: m(xs["x"]))


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al., "Symbolic Discovery of Optimization Algorithms" (2023)."""

    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                update = torch.sign(torch.lerp(p.grad, m, beta1))
                p.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-group["lr"])
                m.copy_(torch.lerp(p.grad, m, beta2))


SHAPES = {"body.weight": (3, 4), "body.bias": (5,), "head.0.weight": (2, 1, 3)}
STEPS = 12

OPTIMIZERS = {
    "sgd": (torch.optim.SGD, dict(lr=0.1)),
    "sgd_decay": (torch.optim.SGD, dict(lr=0.1, weight_decay=0.3)),
    "sgd_momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.9)),
    "sgd_dampening": (torch.optim.SGD, dict(lr=0.1, momentum=0.8, dampening=0.4, weight_decay=0.1)),
    "sgd_nesterov": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)),
    "adam": (torch.optim.Adam, dict(lr=0.05)),
    "adam_decay": (torch.optim.Adam, dict(lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2)),
    "adamw": (torch.optim.AdamW, dict()),
    "adamw_decay": (torch.optim.AdamW, dict(lr=0.05, betas=(0.9, 0.95), weight_decay=0.3)),
    # The second group of parameters, those of fewer than two axes, does not decay.
    "adamw_groups": (torch.optim.AdamW, dict(lr=0.05, betas=(0.9, 0.95), weight_decay=0.3)),
    # The learning rate of step i is 0.05 (i + 1) / 12.
    "adamw_rates": (torch.optim.AdamW, dict(lr=0.05, weight_decay=0.1)),
    "rms_prop": (torch.optim.RMSprop, dict()),
    "rms_prop_momentum": (torch.optim.RMSprop, dict(lr=0.02, alpha=0.9, eps=1e-3, momentum=0.8, weight_decay=0.1)),
    "rms_prop_centered": (torch.optim.RMSprop, dict(lr=0.02, alpha=0.95, centered=True)),
    "rms_prop_all": (torch.optim.RMSprop, dict(lr=0.02, momentum=0.5, centered=True, weight_decay=0.2)),
    "adagrad": (torch.optim.Adagrad, dict()),
    "adagrad_all": (
        torch.optim.Adagrad,
        dict(lr=0.1, lr_decay=0.05, initial_accumulator_value=0.3, eps=1e-4, weight_decay=0.1),
    ),
    "lion": (Lion, dict(lr=0.01)),
    "lion_decay": (Lion, dict(lr=0.02, betas=(0.8, 0.95), weight_decay=0.3)),
}


def optimizers(out):
    start = {path: uniform(*shape) for path, shape in SHAPES.items()}
    grads = [{path: uniform(*shape) * 2 ** float(i % 4 - 2) for path, shape in SHAPES.items()} for i in range(STEPS)]
    for path, p in start.items():
        out.put(f"start.{path}", p)
        for i in range(STEPS):
            out.put(f"grad.{i}.{path}", grads[i][path])
    for name, (kind, options) in OPTIMIZERS.items():
        for dtype in ["f32", "f64"]:
            ps = {path: leaf(p, dtype) for path, p in start.items()}
            groups = [{"params": ps.values()}]
            if name == "adamw_groups":
                groups = [
                    {"params": [p for p in ps.values() if p.ndim >= 2]},
                    {"params": [p for p in ps.values() if p.ndim < 2], "weight_decay": 0.0},
                ]
            optimizer = kind(groups, **options)
            for i in range(STEPS):
                if name == "adamw_rates":
                    optimizer.param_groups[0]["lr"] = 0.05 * (i + 1) / STEPS
                for path, p in ps.items():
                    p.grad = grads[i][path].to(DTYPES[dtype]).clone()
                optimizer.step()
                if i in [0, 1, 5, STEPS - 1]:
                    for path, p in ps.items():
                        out.put(f"{name}.{i}.{path}.{dtype}", p)
    for dtype in ["f32", "f64"]:
        for label, bound in [("cut", 0.5), ("kept", 100.0)]:
            ps = {path: leaf(p, dtype) for path, p in start.items()}
            for path, p in ps.items():
                p.grad = grads[3][path].to(DTYPES[dtype]).clone()
            norm = torch.nn.utils.clip_grad_norm_(ps.values(), bound)
            out.put(f"clip.{label}.norm.{dtype}", norm)
            for path, p in ps.items():
                out.put(f"clip.{label}.{path}.{dtype}", p.grad)


torch.manual_seed(20)
out = Lines()
losses(out)
layers(out)
out.write("nn.txt")
out = Lines()
optimizers(out)
out.write("optim.txt")

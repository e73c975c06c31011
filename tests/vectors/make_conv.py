"""Writes conv.txt: convolutions, transposed convolutions, poolings and their gradients by PyTorch, in float64.

usage: python make_conv.py > conv.txt       with a PyTorch for the CPU
"""
import torch
from torch.nn import functional as F

torch.manual_seed(5)


def show(name, x):
    shape = "x".join(str(d) for d in x.shape)
    print(name, "f64", shape, " ".join(repr(v) for v in x.detach().flatten().tolist()))


def differentiate(name, functions, x, w, channels, options):
    """A convolution with a bias, one of `functions` by the number of axes, and its gradients."""
    x, w = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in (x, w))
    b = torch.randn(channels, dtype=torch.float64, requires_grad=True)
    y = functions[x.dim() - 3](x, w, b, **options)
    g = torch.randn(y.shape, dtype=torch.float64)
    y.backward(g)
    for part, value in dict(x=x, w=w, b=b, g=g, y=y, dx=x.grad, dw=w.grad, db=b.grad).items():
        show(f"{name}/{part}".replace(" ", "_"), value)


CASES = [
    # name, x, weight, options
    ("line", (2, 3, 9), (4, 3, 3), dict(padding=1, stride=2)),
    ("line same", (1, 2, 7), (2, 2, 4), dict(padding="same", dilation=2)),
    ("plain", (2, 3, 6, 7), (4, 3, 3, 3), dict()),
    ("strides", (1, 2, 8, 9), (3, 2, 3, 2), dict(stride=(2, 3), padding=(1, 0))),
    ("dilated groups", (2, 4, 7, 6), (6, 2, 2, 3), dict(dilation=(2, 1), groups=2, padding=(0, 2))),
    ("depthwise", (1, 3, 5, 5), (6, 1, 3, 3), dict(groups=3, padding=1)),
    ("volume", (1, 2, 4, 5, 4), (2, 2, 2, 3, 2), dict(stride=(1, 2, 1), padding=(1, 0, 1))),
]
for name, x, w, options in CASES:
    differentiate(name, [F.conv1d, F.conv2d, F.conv3d], x, w, w[0], options)

TRANSPOSED = [
    ("t line", (2, 3, 5), (3, 2, 4), dict(stride=2, padding=1, output_padding=1)),
    ("t plain", (1, 2, 4, 3), (2, 3, 3, 2), dict()),
    ("t groups", (2, 4, 3, 4), (4, 2, 3, 3), dict(stride=(2, 3), padding=(1, 2), output_padding=(1, 0), groups=2)),
    ("t dilated", (1, 2, 4, 5), (2, 1, 2, 3), dict(stride=2, dilation=(3, 2), output_padding=(2, 1))),
]
for name, x, w, options in TRANSPOSED:
    channels = w[1] * options.get("groups", 1)
    differentiate(name, [F.conv_transpose1d, F.conv_transpose2d], x, w, channels, options)

POOLS = [
    ("max", F.max_pool2d, (2, 2, 7, 6), dict(kernel_size=(3, 2), stride=(2, 1), padding=(1, 1), return_indices=True)),
    ("max ceil", F.max_pool2d, (1, 2, 6, 7), dict(kernel_size=2, ceil_mode=True, return_indices=True)),
    ("max dilated", F.max_pool1d, (2, 2, 9), dict(kernel_size=3, stride=1, dilation=2, return_indices=True)),
    ("avg", F.avg_pool2d, (2, 2, 7, 6), dict(kernel_size=(3, 2), stride=(2, 1), padding=(1, 1))),
    ("avg inside", F.avg_pool2d, (1, 2, 6, 7), dict(kernel_size=3, stride=2, padding=1, count_include_pad=False)),
    ("avg ceil", F.avg_pool1d, (2, 2, 8), dict(kernel_size=3, ceil_mode=True, count_include_pad=False)),
    ("avg ceil padding", F.avg_pool2d, (1, 2, 6, 7), dict(kernel_size=(3, 4), stride=(2, 3), padding=(1, 2), ceil_mode=True)),
    ("max short", F.max_pool1d, (1, 2, 2), dict(kernel_size=3, stride=2, ceil_mode=True, return_indices=True)),
]
for name, f, x, options in POOLS:
    x = torch.randn(x, dtype=torch.float64, requires_grad=True)
    y = f(x, **options)
    parts = {}
    if options.get("return_indices"):
        y, positions = y
        parts["positions"] = positions.double()
    g = torch.randn(y.shape, dtype=torch.float64)
    y.backward(g)
    for part, value in dict(x=x, g=g, y=y, dx=x.grad, **parts).items():
        show(f"{name}/{part}".replace(" ", "_"), value)

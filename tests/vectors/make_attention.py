#!/usr/bin/env python3
"""Writes attention.txt beside itself: PyTorch's attention and gelu, in double precision.

python3 make_attention.py (needs torch). A line is `case/name: extents: values`.
"""

import pathlib

import torch
import torch.nn.functional as F

torch.manual_seed(7)
lines = []


def put(case, **tensors):
    for name, x in tensors.items():
        values = " ".join(repr(v) for v in x.detach().double().flatten().tolist())
        extents = " ".join(str(n) for n in x.shape)
        lines.append(f"{case}/{name}: {extents}: {values}")


def attention(case, lead, t, s, d, e, mask=None, **options):
    shapes = [(t, d), (s, d), (s, e)]
    q, k, v = (torch.randn(*lead, *shape, dtype=torch.double, requires_grad=True) for shape in shapes)
    g = torch.randn(*lead, t, e, dtype=torch.double)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **options)
    y.backward(g)
    put(case, q=q, k=k, v=v, g=g, y=y, dq=q.grad, dk=k.grad, dv=v.grad)
    if mask is not None:
        put(case, mask=mask)


attention("plain", (2, 3), 5, 7, 4, 3)
attention("causal", (2, 2), 6, 6, 4, 4, is_causal=True)
attention("rank 3, scaled", (2,), 3, 4, 5, 2, scale=0.3)
seen = torch.rand(2, 1, 4, 6) < 0.6
seen[..., 0] = True
attention("bool mask", (2, 2), 4, 6, 3, 3, mask=seen)
attention("float mask", (1, 2), 4, 6, 3, 3, mask=torch.randn(4, 6, dtype=torch.double))

x = torch.cat([torch.linspace(-9, 6, 121), torch.tensor([-37.0, -20.0, -14.0, -1e-3, 0.0, 1e-8, 30.0])])
x = x.double().requires_grad_()
y = F.gelu(x)
y.sum().backward()
put("gelu", x=x, y=y, dx=x.grad)

path = pathlib.Path(__file__).with_name("attention.txt")
path.write_text("\n".join(lines) + "\n")

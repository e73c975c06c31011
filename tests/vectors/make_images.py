"""Writes images.txt and cnn.safetensors beside this file: operations and layers of images by PyTorch, in float64.

usage: python make_images.py       with a PyTorch for the CPU

A line of images.txt is a name, a dtype, a shape and values in row-major order. A case has inputs 0, 1, …, the result y,
the gradient g of the result, and those of the inputs, d0, d1, …. Inputs are multiples of 1/8, exact in every dtype.
The weights in cnn.safetensors are those of `cnn`; its lines are named cnn/….
"""
import json, pathlib, struct

import torch
from torch import nn
from torch.nn import functional as F

HERE = pathlib.Path(__file__).parent
torch.manual_seed(38)
torch.set_default_dtype(torch.float64)
lines = []


def show(name, x):
    shape = "x".join(map(str, x.shape)) or "-"
    dtype, text = ("i64", str) if x.dtype == torch.int64 else ("f64", lambda v: f"{v:.13g}")
    lines.append(f"{name} {dtype} {shape} " + " ".join(text(v) for v in x.detach().flatten().tolist()))


def eighths(*shape):
    return (torch.randn(*shape) * 8).round() / 8


def case(name, f, *shapes):
    inputs = [eighths(*shape).requires_grad_() for shape in shapes]
    y = f(*inputs)
    g = eighths(*y.shape)
    y.backward(g)
    for i, x in enumerate(inputs):
        show(f"{name}/{i}", x)
        show(f"{name}/d{i}", x.grad)
    show(f"{name}/y", y)
    show(f"{name}/g", g)


IMAGE = (1, 2, 4, 5)
# Pairs of the last axes, in the order of the axes.
PADS = {
    "constant": [(1, 2), (0, 3)],
    "crop": [(-1, 2), (2, -3)],
    "reflect": [(3, 1), (2, 4)],
    "replicate": [(5, 0), (2, 1)],
    "circular": [(1, 4), (5, 2)],
}
for name, pads in PADS.items():
    flat = [count for pair in reversed(pads) for count in pair]
    options = dict(value=1.5) if name in ("constant", "crop") else dict(mode=name)
    case(f"pad_{name}", lambda x: F.pad(x, flat, **options), IMAGE)
case("unfold", lambda x: x.unfold(2, 3, 2), (2, 2, 8, 2))
case("unfold_apart", lambda x: x.unfold(0, 2, 3), (6, 3))
case("avg_1d", lambda x: F.adaptive_avg_pool1d(x, 4), (2, 2, 7))
case("max_1d", lambda x: F.adaptive_max_pool1d(x, 5), (2, 2, 7))
for name, size in dict(uneven=(3, 2), equal=(2, 3), one=(1, 1), more=(7, 5)).items():
    case(f"avg_{name}", lambda x: F.adaptive_avg_pool2d(x, size), (1, 2, 4, 6))
    case(f"max_{name}", lambda x: F.adaptive_max_pool2d(x, size), (1, 2, 4, 6))
for name, size in dict(larger=(7, 8), smaller=(3, 2), mixed=(8, 3), one=(1, 5), twice=(8, 10)).items():
    case(f"nearest_{name}", lambda x: F.interpolate(x, size, mode="nearest"), IMAGE)
    for corners in [False, True]:
        options = dict(size=size, align_corners=corners)
        end = f"{name}_{'corners' if corners else 'centers'}"
        case(f"bilinear_{end}", lambda x: F.interpolate(x, mode="bilinear", **options), IMAGE)
        case(f"bicubic_{end}", lambda x: F.interpolate(x, mode="bicubic", **options), IMAGE)
for name, shape in dict(rows=(6, 3), lines=(3, 3, 4), images=(2, 3, 3, 2), volumes=(2, 2, 2, 2, 3)).items():
    c = shape[1]
    case(f"batch_{name}", lambda x, w, b: F.batch_norm(x, None, None, w, b, True, eps=1e-3), shape, (c,), (c,))
    case(
        f"given_{name}",
        lambda x, m, v, w, b: F.batch_norm(x, m.detach(), v.detach().abs(), w, b, eps=1e-2) + 0 * (m.sum() + v.sum()),
        shape, (c,), (c,), (c,), (c,),
    )
case("batch_plain", lambda x: F.batch_norm(x, None, None, training=True), (3, 2, 4))
case("group", lambda x, w, b: F.group_norm(x, 2, w, b, 1e-3), (2, 4, 3, 2), (4,), (4,))
case("instance", lambda x, w, b: F.instance_norm(x, weight=w, bias=b, eps=1e-3), (2, 3, 5), (3,), (3,))


def cnn():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2, bias=False),
        nn.GroupNorm(3, 6),
        nn.ReLU(),
        nn.ConvTranspose2d(6, 3, 2, stride=2),
        nn.AvgPool2d(2, stride=1),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(12, 5),
        nn.BatchNorm1d(5, eps=1e-3, momentum=0.3),
        nn.Tanh(),
        nn.Linear(5, 3),
    )


def save(path, tensors):
    kinds = {torch.float32: "F32", torch.int64: "I64"}
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.contiguous().numpy().tobytes()
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": kinds[tensor.dtype], "shape": list(tensor.shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


model = cnn()
with torch.no_grad():
    for p in model.parameters():
        p.copy_(p.float() + (torch.randn(p.shape) * 0.1).float())
    for module in (model[1], model[12]):
        module.running_mean.copy_((torch.randn(module.running_mean.shape) * 0.3).float())
        module.running_var.copy_((torch.rand(module.running_var.shape) + 0.5).float())
        module.num_batches_tracked.fill_(7)
state = {name: x.float() if x.is_floating_point() else x.clone() for name, x in model.state_dict().items()}
save(HERE / "cnn.safetensors", state)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
losses = []
for step in range(3):
    x, classes = eighths(4, 2, 6, 6), torch.randint(0, 3, (4,))
    show(f"cnn/x{step}", x)
    show(f"cnn/classes{step}", classes)
    loss = F.cross_entropy(model(x), classes)
    losses.append(loss)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
show("cnn/losses", torch.stack(losses))
for name, p in model.named_parameters():
    show(f"cnn/grad/{name}", p.grad)
for name, buffer in model.named_buffers():
    show(f"cnn/buffer/{name}", buffer)
show("cnn/y", model.eval()(x))
(HERE / "images.txt").write_text("\n".join(lines) + "\n")

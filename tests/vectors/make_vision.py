"""Writes vision.txt beside this file: operations on images by PyTorch, torchvision and ONNX's reference, in float64.

usage: python make_vision.py [FACTOR FILE]       with torch, torchvision and onnx

Writes FACTOR times as many drawn cases to FILE, which the tests read if SWATH_VISION names it.

A line is a name, a dtype, a shape and values in row-major order. The name of a case is the operation and its options,
separated by commas, and a number; the test reads the options from it. Its parts are as in make_images.py. Inputs are
multiples of 1/8, exact in every dtype; options are drawn.
"""
import pathlib, random, sys

import numpy as np
import torch
import torchvision
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops import op_resize
from torch.nn import functional as F

HERE = pathlib.Path(__file__).parent
FACTOR = int(sys.argv[1]) if len(sys.argv) > 1 else 1
torch.manual_seed(56)
np.random.seed(56)
draw = random.Random(56)
torch.set_default_dtype(torch.float64)
lines = []


def show(name, x):
    x = torch.as_tensor(x)
    shape = "x".join(map(str, x.shape)) or "-"
    dtype, text = ("i64", str) if x.dtype == torch.int64 else ("f64", lambda v: f"{v:.13g}")
    lines.append(" ".join([name, dtype, shape, *(text(v) for v in x.detach().flatten().tolist())]))


def eighths(*shape, scale=1.0):
    return (torch.randn(*shape) * 8 * scale).round() / 8


def name_of(op, options):
    def text(value):
        return "x".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    words = [f"{key}={text(value)}" for key, value in options.items() if value is not None]
    return ",".join([op, *words, f"case={len(lines)}"])


def case(op, options, f, inputs):
    """Inputs are tensors; floats have gradients, unless they are detached in `f`."""
    name = name_of(op, options)
    inputs = [x.requires_grad_() if x.is_floating_point() else x for x in inputs]
    y = f(*inputs)
    for i, x in enumerate(inputs):
        show(f"{name}/{i}", x)
    show(f"{name}/y", y)
    if y.requires_grad:
        g = eighths(*y.shape)
        y.backward(g)
        show(f"{name}/g", g)
        for i, x in enumerate(inputs):
            if x.is_floating_point() and x.grad is not None:
                show(f"{name}/d{i}", x.grad)


def extents(count, least=1, most=6):
    return [draw.randint(least, most) for _ in range(count)]


def flag():
    return draw.random() < 0.5


LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}
for _ in range(40 * FACTOR):
    axes = draw.randint(1, 3)
    image = [draw.randint(1, 2), draw.randint(1, 2), *extents(axes, most=7 - axes)]
    modes = ["nearest", "nearest-exact", "linear", "area"] + ["cubic", "linear-aa", "cubic-aa"] * (axes == 2)
    mode = draw.choice(modes)
    corners = flag() if mode in ("linear", "cubic") else None
    # With a width of 1, PyTorch's antialiasing repeats its first row.
    size, factor = extents(axes, least=1 + mode.endswith("-aa"), most=9 - axes), None
    if flag():
        size, factor = None, [draw.choice([0.5, 1.0, 1.25, 1.7, 2.0, 2.5]) for _ in range(axes)]
        factor = [max(by, 1 / extent) for by, extent in zip(factor, image[2:])]
        kept = [int(by * extent) for by, extent in zip(factor, image[2:])]
        # PyTorch's gradients of the nearest pixels are not those of its result where an axis keeps its extent.
        odd = any(a == b and by != 1 for a, b, by in zip(kept, image[2:], factor))
        if odd and mode[:7] == "nearest" or mode.endswith("-aa") and 1 in kept:
            continue
    theirs = {"linear": LINEAR[axes], "cubic": "bicubic"}.get(mode.removesuffix("-aa"), mode)
    options = dict(mode=theirs, align_corners=False if mode.endswith("-aa") else corners, size=size, scale_factor=factor, antialias=mode.endswith("-aa"))
    f = lambda x: F.interpolate(x, **options)
    case("interpolate", dict(mode=mode, corners=corners, size=size, factor=factor), f, [eighths(*image)])

# The coefficient comes as a float32, in which the reference would compute weights.
for name in ["_cubic_coeffs", "_cubic_coeffs_antialias"]:
    weights = getattr(op_resize, name)
    setattr(op_resize, name, lambda ratio, scale, A, weights=weights: weights(ratio, scale, float(A)))
COORDINATES = [
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"
]


def resize(x, options, scales, sizes, roi):
    """Scales are rounded to float32, as in a model."""
    node = helper.make_node("Resize", ["x", "roi", "scales" if scales else "", "sizes" if sizes else ""], ["y"], **options)
    inputs = {"x": x, "roi": np.array(roi or [], np.float64)}
    if scales:
        inputs["scales"] = np.array(scales, np.float64)
    if sizes:
        inputs["sizes"] = np.array(sizes, np.int64)
    return ReferenceEvaluator(node).run(None, inputs)[0]


for _ in range(60 * FACTOR):
    rank = draw.randint(1, 3)
    dims = extents(rank, most=7)
    axes = draw.sample(range(rank), draw.randint(1, rank))
    mode = draw.choice(["nearest", "linear", "cubic"])
    coordinates = draw.choice(COORDINATES)
    sizes, scales, roi = extents(len(axes), most=8), None, None
    if flag():
        sizes, scales = None, [draw.choice([0.6, 0.75, 0.8, 1.0, 1.4, 1.75, 2.0, 3.0]) for _ in axes]
        scales = [float(np.float32(max(by, 1.01 / dims[axis]))) for by, axis in zip(scales, axes)]
    if coordinates == "tf_crop_and_resize":
        starts = [draw.choice([-0.25, 0.0, 0.25, 0.4]) for _ in axes]
        roi = starts + [start + draw.choice([0.5, 0.75, 1.0]) for start in starts]
    policy = draw.choice(["stretch", "not_larger", "not_smaller"]) if sizes else "stretch"
    if policy == "not_larger" and min(size / dims[axis] for size, axis in zip(sizes, axes)) * min(dims) < 0.5:
        policy = "stretch"
    options = dict(
        mode=mode, coordinate_transformation_mode=coordinates, axes=axes, keep_aspect_ratio_policy=policy,
        nearest_mode=draw.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]),
        cubic_coeff_a=draw.choice([-0.75, -0.5]), extrapolation_value=1.5,
        antialias=int(mode != "nearest" and flag()), exclude_outside=int(mode != "nearest" and flag()),
    )
    if coordinates == "half_pixel_symmetric" and policy != "stretch":
        # All weights may lie outside, but for rounding errors.
        options["exclude_outside"] = 0
    x = eighths(*dims).numpy()
    y = resize(x, options, scales, sizes, roi)
    if coordinates == "pytorch_half_pixel" and 1 in (y.shape[axis] for axis in axes):
        # The reference is at -0.5 where the operator's documentation is at 0.
        continue
    if mode == "nearest":
        # Ties that the reference rounds either way.
        nudged = [[by * factor for by in scales or [y.shape[a] / dims[a] for a in axes]] for factor in (1 - 1e-12, 1 + 1e-12)]
        ways = [resize(x, options | dict(keep_aspect_ratio_policy="stretch"), by, None, roi) for by in nudged]
        if any(way.shape != y.shape or not (way == y).all() for way in ways):
            continue
    shown = dict(
        mode=mode, nearest=options["nearest_mode"], coordinates=coordinates, axes=axes, size=sizes, scale=scales, roi=roi,
        policy=policy, a=options["cubic_coeff_a"], antialias=options["antialias"], outside=options["exclude_outside"],
    )
    name = name_of("resize", shown)
    show(f"{name}/0", x)
    show(f"{name}/y", y)

# PyTorch's antialiasing with a size and scales.
for mode in ["linear", "cubic"]:
    shown = dict(
        mode=mode, nearest="floor", coordinates="half_pixel", axes=[2, 3], size=[3, 2], scale=[1.7, 0.4], policy="stretch",
        a=-0.5, antialias=1, outside=1,
    )
    name, x = name_of("resize", shown), eighths(1, 2, 5, 7)
    show(f"{name}/0", x)
    show(f"{name}/y", getattr(torch._C._nn, f"_upsample_bi{mode}2d_aa")(x, [3, 2], False, 1.7, 0.4))

for _ in range(3 * FACTOR):
    for mode in ["nearest", "bilinear", "bicubic"]:
        for padding in ["zeros", "border", "reflection"]:
            axes, corners = draw.randint(2, 3), flag()
            image = [draw.randint(1, 2), draw.randint(1, 2), *extents(axes, most=6 - axes)]
            grid = [image[0], *extents(axes, most=2), axes]
            options = dict(mode=mode, padding_mode=padding, align_corners=corners)
            f = lambda x, grid: F.grid_sample(x, grid, **options)
            shown = dict(mode=mode, padding=padding, corners=corners)
            case("grid_sample", shown, f, [eighths(*image), eighths(*grid)])

for _ in range(4 * FACTOR):
    axes, corners = draw.randint(2, 3), flag()
    size = [2, 1, *extents(axes, most=4)]
    f = lambda theta: F.affine_grid(theta, size, align_corners=corners)
    case("affine_grid", dict(size=size, corners=corners), f, [eighths(2, axes, axes + 1)])

for axes in [1, 2, 3]:
    pool = [F.max_pool1d, F.max_pool2d, F.max_pool3d][axes - 1]
    unpool = [F.max_unpool1d, F.max_unpool2d, F.max_unpool3d][axes - 1]
    size = [5, 4, 5][:axes]
    y, positions = pool(eighths(2, 2, *size), 2, return_indices=True)
    f = lambda y, positions: unpool(y, positions, 2, output_size=size)
    case("max_unpool", dict(size=size), f, [y.detach(), positions])

for op, shape, by in [
    ("pixel_shuffle", (2, 9, 2, 1), 3), ("pixel_shuffle", (8, 1, 3), 2), ("pixel_unshuffle", (1, 2, 4, 6), 2),
    ("pixel_unshuffle", (2, 1, 3, 9, 3), 3), ("channel_shuffle", (2, 6, 2), 3), ("channel_shuffle", (1, 8, 1, 2), 2),
]:
    case(op, dict(by=by), lambda x: getattr(F, op)(x, by), [eighths(*shape)])

for size, alpha, beta, k in [(2, 0.5, 0.5, 1.25), (3, 1e-2, 0.75, 1.0), (5, 2.0, 1.5, 2.0), (1, 1.0, 0.25, 0.5)]:
    options = dict(size=size, alpha=alpha, beta=beta, k=k)
    case("lrn", options, lambda x: F.local_response_norm(x, **options), [eighths(2, 4, 3)])

for _ in range(10 * FACTOR):
    n, c, h, w = draw.randint(1, 3), draw.randint(1, 3), *extents(2, most=7)
    count = draw.randint(1, 5)
    corner = eighths(count, 2, scale=4) + 2
    rois = torch.cat([torch.randint(n, (count, 1)), corner, corner + eighths(count, 2, scale=5).abs() - 0.5], 1)
    size = extents(2, most=3)
    options = dict(spatial_scale=draw.choice([1.0, 0.5, 0.75]), sampling_ratio=draw.randint(0, 3), aligned=flag())
    f = lambda x, rois: torchvision.ops.roi_align(x, rois.detach(), size, **options)
    shown = dict(size=size, scale=options["spatial_scale"], ratio=options["sampling_ratio"], aligned=options["aligned"])
    x = eighths(n, c, h, w)
    case("roi_align", shown, f, [x, rois])
    if options["sampling_ratio"] > 0:
        node = helper.make_node(
            "RoiAlign", ["x", "rois", "batch"], ["y"], mode="max", output_height=size[0], output_width=size[1],
            sampling_ratio=options["sampling_ratio"], spatial_scale=options["spatial_scale"],
            coordinate_transformation_mode="half_pixel" if options["aligned"] else "output_half_pixel",
        )
        inputs = dict(x=x.detach().numpy(), rois=rois[:, 1:].detach().numpy(), batch=rois[:, 0].detach().numpy().astype(np.int64))
        name = name_of("roi_align_max", shown)
        show(f"{name}/0", x)
        show(f"{name}/1", rois)
        show(f"{name}/y", ReferenceEvaluator(node).run(None, inputs)[0])

for _ in range(6 * FACTOR):
    count = draw.randint(0, 12)
    corner = eighths(count, 2, scale=0.5)
    boxes = torch.cat([corner, corner + eighths(count, 2).abs() + 0.5], 1)
    scores = torch.randint(0, 6, (count,)) / 8
    threshold = draw.choice([0.125, 0.25, 0.5])
    f = lambda boxes, scores: torchvision.ops.nms(boxes.float().detach(), scores.float().detach(), threshold)
    case("nms", dict(threshold=threshold), f, [boxes, scores])
    center = draw.randint(0, 1)
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["y"], center_point_box=center)
    boxes, scores = eighths(2, count, 4), torch.randint(0, 6, (2, 3, count)) / 8
    if center:
        boxes[..., 2:] = boxes[..., 2:].abs()
    most, least = draw.randint(0, 4), draw.choice([0.25, 0.125, -1.0])
    inputs = dict(
        boxes=boxes.numpy().astype(np.float32), scores=scores.numpy().astype(np.float32), most=np.array([most]),
        iou=np.array([threshold], np.float32), least=np.array([least], np.float32),
    )
    y = ReferenceEvaluator(node).run(None, inputs)[0]
    name = name_of("non_max_suppression", dict(most=most, threshold=threshold, least=least, center=center))
    show(f"{name}/0", boxes)
    show(f"{name}/1", scores)
    show(f"{name}/y", torch.from_numpy(y))

pathlib.Path(sys.argv[2] if FACTOR > 1 else HERE / "vision.txt").write_text("\n".join(lines) + "\n")

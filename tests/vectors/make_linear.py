"""Writes linear.txt: PyTorch's values and gradients, in f64, of products, distances, covariances and forms of other ops.

    python3 tests/vectors/make_linear.py > tests/vectors/linear.txt
"""

import torch

F = torch.nn.functional
torch.manual_seed(9)


def write(name, x):
    x = x.detach().contiguous()
    dtype = "f64" if x.is_floating_point() else "i64"
    shape = "x".join(map(str, x.shape)) if x.ndim else "-"
    values = [f"{v:.17g}" if dtype == "f64" else str(int(v)) for v in x.reshape(-1).tolist()]
    print(" ".join([name.replace(" ", "_"), dtype, shape] + values))


def case(name, shapes, f):
    """Inputs with few digits, so that narrower types hold them; the result, an upstream gradient, gradients."""
    xs = [(torch.randn(shape, dtype=torch.float64) * 16).round() / 8 for shape in shapes]
    xs = [x.requires_grad_() for x in xs]
    y = f(*xs)
    g = torch.randint(-3, 4, y.shape).double()
    grads = torch.autograd.grad(y, xs, g, allow_unused=True)
    for i, (x, grad) in enumerate(zip(xs, grads)):
        write(f"{name}/{i}", x)
        write(f"{name}/d{i}", torch.zeros_like(x) if grad is None else grad)
    write(f"{name}/g", g)
    write(f"{name}/y", y)


direct = "donot_use_mm_for_euclid_dist"

case("cosine_similarity", [(2, 3), (2, 1, 3)], lambda x, y: F.cosine_similarity(x, y, dim=-1))
case("cosine_similarity of columns", [(4, 2), (4, 2)], lambda x, y: F.cosine_similarity(x, y, dim=0, eps=0.5))
case("pairwise_distance", [(2, 3), (3,)], lambda x, y: F.pairwise_distance(x, y))
case("pairwise_distance kept", [(2, 3), (2, 3)], lambda x, y: F.pairwise_distance(x, y, 3.0, 0.5, True))
for p in [0.0, 0.5, 1.0, 2.0, 3.0, float("inf")]:
    case(f"cdist {p}", [(2, 3, 4), (5, 4)], lambda x, y: torch.cdist(x, y, p, direct))
case("cdist by products", [(2, 26, 3), (2, 2, 3)], lambda x, y: torch.cdist(x, y, 2.0, direct))
case("cross", [(1, 3), (2, 3)], lambda x, y: torch.linalg.cross(x, y, dim=-1))
case("cross of columns", [(3, 2), (3, 2)], lambda x, y: torch.linalg.cross(x, y, dim=0))
case("kron", [(2, 3), (3, 2)], torch.kron)
case("kron of ranks", [(2,), (2, 1, 3)], torch.kron)
fweights, aweights = torch.tensor([1, 2, 0, 3]), torch.tensor([0.5, 1.0, 2.0, 0.25], dtype=torch.float64)
case("cov", [(3, 4)], torch.cov)
case("cov of one", [(4,)], lambda x: torch.cov(x, correction=0))
case("cov weighted", [(2, 4)], lambda x: torch.cov(x, correction=2, fweights=fweights, aweights=aweights))
case("cov counted", [(2, 4)], lambda x: torch.cov(x, fweights=fweights))
case("cov counting", [(2, 4)], lambda x: torch.cov(x, aweights=aweights))
case("corrcoef", [(3, 5)], torch.corrcoef)
case("trapezoid", [(2, 4)], lambda y: torch.trapezoid(y, dx=0.5))
case("trapezoid of points", [(2, 4), (4,)], lambda y, x: torch.trapezoid(y, x))
case("trapezoid of columns", [(3, 2), (3, 2)], lambda y, x: torch.trapezoid(y, x, dim=0))
case("cumulative_trapezoid", [(3, 2), (3,)], lambda y, x: torch.cumulative_trapezoid(y, x, dim=-2))
for n in [1, 2, 5]:
    case(f"matrix_power {n}", [(2, 3, 3)], lambda x: torch.linalg.matrix_power(x, n))
case("diag_embed", [(2, 3)], lambda x: torch.diag_embed(x, 1))
case("diag_embed apart", [(2, 3)], lambda x: torch.diag_embed(x, -2, 2, 0))
case("block_diag", [(2, 1), (3,), ()], torch.block_diag)
case("cartesian_prod", [(2,), (3,), (2,)], torch.cartesian_prod)
case("vander", [(2, 3)], lambda x: torch.linalg.vander(x, N=4))
case("vander decreasing", [(3,)], lambda x: torch.linalg.vander(x).flip(-1))
case("add_scaled", [(2, 3), (3,)], lambda x, y: torch.add(x, y, alpha=-2.5))
mask, columns = torch.tensor([True, False, True]), torch.tensor([2, 0])
case("mask beside an index", [(3, 4)], lambda x: x[mask, columns])
case("mask of two axes", [(2, 3, 2)], lambda x: x[:, torch.tensor([[True, False], [False, True], [True, True]])])
case("mask apart", [(3, 2, 4)], lambda x: x[mask, :, columns])
case("mask put", [(3, 4), (2,)], lambda x, y: x.index_put((mask, columns), y))
case("layer_norm", [(2, 3, 4), (4,), (4,)], lambda x, w, b: F.layer_norm(x, (4,), w, b, 0.25))
case("layer_norm mean", [(2, 3, 4)], lambda x: x.mean(-1, keepdim=True))
case("layer_norm scale", [(2, 3, 4)], lambda x: (x.var(-1, correction=0, keepdim=True) + 0.25).rsqrt())
table = torch.tensor([[1, 0, 2], [2, 2, 1]])
case("embedding padded", [(3, 2)], lambda x: F.embedding(table, x, padding_idx=2))
p = lambda x: x.softmax(1)
weight = torch.tensor([0.5, 2.0, 1.5], dtype=torch.float64)
case("probabilities", [(2, 3, 2, 2), (2, 3, 2, 2)], lambda x, y: F.cross_entropy(x, p(y), weight, label_smoothing=0.25))
targets = torch.tensor([[[0, 2], [1, 1]], [[2, 2], [0, 1]]])
case("classes", [(2, 3, 2, 2)], lambda x: F.cross_entropy(x, targets, weight, ignore_index=1))
case("conv of one axis", [(2, 4, 7), (6, 2, 3), (6,)], lambda x, w, b: F.conv1d(x, w, b, 2, 1, 2, 2))
case("conv of two axes", [(1, 1, 4, 5), (2, 1, 2, 3)], lambda x, w: F.conv2d(F.pad(x, (2, 1, 0, 1)), w, stride=(1, 2)))
case("conv same", [(2, 2, 4), (2, 1, 4), (2,)], lambda x, w, b: F.conv1d(x, w, b, padding="same", dilation=2, groups=2))
case("conv_transpose", [(1, 2, 3, 2), (2, 1, 3, 2), (1,)], lambda x, w, b: F.conv_transpose2d(x, w, b, (2, 3), 1, 1))

"""Writes movement.txt: values and gradients of PyTorch and NumPy for the ops that move elements, on integers, so that
every dtype represents them exactly.

    python3 tests/vectors/make_movement.py > tests/vectors/movement.txt
"""

import numpy as np
import torch

rng = np.random.default_rng(7)


def write(name, x):
    x = np.asarray(x)
    dtype = "i64" if x.dtype.kind in "iub" else "f64"
    shape = "x".join(map(str, x.shape)) if x.ndim else "-"
    values = [str(int(v)) if dtype == "i64" else f"{v:g}" for v in x.reshape(-1)]
    print(" ".join([name, dtype, shape] + values))


def case(name, shapes, f, check=None):
    """Inputs, the result, an upstream gradient and the gradients of the inputs. `check` is the same result by NumPy."""
    xs = [torch.tensor(rng.integers(0, 100, shape), dtype=torch.float64, requires_grad=True) for shape in shapes]
    ys = f(*xs)
    if check is not None:
        want = check(*[x.detach().numpy() for x in xs])
        assert np.array_equal(want, ys.detach().numpy()), name
    g = torch.tensor(rng.integers(-3, 4, tuple(ys.shape)), dtype=torch.float64)
    grads = torch.autograd.grad(ys, xs, g, allow_unused=True)
    for i, (x, grad) in enumerate(zip(xs, grads)):
        write(f"{name}/{i}", x.detach())
        write(f"{name}/d{i}", torch.zeros_like(x) if grad is None else grad)
    write(f"{name}/g", g)
    write(f"{name}/y", ys.detach())


pad = torch.nn.functional.pad


def scatter(x, axis, index, source):
    """PyTorch does not define which of several elements remains: assigned in order."""
    index = np.array(index)
    targets = {}
    for place in np.ndindex(index.shape):
        to = list(place)
        to[axis] = index[place]
        targets[tuple(to)] = place
    flat = [source[targets[i]] if i in targets else x[i] for i in np.ndindex(tuple(x.shape))]
    return torch.stack(flat).reshape(x.shape)


def assigned(x, items, source):
    y = x.clone()
    y[items] = source
    return y


I = lambda *values: torch.tensor(values)

case("stack_first", [(2, 3)] * 3, lambda *x: torch.stack(x, 0), lambda *x: np.stack(x, 0))
case("stack_middle", [(2, 3)] * 2, lambda *x: torch.stack(x, 1), lambda *x: np.stack(x, 1))
case("stack_last", [(2, 3)] * 2, lambda *x: torch.stack(x, -1), lambda *x: np.stack(x, -1))
case("stack_scalars", [()] * 3, lambda *x: torch.stack(x, 0))
case("split", [(5, 3)], lambda x: torch.cat(x.split(2, 0)[::-1]))
case("split_list", [(2, 6)], lambda x: torch.cat(x.split([1, 0, 5], 1)[::-1], 1))
case("chunk", [(2, 7)], lambda x: torch.cat(x.chunk(3, 1)[::-1], 1))
case("unbind", [(3, 2)], lambda x: torch.stack(x.unbind(1)[::-1], 1))
case("repeat", [(2, 3)], lambda x: x.repeat(2, 2), lambda x: np.tile(x, (2, 2)))
case("repeat_new_axes", [(2, 1)], lambda x: x.repeat(3, 1, 4), lambda x: np.tile(x, (3, 1, 4)))
case("repeat_inner", [(2, 3, 2)], lambda x: x.repeat(1, 3, 1), lambda x: np.tile(x, (1, 3, 1)))
case("repeat_many", [(2, 2, 2, 1, 2)], lambda x: x.repeat(2, 3, 2, 2, 2), lambda x: np.tile(x, (2, 3, 2, 2, 2)))
case("repeat_zero", [(2, 3)], lambda x: x.repeat(1, 0))
case("tile", [(2, 3)], lambda x: torch.tile(x, (2,)), lambda x: np.tile(x, 2))
case("tile_more", [(3,)], lambda x: torch.tile(x, (2, 1, 2)), lambda x: np.tile(x, (2, 1, 2)))
case("roll", [(7,)], lambda x: x.roll(2, 0), lambda x: np.roll(x, 2, 0))
case("roll_back", [(2, 5)], lambda x: x.roll(-3, 1), lambda x: np.roll(x, -3, 1))
case("roll_far", [(4, 3)], lambda x: x.roll(-23, 0), lambda x: np.roll(x, -23, 0))
case("roll_two", [(3, 2, 4)], lambda x: x.roll((1, -1), (0, 2)), lambda x: np.roll(x, (1, -1), (0, 2)))
case("roll_three", [(3, 2, 4)], lambda x: x.roll((4, 1, 7), (2, 1, 0)), lambda x: np.roll(x, (4, 1, 7), (2, 1, 0)))
case("movedim", [(2, 3, 4)], lambda x: x.movedim(0, -1), lambda x: np.moveaxis(x, 0, -1))
case("movedim_two", [(2, 3, 4, 5)], lambda x: x.movedim((3, 0), (0, 2)), lambda x: np.moveaxis(x, (3, 0), (0, 2)))
case("flip_two", [(2, 3, 4)], lambda x: x.flip((0, 2)), lambda x: np.flip(x, (0, 2)))
for k in (-2, -1, 0, 1, 3):
    case(f"tril{k}", [(2, 3, 4)], lambda x: x.tril(k), lambda x: np.tril(x, k))
    case(f"triu{k}", [(2, 3, 4)], lambda x: x.triu(k), lambda x: np.triu(x, k))
for k in (-2, 0, 1):
    case(f"diag_of{k}", [(3,)], lambda x: x.diag(k), lambda x: np.diag(x, k))
    case(f"diag_in{k}", [(3, 4)], lambda x: x.diag(k), lambda x: np.diag(x, k))
    case(f"diag_batch{k}", [(2, 4, 3)], lambda x: x.diagonal(k, -2, -1), lambda x: np.diagonal(x, k, -2, -1))
case("meshgrid", [(2,), (3,)], lambda *x: torch.stack(torch.meshgrid(*x, indexing="ij")),
     lambda *x: np.stack(np.meshgrid(*x, indexing="ij")))
case("meshgrid_xy", [(2,), (3,), (2,)], lambda *x: torch.stack(torch.meshgrid(*x, indexing="xy")),
     lambda *x: np.stack(np.meshgrid(*x, indexing="xy")))
case("pad_constant", [(2, 2, 3)], lambda x: pad(x, (1, 2, 0, 1), value=7.0))
case("pad_crop", [(4, 4)], lambda x: pad(x, (-1, 2, 2, -3), value=7.0))
case("pad_reflect", [(1, 1, 4, 5)], lambda x: pad(x, (4, 1, 2, 3), mode="reflect"),
     lambda x: np.pad(x, ((0, 0), (0, 0), (2, 3), (4, 1)), mode="reflect"))
case("pad_replicate", [(1, 1, 2, 3)], lambda x: pad(x, (2, 0, 1, 3), mode="replicate"),
     lambda x: np.pad(x, ((0, 0), (0, 0), (1, 3), (2, 0)), mode="edge"))
case("pad_circular", [(1, 1, 3, 4)], lambda x: pad(x, (4, 2, 1, 3), mode="circular"),
     lambda x: np.pad(x, ((0, 0), (0, 0), (1, 3), (4, 2)), mode="wrap"))

case("scatter", [(3, 5), (2, 3)], lambda x, s: x.scatter(1, I([0, 4, 2], [3, 0, 1]), s))
case("scatter_twice", [(4,), (5,)], lambda x, s: scatter(x, 0, [1, 3, 1, 1, 3], s))
case("scatter_rows", [(3, 2), (4, 2)], lambda x, s: scatter(x, 0, [[2, 2], [0, 0], [2, 2], [2, 2]], s))
case("scatter_columns", [(2, 3, 2), (2, 2, 2)],
     lambda x, s: scatter(x, 1, [[[0, 2], [0, 1]], [[1, 1], [1, 2]]], s))
S = np.s_
case("slice_assign", [(4, 5), (2, 2)], lambda x, s: assigned(x, S[1:3, ::4], s))
case("slice_assign_index", [(3, 4, 2), (3, 2)], lambda x, s: assigned(x, S[:, -1], s))
case("slice_assign_scalar", [(3, 4), ()], lambda x, s: assigned(x, S[0, 1:3], s))
case("slice_assign_row", [(3, 4), (4,)], lambda x, s: assigned(x, S[1:], s))
case("slice_assign_all", [(2, 3), (2, 3)], lambda x, s: assigned(x, S[:], s))
case("slice_assign_none", [(2, 3), (2, 0)], lambda x, s: assigned(x, S[:, 3:], s))

for name, shape, index in [
    ("one", (4, 3), (I(2, 0, 2),)),
    ("negative", (4, 3), (I(-1, 0, -4),)),
    ("second", (3, 4, 2), (S[:], I(3, 1))),
    ("matrix", (3, 4), (I([0, 2], [1, 1]),)),
    ("pair", (3, 4, 2), (I(0, 2, 1), I(3, 0, 3))),
    ("broadcast", (3, 4), (I([0], [2]), I(3, 1, 0))),
    ("inner_pair", (2, 3, 4), (S[:], I(0, 2, 2), I(1, 1, 3))),
    ("apart", (3, 2, 4), (I(0, 2, 1), S[:], I(3, 0, 0))),
    ("apart_inner", (2, 3, 2, 4), (S[:], I(0, 2, 1), S[:], I(3, 0, 0))),
    ("single", (3, 4), (torch.tensor(1), I(2, 0))),
    ("empty", (3, 4), (torch.zeros(0, dtype=torch.int64),)),
]:
    at = tuple(i.numpy() if torch.is_tensor(i) else i for i in index)
    case(f"index_{name}", [shape], lambda x: x[index], lambda x: x[at])
unique = {
    "one": ((4, 3), (I(2, -4, 1),), (3, 3)),
    "row": ((4, 3), (I(2, -4, 1),), (3,)),
    "second": ((3, 4, 2), (S[:], I(3, 1)), (3, 2, 2)),
    "pair": ((3, 4, 2), (I(0, 2, 1), I(3, 0, 3)), (3, 2)),
    "broadcast": ((3, 4), (I([0], [2]), I(3, 1, 0)), (2, 3)),
    "apart": ((3, 2, 4), (I(0, 2, 1), S[:], I(3, 0, 0)), (3, 2)),
    "apart_scalar": ((2, 3, 2, 4), (S[:], I(0, 2, 1), S[:], I(3, 0, 0)), ()),
}
for name, (shape, index, source) in unique.items():
    case(f"index_put_{name}", [shape, source], lambda x, s: assigned(x, index, s))
# At the indices 2, 0, 2, 2, 0.
case("index_put_twice", [(3, 2), (5, 2)], lambda x, s: torch.stack([s[4], x[1], s[3]]))
mask = torch.tensor([[True, False, True], [False, True, True]])
case("masked_select", [(2, 3)], lambda x: x.masked_select(mask), lambda x: x[mask.numpy()])
case("masked_select_row", [(2, 3)], lambda x: x.masked_select(mask[0]))
case("masked_select_wider", [(3,)], lambda x: x.masked_select(mask))
case("masked_scatter", [(2, 3), (6,)], lambda x, s: x.masked_scatter(mask, s))
write("nonzero", torch.tensor([[[0, 3], [0, 0]], [[5, 0], [7, 1]]]).nonzero())
write("one_hot", torch.nn.functional.one_hot(torch.tensor([[2, 0], [1, 1]]), 4))
write("eye", np.eye(2, 4, dtype=np.int64))

"""Writes PyTorch's own samples of operations: arguments, results and gradients.

    python tests/vectors/torch_samples.py FOLDER [NAME…]

`tests/torch_samples.rs` compares them with what swath computes. Samples are those of PyTorch's database of operations
(`torch.testing._internal.common_methods_invocations.op_db`, with the package `expecttest`), and copies of them with
NaN, infinities and zeros among the elements. For each operation there are FOLDER/NAME.json, a list of samples, and
FOLDER/NAME.safetensors, the tensors that it names. Complex numbers are a last axis of two.
"""

import itertools
import json
import pathlib
import sys
import warnings

import torch
from safetensors.torch import save_file
from torch.testing._internal.common_methods_invocations import op_db

# Names, with the variant behind a colon, of the operations that are compared.
OPS = """
remainder fmax fmin copysign signbit heaviside erfinv lgamma digamma polygamma:polygamma_n_1
polygamma:polygamma_n_2 logit sinc logaddexp2 i0 special.i0e
special.i1 nn.functional.hardshrink nn.functional.softshrink nn.functional.hardsigmoid float_power ldexp frexp gcd lcm
bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift pow floor_divide fmod
repeat_interleave diff isin unique unique_consecutive mode median nanmedian nanquantile nansum nanmean count_nonzero
logcumsumexp scatter_reduce:sum scatter_reduce:prod scatter_reduce:mean scatter_reduce:amin scatter_reduce:amax
index_reduce:mean index_reduce:prod index_reduce:amin index_reduce:amax searchsorted bucketize histogram histc
nn.functional.adaptive_max_pool1d nn.functional.adaptive_max_pool2d
nn.functional.cosine_similarity nn.functional.pairwise_distance cdist cross linalg.cross kron cov corrcoef trapezoid
cumulative_trapezoid linalg.matrix_power diag_embed tril_indices triu_indices block_diag cartesian_prod logspace
linalg.vander
nn.functional.interpolate:nearest nn.functional.interpolate:nearest-exact nn.functional.interpolate:linear
nn.functional.interpolate:bilinear nn.functional.interpolate:bicubic nn.functional.interpolate:trilinear
nn.functional.interpolate:area nn.functional.grid_sample nn.functional.max_unpool1d nn.functional.max_unpool2d
nn.functional.max_unpool3d nn.functional.pixel_shuffle nn.functional.pixel_unshuffle nn.functional.channel_shuffle
nn.functional.local_response_norm
fft.fft fft.ifft fft.rfft fft.irfft fft.fftshift fft.ifftshift stft istft
squeeze squeeze:multiple unsqueeze full eye nn.functional.one_hot nn.functional.cross_entropy nn.functional.embedding
topk add sub logical_and logical_or logical_xor index_put native_layer_norm nn.functional.layer_norm
nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d sum amax amin
""".split()

FLOATS = [torch.float64, torch.float32]
INTEGERS = [torch.int64, torch.int32, torch.uint8, torch.bool]
SPECIALS = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0]
MOST_ELEMENTS = 20_000
MOST_SAMPLES = 150


class Writer:
    """The samples of one operation."""

    def __init__(self):
        self.samples, self.tensors = [], {}

    def tensor(self, value):
        name = str(len(self.tensors))
        value = value.detach()
        if value.is_complex():
            value = torch.view_as_real(value.resolve_conj())
        self.tensors[name] = value.resolve_neg().contiguous().clone()
        return name

    def argument(self, value):
        """The value as JSON; a tensor is named."""
        if isinstance(value, torch.Tensor):
            return {"tensor": self.tensor(value), "complex": value.is_complex()}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, (list, tuple)):
            return [self.argument(item) for item in value]
        if isinstance(value, complex):
            raise NotImplementedError
        if isinstance(value, float) and (value != value or abs(value) == float("inf")):
            return {"float": str(value)}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, torch.memory_format) or isinstance(value, torch.device):
            return None
        raise NotImplementedError(type(value))


def leaves(value):
    """All tensors within an argument."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from leaves(value[key])


def mapped(value, f):
    if isinstance(value, torch.Tensor):
        return f(value)
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, f) for item in value)
    if isinstance(value, dict):
        return {key: mapped(value[key], f) for key in sorted(value)}
    return value


def with_specials(generator):
    def change(x):
        if not x.is_floating_point() or x.numel() == 0:
            return x
        x = x.detach().clone()
        chosen = torch.rand(x.shape, generator=generator) < 0.15
        values = torch.tensor(SPECIALS, dtype=x.dtype)
        x[chosen] = values[torch.randint(len(SPECIALS), (int(chosen.sum()),), generator=generator)]
        return x

    return change


def record(writer, op, call, generator, has_gradient):
    """Runs an operation and keeps its arguments, results and gradients."""
    if sum(x.numel() for x in leaves(call)) > MOST_ELEMENTS:
        return
    def leaf(x):
        # A strided copy would lose what `expand` shares; gradients are those of the values.
        return x.detach().clone().requires_grad_(has_gradient and (x.is_floating_point() or x.is_complex()))
    call = mapped(call, leaf)
    tracked = [x for x in leaves(call) if x.requires_grad]
    results = op(*call["args"], **call["kwargs"])
    results = list(leaves(results if isinstance(results, (tuple, list)) else [results]))
    if not results or any(x.numel() > MOST_ELEMENTS for x in results):
        return
    sample = {"args": writer.argument(call["args"]),
              "kwargs": {key: writer.argument(value) for key, value in call["kwargs"].items()},
              "results": [writer.tensor(x) for x in results], "upstream": [], "gradients": []}
    outputs = [x for x in results if x.requires_grad]
    if has_gradient and outputs and tracked:
        outputs = [torch.view_as_real(x) if x.is_complex() else x for x in outputs]
        upstream = [torch.randn(x.shape, dtype=x.dtype, generator=generator) for x in outputs]
        loss = sum((x * g).sum().double() for x, g in zip(outputs, upstream))
        gradients = torch.autograd.grad(loss, tracked, allow_unused=True)
        sample["upstream"] = [None if not x.requires_grad else writer.tensor(upstream.pop(0)) for x in results]
        sample["gradients"] = [None if g is None else writer.tensor(g) for g in gradients]
        sample["tracked"] = len(tracked)
    writer.samples.append(sample)


def samples_of(info, writer, generator):
    is_spectral = info.name in ("fft.fft", "fft.ifft", "fft.irfft", "istft")
    dtypes = [torch.complex128, torch.complex64] if is_spectral else FLOATS + INTEGERS
    failed = 0
    for dtype in dtypes:
        if not info.supports_dtype(dtype, "cpu"):
            continue
        can_track = info.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        samples = list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=False), MOST_SAMPLES))
        for sample in samples:
            call = {"args": (sample.input, *sample.args), "kwargs": dict(sample.kwargs)}
            changes = [None]
            if dtype.is_floating_point:
                changes.append(with_specials(generator))
            for change in changes:
                changed = call if change is None else mapped(call, change)
                if change and info.name == "nn.functional.grid_sample":
                    # PyTorch reads other memory at positions that are not finite.
                    changed["args"] = (changed["args"][0], *call["args"][1:])
                try:
                    record(writer, info.op, changed, generator, can_track)
                except (RuntimeError, NotImplementedError, IndexError, ValueError, TypeError) as error:
                    failed += 1
                    print(f"  {info.name}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
    return failed


def main():
    folder = pathlib.Path(sys.argv[1])
    wanted = sys.argv[2:] or OPS
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    total = 0
    for name in wanted:
        name, _, variant = name.partition(":")
        torch.manual_seed(1)
        generator = torch.Generator().manual_seed(1)
        writer = Writer()
        for info in op_db:
            if info.name == name and info.variant_test_name == variant:
                samples_of(info, writer, generator)
        file = name.replace("nn.functional.", "") + (f"-{variant}" if variant else "")
        if not writer.samples:
            print(f"no samples of {file}", file=sys.stderr)
            continue
        save_file(writer.tensors, folder / f"{file}.safetensors")
        (folder / f"{file}.json").write_text(json.dumps(writer.samples))
        total += len(writer.samples)
        print(f"{file}: {len(writer.samples)}")
    print(f"{total} samples of {len(wanted)} operations")


if __name__ == "__main__":
    main()

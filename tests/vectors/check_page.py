"""Runs the left-hand sides of docs/FROM_NUMPY_AND_PYTORCH.md in NumPy and PyTorch and writes tests/suite/page/.

python3 tests/vectors/check_page.py (with numpy, scipy, torch); then `cargo test --test suite page::` runs the right-hand sides,
printed into those files, and compares. A new row of a table needs nothing but this, as long as it uses names that are defined
below and in the code block under the table.

A code snippet on the left counts with the values that it has in either library, as far as it runs there; each must be that
of a snippet on the right, and each snippet on the right must have one of the values on the left. Tuples are compared as
far as both sides go. Names of functions, prose and results without numbers do not count.
"""

import copy
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy.special
import torch
import torch.nn.functional as F

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/FROM_NUMPY_AND_PYTORCH.md"
OUT = ROOT / "tests/suite/page/sections"

# What the snippets of a section use, in NumPy; PyTorch gets the same as tensors. Other sections are left out.
f32 = lambda *values: np.array(values, dtype=np.float32)
grid = np.arange(12, dtype=np.float32).reshape(3, 4)
square = f32([1, 2], [3, 4])
signs = {"x": f32(1, -4, 2.5, 0.25), "y": f32(2, 3, -0.5, 0.25), "z": f32(0.5, 1, 2, 3), "i": np.array([12, -7, 5, 0]), "j": np.array([3, 2, 4, 1])}
PYTHON = {
    "Making tensors": {"x": square},
    "Looking at tensors": {"x": f32([1.5])},
    "Shapes and views": {"x": grid, "y": grid[None], "z": grid[None, ..., None], "v": grid[0]},
    "Arithmetic, functions, comparisons": signs | {"m": signs["x"] > 1, "n": signs["x"] == signs["y"]},
    "Reductions": {"x": f32([1, 2], [3, 5]), "points": f32(0, 2), "w": np.array([1, 3])},
    "Linear algebra": {"a": square, "b": f32([0, 1], [1, 0]), "u": f32(1, 2), "v": f32(3, 4), "p": f32(1, 2, 2), "q": f32(2, 4, 4)},
    "Indices": {
        "x": square, "ids": np.array([1, 1]), "i": np.array([[1, 0], [0, 0]]), "cols": np.array([0, 1]),
        "y": f32([10, 10], [1, 1]), "v": f32(7, 8), "m": square > 2.5, "counts": np.array([0, 2]), "mask": np.array([True, True]),
    },
    "Order and counts": {
        "x": f32(3, 1, 2, 1), "v": f32(1, 2, 3), "ids": np.array([1, 1, 0, 2]), "w": f32(0.5, 0.25, 0.25), "rows": f32([3, 1], [2, 1]),
    },
}
image = torch.arange(32.0).reshape(1, 4, 2, 4)
theta = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
pooled, at = F.max_pool2d(image, 2, return_indices=True)
PYTHON["Images"] = {
    "x": image.numpy(), "theta": theta.numpy(), "grid": F.affine_grid(theta, image.shape, False).numpy(),
    "y": pooled.numpy(), "at": at.numpy(),
}
signal, window = torch.arange(16.0).reshape(2, 8), torch.hann_window(4)
PYTHON["Spectra"] = {
    "z": np.array([1, 1j, -1, -1j], dtype=np.complex64), "x": signal.numpy(), "y": torch.fft.rfft(signal).numpy(),
    "w": window.numpy(), "f": torch.stft(signal, 4, window=window, return_complex=True).numpy(),
}
# What the snippets on the right use instead of the `let` statements of the block under the table, or besides.
RUST = {
    "Arithmetic, functions, comparisons": """
        let x = tensor![1.0, -4.0, 2.5, 0.25];
        let y = tensor![2.0, 3.0, -0.5, 0.25];
        let z = tensor![0.5, 1.0, 2.0, 3.0];
        let (i, j) = (tensor![i64; 12, -7, 5, 0], tensor![i64; 3, 2, 4, 1]);
        let (m, n) = (x.gt(1.0)?, x.eq(&y)?);
    """,
}
# Results of which only the shape is known.
RANDOM = re.compile(r"rng\.|torch\.rand|multinomial")
# Snippets that need more than a table says, or have no numbers; a part of the text is enough.
NOT_RUN = [
    "torch.from_numpy(a)", "from_vec", ".dtype", "print", "as_slice", "np.set_printoptions", "np.add.at",
    "torchvision", "StftOptions",
]


def is_run(snippet):
    return not any(part in snippet for part in NOT_RUN)


def is_name(snippet):
    """A name, a pattern or the like, not code to run."""
    return "…" in snippet or re.fullmatch(r"[\w.]+", snippet) is not None and not re.match(r"[a-z]\.\w+$", snippet)


def tables():
    """Title, rows and the code block of each section with a table."""
    for section in PAGE.read_text().split("\n## ")[1:]:
        title, rows = section.split("\n", 1)[0], []
        for line in re.findall(r"^\| (`.*) \|$", section, re.M):
            cuts = (i for i in range(len(line)) if line.startswith(" | ", i) and line.count("`", 0, i) % 2 == 0)
            cut = next(cuts)
            sides = [line[:cut], line[cut + 3 :]]
            rows.append([re.findall(r"`([^`]+)`", side.replace("\\|", "|")) for side in sides])
        block = re.search(r"```rust\n(.*?)```", section, re.S)
        if rows and block:
            yield title, rows, block[1]


def parts(value):
    """The shapes and numbers of a result; None if it has none."""
    if isinstance(value, torch.Size):
        value = np.array(value)
    if isinstance(value, (tuple, list)):
        inner = [parts(x) for x in value]
        if inner and all(isinstance(x, (int, float)) for x in value):
            return [([len(value)], [float(x) for x in value])]
        return None if not inner or None in inner else sum(inner, [])
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    if isinstance(value, (bool, int, float, np.generic, np.ndarray)) and not isinstance(value, (np.str_,)):
        value = np.asarray(value)
        if value.dtype.kind == "c":
            value = np.stack([value.real, value.imag], -1)
        if value.dtype.kind in "biuf":
            return [(list(value.shape), [float(x) for x in value.ravel()])]
    return None


def run(snippet, names):
    """The result of a snippet, an expression or a statement that changes the variable that it begins with."""
    names = {**copy.deepcopy(names), "np": np, "torch": torch, "F": F, "scipy": scipy}
    try:
        return parts(eval(snippet, names))
    except SyntaxError:
        exec(snippet, names)
        return parts(names[re.match(r"\w+", snippet)[0]])


def values(snippet, section):
    """The distinct results of a snippet in the two libraries."""
    arrays = PYTHON.get(section, {})
    if "rng" in snippet:
        arrays = {**arrays, "rng": np.random.default_rng(1)}
    tensors = {name: torch.from_numpy(x.copy()) if isinstance(x, np.ndarray) else x for name, x in arrays.items()}
    found, errors = [], []
    for names in [arrays, tensors]:
        try:
            value = run(snippet, names)
            if value is not None and value not in found:
                found.append(value)
        except Exception as error:
            errors.append(error)
    if not found and len(errors) == 2:
        sys.exit(f"{section}: `{snippet}` runs in neither library: {errors}")
    return found


def text(value, with_numbers):
    numbers = lambda x: ": " + " ".join(np.format_float_positional(n, trim="-") if np.isfinite(n) else str(n) for n in x)
    return "; ".join(str(dims) + (numbers(x) if with_numbers else "") for dims, x in value)


def statements(block):
    """The `use` and `let` statements of a code block."""
    found, open_one = [], ""
    for line in block.split("\n"):
        open_one += line + "\n"
        if line.endswith((";", "}")) or line.startswith("#") or not line:
            found.append(open_one)
            open_one = ""
    return "".join(x for x in found if x.startswith(("use ", "let ")))


def right(snippet):
    """A snippet as an expression; None for names, and statements other than of `z`, which is a copy of x."""
    if is_name(snippet) or not is_run(snippet) or snippet.startswith("let "):
        return None
    if re.match(r"z(\.set_|\.\w+_assign| *[-+*/]=)", snippet):
        return f"{{ let mut z = x.clone(); {snippet.rstrip(';')}; z }}"
    return snippet


def main():
    warnings.simplefilter("ignore")
    OUT.mkdir(parents=True, exist_ok=True)
    names, compared, left_out = [], 0, []
    for title, rows, block in tables():
        lines = []
        for lefts, rights in rows:
            runs = [x for x in lefts if title in PYTHON and is_run(x) and not is_name(x)]
            wanted = [values(x, title) for x in runs]
            wanted = [x for x in wanted if x]
            found = [x for x in map(right, rights) if x]
            if not wanted or not found:
                left_out.append(f"{title}: {', '.join(lefts)}")
                continue
            random = any(RANDOM.search(x) for x in lefts)
            options = [" | ".join(dict.fromkeys(text(v, not random) for v in x)) for x in wanted]
            shown = ", ".join(f"found(&({x}))" for x in found)
            strings = ", ".join('"' + x + '"' for x in options)
            key = " ".join(f"`{x}`" for x in lefts + rights).replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'    row("{key}", &[{shown}], &[{strings}]);')
            compared += 1
        if not lines:
            continue
        name = re.sub(r"\W+", "_", title.lower())
        names.append(name)
        prelude = RUST.get(title) or statements(block).replace("use swath::cpu::prelude::*;\n", "")
        code = f"//! {title}. Written by `tests/vectors/check_page.py`.\n\nuse crate::page::{{found, row}};\nuse swath::cpu::prelude::*;\n\n"
        code += f"pub fn rows() -> Result<()> {{\n{prelude}{chr(10).join(lines)}\n    Ok(())\n}}\n"
        (OUT / f"{name}.rs").write_text(code)
    modules = "".join(f"mod {name};\n" for name in names)
    calls = "".join(f"    {name}::rows()?;\n" for name in names)
    text_of_all = "//! The sections of the page. Written by `tests/vectors/check_page.py`.\n\n"
    text_of_all += f"{modules}\nuse swath::prelude::*;\n\npub fn all() -> Result<()> {{\n{calls}    Ok(())\n}}\n"
    OUT.with_suffix(".rs").write_text(text_of_all)
    subprocess.run(["rustfmt", "--edition", "2024", OUT.with_suffix(".rs")], check=True)
    print(f"{compared} rows compared; without numbers, or needing more than the table says:")
    print("\n".join(f"    {row}" for row in left_out))


main()

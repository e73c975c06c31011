#!/usr/bin/env python3
"""Writes the folder `files` beside this file: files as other programs write them, which tests/suite/files reads.

usage: python make_files.py        (torch 2.x, numpy, safetensors, gguf, pillow)
"""
import gzip, json, pathlib, struct

import gguf
import numpy as np
import torch
import torch.nn as nn
from PIL import Image
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).parent / "files"


def layers():
    """One layer of each kind, its state, an input and PyTorch's output."""
    block = dict(dim_feedforward=8, dropout=0.0, batch_first=True, norm_first=True)
    images = (2, 4, 5, 5)
    made = {
        "linear": (nn.Linear(3, 2), (2, 3)),
        "embedding": (nn.Embedding(5, 3), None),
        "layer_norm": (nn.LayerNorm(4), (2, 4)),
        "rms_norm": (nn.RMSNorm(4, eps=1e-5), (2, 4)),
        "group_norm": (nn.GroupNorm(2, 4), images),
        "batch_norm1d": (nn.BatchNorm1d(4), (3, 4, 5)),
        "batch_norm2d": (nn.BatchNorm2d(4), images),
        "batch_norm3d": (nn.BatchNorm3d(2), (2, 2, 2, 3, 2)),
        "conv1d": (nn.Conv1d(4, 2, 3), (2, 4, 6)),
        "conv2d": (nn.Conv2d(4, 3, 3), images),
        "conv3d": (nn.Conv3d(2, 3, 2), (1, 2, 3, 3, 3)),
        "conv_transpose1d": (nn.ConvTranspose1d(4, 2, 3), (2, 4, 3)),
        "conv_transpose2d": (nn.ConvTranspose2d(4, 3, 2), images),
        "attention": (nn.MultiheadAttention(4, 2, batch_first=True), (2, 3, 4)),
        "block": (nn.TransformerEncoderLayer(4, 2, activation="gelu", **block), (2, 3, 4)),
    }
    state, inputs, outputs = {}, {}, {}
    for name, (layer, shape) in made.items():
        with torch.no_grad():
            for tensor in layer.state_dict().values():
                if tensor.is_floating_point():
                    tensor.copy_(torch.rand_like(tensor) + 0.25)
            x = torch.tensor([3, 0, 4]) if shape is None else torch.randn(shape)
            layer.eval()
            y = layer(x, x, x)[0] if name == "attention" else layer(x)
        state |= {f"{name}.{key}": value for key, value in layer.state_dict().items()}
        inputs[name], outputs[name] = x, y
    torch.save({"model": state, "inputs": inputs, "outputs": outputs, "epoch": 7}, FOLDER / "layers.pt")


def types():
    """All types, views of one storage, a parameter, nesting."""
    matrix = torch.arange(6.0).reshape(2, 3)
    small = torch.tensor([0, 1, 100])
    plain = "float16 bfloat16 float32 float64 int64 int32 int16 int8 uint8 uint16 uint32 uint64 complex64".split()
    tensors = {name: small.to(getattr(torch, name)) for name in plain}
    tensors |= {
        "bool": small > 0, "float8_e4m3fn": torch.tensor([0.5, -448.0]).to(torch.float8_e4m3fn),
        "matrix": matrix, "transposed": matrix.t(), "column": matrix[:, 1], "expanded": matrix[:1].expand(2, 3),
        "scalar": torch.tensor(2.5), "empty": torch.zeros(0, 3), "parameter": nn.Parameter(torch.ones(2)),
        "nested": {"deep": {0: torch.ones(1), "list": [torch.ones(1)], "text": "no tensor", "none": None, "f": 0.5}},
    }
    torch.save(tensors, FOLDER / "types.pt")


def gpt2():
    """A checkpoint of GPT-2's names and shapes, small, in shards with an index."""
    width, layers, words, context = 8, 2, 16, 6
    folder = FOLDER / "gpt2"
    folder.mkdir(exist_ok=True)
    shapes = {"wte.weight": (words, width), "wpe.weight": (context, width), "ln_f.weight": (width,), "ln_f.bias": (width,)}
    for i in range(layers):
        parts = {"ln_1": (width,), "attn.c_attn": (width, 3 * width), "attn.c_proj": (width, width), "ln_2": (width,),
                 "mlp.c_fc": (width, 4 * width), "mlp.c_proj": (4 * width, width)}
        for part, shape in parts.items():
            shapes |= {f"h.{i}.{part}.weight": shape, f"h.{i}.{part}.bias": shape[-1:]}
    weights = {f"transformer.{name}": (torch.randn(shape) / 4).half() for name, shape in shapes.items()}
    x = hidden = weights["transformer.wte.weight"].float()[[3, 1, 4]] + weights["transformer.wpe.weight"].float()[:3]
    w = lambda name: weights[f"transformer.{name}"].float()
    norm = lambda x, name: nn.functional.layer_norm(x, (width,), w(f"{name}.weight"), w(f"{name}.bias"))
    conv1d = lambda x, name: x @ w(f"{name}.weight") + w(f"{name}.bias")
    for i in range(layers):
        heads = conv1d(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").reshape(3, 3, 2, width // 2).permute(1, 2, 0, 3)
        y = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + conv1d(y.transpose(0, 1).reshape(3, width), f"h.{i}.attn.c_proj")
        hidden = nn.functional.gelu(conv1d(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
        x = x + conv1d(hidden, f"h.{i}.mlp.c_proj")
    save_file({"ids": torch.tensor([3, 1, 4]), "output": norm(x, "ln_f")}, FOLDER / "gpt2-output.safetensors")
    names = sorted(weights)
    thirds, index = [names[i::3] for i in range(3)], {}
    for i, part in enumerate(thirds):
        file = f"model-{i + 1:05}-of-00003.safetensors"
        save_file({name: weights[name] for name in part}, folder / file, {"format": "pt"})
        index |= {name: file for name in part}
    total = sum(weight.nbytes for weight in weights.values())
    text = json.dumps({"metadata": {"total_size": total}, "weight_map": index}, indent=2)
    (folder / "model.safetensors.index.json").write_text(text)


def arrays():
    """NumPy's archive, with arrays that are no tensors."""
    numbers = np.arange(6, dtype="<f4").reshape(2, 3)
    np.savez(
        FOLDER / "arrays.npz", f4=numbers, fortran=np.asfortranarray(numbers), big=numbers.astype(">f8"),
        u2=np.array([0, 65535], dtype="<u2"), texts=np.array(["a", "bc"]), empty=np.zeros((0, 3)), bool=numbers > 2,
        records=np.zeros(2, dtype=[("x", "<f4"), ("y", "<i4")]), complex=np.array([1j], dtype="<c8"), one=np.float64(2.5),
    )
    np.savez_compressed(
        FOLDER / "compressed.npz", a=numbers, f=np.asfortranarray(numbers.astype(">i4")), s=np.float64(2.5)
    )
    np.savetxt(FOLDER / "table.csv", numbers / 8, delimiter=",", header="a,b,c", comments="")


def quantised():
    writer = gguf.GGUFWriter(FOLDER / "small.gguf", "llama")
    writer.add_block_count(2)
    writer.add_name("small")
    writer.add_token_list(["a", "b", "c"])
    rows = np.arange(128, dtype=np.float32).reshape(2, 64)
    writer.add_tensor("blk.0.weight", rows)
    writer.add_tensor("blk.0.half", rows.astype(np.float16))
    for kind in ("Q8_0", "Q4_0", "Q5_0", "Q4_1", "Q5_1"):
        kind = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(f"blk.1.{kind.name}", gguf.quantize(rows, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    sizes = [f"{kind.value} {kind.name} {a} {b}\n" for kind, (a, b) in gguf.GGML_QUANT_SIZES.items()]
    (FOLDER / "gguf-sizes.txt").write_text("".join(sizes))


def pictures():
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3) * 10
    Image.fromarray(pixels).save(FOLDER / "rgb.png")
    Image.fromarray(pixels[..., 0]).save(FOLDER / "gray.png")
    gray = Image.fromarray(pixels).convert("L")
    np.save(FOLDER / "rgb-gray.npy", np.asarray(gray))
    Image.fromarray(pixels).save(FOLDER / "rgb.jpg", subsampling=0)
    np.save(FOLDER / "rgb-jpg.npy", np.asarray(Image.open(FOLDER / "rgb.jpg")))
    header = struct.pack(">HBB3I", 0, 0x08, 3, 2, 4, 3)
    (FOLDER / "images.idx3-ubyte.gz").write_bytes(gzip.compress(header + pixels.tobytes(), mtime=0))
    doubles = struct.pack(">HBBI3d", 0, 0x0E, 1, 3, 0.5, -1.0, 1e300)
    (FOLDER / "doubles.idx").write_bytes(doubles)


if __name__ == "__main__":
    torch.manual_seed(55)
    FOLDER.mkdir(exist_ok=True)
    for write in (layers, types, gpt2, arrays, quantised, pictures):
        write()

#!/usr/bin/env python3
"""Writes gpt.safetensors beside this file: a small GPT's first weights, its batches and PyTorch's first 20
losses, in training as the example `train_gpt` does it (AdamW, decay of matrices alone, clipped gradients).

usage: python make_gpt.py        (torch 2.x; computed in float64, weights and batches stored as float32, int64)
"""
import json, os, struct

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY, WIDTH, HEADS, LAYERS, CONTEXT, BATCH, STEPS = 13, 16, 2, 2, 8, 4, 20
RATE, BETAS, EPS, DECAY, CLIP = 1e-2, (0.9, 0.95), 1e-8, 0.1, 1.0


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.randn(CONTEXT, WIDTH) * 0.02)
        block = lambda: nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True,
            activation=lambda x: F.gelu(x, approximate="tanh"),
        )
        self.blocks = nn.ModuleList(block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions
        mask = nn.Transformer.generate_square_subsequent_mask(CONTEXT, dtype=x.dtype)
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        return self.head(self.norm(x))


def save(path, tensors):
    kinds = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64"}
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {
            "dtype": kinds[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main():
    torch.manual_seed(20)
    model = Gpt()
    # Biases and norms away from what they begin as, so that their places count.
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    weights = {f"weights.{name}": p.detach().clone() for name, p in model.named_parameters()}
    model.double()
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, RATE, BETAS, EPS)
    # Sequences with a rule, so that the losses fall and every step counts for those after it.
    start = torch.randint(0, VOCABULARY, (STEPS, BATCH, 1))
    place = torch.arange(CONTEXT + 1)
    batches = (start + 5 * place + place // 3) % VOCABULARY
    losses = []
    for batch in batches:
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, VOCABULARY), batch[:, 1:].reshape(-1))
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
    tensors = weights | {"batches": batches, "losses": torch.tensor(losses, dtype=torch.float64)}
    save(os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpt.safetensors"), tensors)
    print(losses)


if __name__ == "__main__":
    main()

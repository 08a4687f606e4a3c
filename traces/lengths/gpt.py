"""A language model like GPT-2 on AdamW, whose batches have lengths of their own.

    gpt.py SIZE 128,64,96           these lengths, in this order
    gpt.py SIZE random:60:64:128:7  60 lengths from 64 to 128 (Python's random, seed 7)

SIZE is tiny (attention from products, with a mask), small or medium (scaled_dot_product_attention).
"""

import random
import sys

import torch
from torch import nn
from torch.nn import functional as F

#        layers, width, heads, vocabulary, batch
SIZES = {
    "tiny": (2, 128, 4, 2048, 8),
    "small": (4, 384, 6, 16384, 8),
    "medium": (6, 512, 8, 50257, 16),
}
LAYERS, WIDTH, HEADS, VOCAB, BATCH = SIZES[sys.argv[1]]


def attention(q, k, v):
    if sys.argv[1] != "tiny":
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    length = q.shape[2]
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
    mask = torch.ones(length, length, dtype=torch.bool, device=q.device).tril()
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.n1(x)).split(WIDTH, dim=2)
        q, k, v = (z.view(b, t, HEADS, c // HEADS).transpose(1, 2) for z in (q, k, v))
        y = attention(q, k, v)
        x = x + self.drop(self.out(y.transpose(1, 2).reshape(b, t, c)))
        return x + self.drop(self.down(F.gelu(self.up(self.n2(x)))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCAB, WIDTH), nn.Embedding(1024, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def lengths(what):
    if not what.startswith("random:"):
        return [int(length) for length in what.split(",")]
    _, count, low, high, seed = what.split(":")
    drawn = random.Random(int(seed))
    return [drawn.randint(int(low), int(high)) for _ in range(int(count))]


device = "cuda" if torch.cuda.is_available() else "cpu"
model = Model().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for length in lengths(sys.argv[2]):
    ids = torch.randint(0, VOCAB, (BATCH, length + 1))
    x, y = ids[:, :-1].contiguous().to(device), ids[:, 1:].contiguous().to(device)
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if device == "cuda":
        peaks = torch.cuda.max_memory_reserved(), torch.cuda.max_memory_allocated()
        print(length, *peaks, flush=True)

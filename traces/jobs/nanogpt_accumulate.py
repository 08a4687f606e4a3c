"""A decoder written out by hand, in bfloat16 autocast; two batches accumulated into each step of a
fused AdamW, gradients clipped."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

COVERS = ["causal-lm", "amp", "gradient-accumulation", "gradient-clipping", "fused", "adamw"]
OPTIMIZER_IMPL = "fused"
WORDS, WIDTH, HEADS, LENGTH = 10_000, 384, 6, 256


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        wide, narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.wide = nn.Sequential(wide, nn.GELU(), narrow, nn.Dropout(0.1))

    def forward(self, x):
        parts = self.qkv(self.first(x)).split(WIDTH, dim=2)
        q, k, v = (part.view(*part.shape[:2], HEADS, -1).transpose(1, 2) for part in parts)
        y = scaled_dot_product_attention(q, k, v, dropout_p=0.1, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view_as(x))
        return x + self.wide(self.second(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(6)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.words.weight

    def forward(self, words, targets):
        places = torch.arange(words.shape[1], device=words.device)
        x = self.blocks(self.words(words) + self.places(places))
        return cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def setup(device):
    model = Decoder().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)

    def step():
        for _ in range(2):
            text = torch.randint(0, WORDS, (4, LENGTH + 1)).to(device)
            with torch.autocast(device.type, torch.bfloat16):
                loss = model(text[:, :-1], text[:, 1:]) / 2
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return model, step

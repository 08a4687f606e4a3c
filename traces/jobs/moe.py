"""A mixture of experts: each expert takes the same number of tokens, those that score it highest;
AdamW, gradients clipped."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention

COVERS = ["mixture-of-experts", "gradient-clipping", "adamw"]
WORDS, WIDTH, HEADS, EXPERTS, BATCH, LENGTH = 8000, 256, 4, 8, 8, 128


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.enter = nn.Parameter(torch.randn(EXPERTS, WIDTH, 4 * WIDTH) * 0.02)
        self.leave = nn.Parameter(torch.randn(EXPERTS, 4 * WIDTH, WIDTH) * 0.02)

    def forward(self, x):
        tokens = x.flatten(0, 1)
        scores = torch.softmax(self.router(tokens), dim=-1)
        gates, chosen = torch.topk(scores.t(), k=2 * tokens.shape[0] // EXPERTS, dim=-1)
        inputs = tokens[chosen]
        outputs = torch.bmm(gelu(torch.bmm(inputs, self.enter)), self.leave) * gates.unsqueeze(-1)
        mixed = torch.zeros_like(tokens).index_add(0, chosen.flatten(), outputs.flatten(0, 1))
        return mixed.view_as(x)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)])
        self.qkv, self.out, self.experts = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), Experts()

    def forward(self, x):
        parts = self.qkv(self.norms[0](x)).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
        seen = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(-2))
        return x + self.experts(self.norms[1](x))


def setup(device):
    layers = [Layer() for _ in range(4)]
    head = [nn.RMSNorm(WIDTH), nn.Linear(WIDTH, WORDS)]
    model = nn.Sequential(nn.Embedding(WORDS, WIDTH), *layers, *head).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step():
        words = torch.randint(0, WORDS, (BATCH, LENGTH + 1)).to(device)
        loss = cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return model, step

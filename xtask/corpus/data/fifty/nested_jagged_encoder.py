# Transformer encoder over nested (jagged) tensors: no padding at all
import random
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(0)
D, H, V = 384, 6, 8000


class Attn(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, [H, D // H]).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.o(y.transpose(1, 2).flatten(-2))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n1, self.n2 = Attn(), nn.LayerNorm(D), nn.LayerNorm(D)
        self.f = nn.Sequential(nn.Linear(D, 4 * D), nn.ReLU(), nn.Linear(4 * D, D))

    def forward(self, x):
        x = x + self.a(self.n1(x))
        return x + self.f(self.n2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, D)
        self.layers = nn.ModuleList(Layer() for _ in range(4))
        self.head = nn.Linear(D, V)

    def forward(self, ids):
        x = self.emb(ids)
        for l in self.layers:
            x = l(x)
        return self.head(x)


model = Model().to("cuda")
opt = torch.optim.AdamW(model.parameters(), 1e-4)
for step in range(6):
    seqs = [torch.randint(1, V, (random.randint(20, 200),), device="cuda") for _ in range(12)]
    ids = torch.nested.nested_tensor(seqs, layout=torch.jagged)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = model(ids)
    loss = F.cross_entropy(logits.values().float(), ids.values())
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())

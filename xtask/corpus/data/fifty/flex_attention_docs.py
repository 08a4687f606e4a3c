"""Causal attention within documents of a packed sequence, with flex_attention and a score_mod (ALiBi)."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

H, D, T, V = 8, 64, 512, 6000


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        d = H * D
        self.n1, self.n2 = nn.RMSNorm(d), nn.RMSNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        self.register_buffer("slopes", torch.exp2(-torch.arange(1, H + 1) * 8.0 / H))

    def forward(self, x, block_mask):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, H, D).permute(2, 0, 3, 1, 4)
        slopes = self.slopes

        def alibi(score, b, h, qi, ki):
            return score + slopes[h] * (ki - qi)

        y = flex_attention(q, k, v, score_mod=alibi, block_mask=block_mask)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))


class LM(nn.Module):
    def __init__(self, layers=4):
        super().__init__()
        self.emb = nn.Embedding(V, H * D)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.out = nn.Linear(H * D, V, bias=False)

    def forward(self, ids, docs):
        def mask(b, h, q, k):
            return (q >= k) & (docs[b, q] == docs[b, k])

        bm = create_block_mask(mask, ids.size(0), None, ids.size(1), ids.size(1), device=ids.device)
        x = self.emb(ids)
        for blk in self.blocks:
            x = blk(x, bm)
        return self.out(x)


model = LM().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
for it in range(5):
    ids = torch.randint(0, V, (4, T + 1)).cuda()
    docs = (torch.rand(4, T) < 0.01).cumsum(1).cuda()
    loss = F.cross_entropy(model(ids[:, :-1], docs).reshape(-1, V), ids[:, 1:].reshape(-1))
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    print(it, loss.item())

# mamba-minimal (selective scan in plain PyTorch), trained on copying
import torch
import torch.nn as nn
import torch.nn.functional as F
from einops import einsum, rearrange, repeat


class MambaBlock(nn.Module):
    def __init__(self, d=256, n=16, expand=2, conv=4):
        super().__init__()
        self.di, self.n, self.r = d * expand, n, d // 16
        self.in_proj = nn.Linear(d, self.di * 2, bias=False)
        self.conv = nn.Conv1d(self.di, self.di, conv, groups=self.di, padding=conv - 1)
        self.x_proj = nn.Linear(self.di, self.r + 2 * n, bias=False)
        self.dt_proj = nn.Linear(self.r, self.di)
        self.A_log = nn.Parameter(torch.log(repeat(torch.arange(1.0, n + 1), "n -> d n", d=self.di)))
        self.D = nn.Parameter(torch.ones(self.di))
        self.out_proj = nn.Linear(self.di, d, bias=False)
        self.norm = nn.RMSNorm(d)

    def forward(self, x):
        b, l, _ = x.shape
        res_in = x
        x, res = self.in_proj(self.norm(x)).split([self.di, self.di], -1)
        x = F.silu(rearrange(self.conv(rearrange(x, "b l d -> b d l"))[:, :, :l], "b d l -> b l d"))
        delta, B, C = self.x_proj(x).split([self.r, self.n, self.n], -1)
        delta = F.softplus(self.dt_proj(delta))
        A = -torch.exp(self.A_log.float())
        dA = torch.exp(einsum(delta, A, "b l d, d n -> b l d n"))
        dBu = einsum(delta, B, x, "b l d, b l n, b l d -> b l d n")
        h = torch.zeros(b, self.di, self.n, device=x.device)
        ys = []
        for i in range(l):
            h = dA[:, i] * h + dBu[:, i]
            ys.append(einsum(h, C[:, i], "b d n, b n -> b d"))
        y = (torch.stack(ys, 1) + x * self.D) * F.silu(res)
        return res_in + self.out_proj(y)


class LM(nn.Module):
    def __init__(self, v=64, d=256, layers=3):
        super().__init__()
        self.e = nn.Embedding(v, d)
        self.m = nn.Sequential(*[MambaBlock(d) for _ in range(layers)], nn.RMSNorm(d))
        self.h = nn.Linear(d, v, bias=False)

    def forward(self, x):
        return self.h(self.m(self.e(x)))


net = LM().cuda()
opt = torch.optim.AdamW(net.parameters(), 1e-3)
for i in range(5):
    x = torch.randint(2, 64, (8, 32)).cuda()
    seq = torch.cat([x, x], 1)
    loss = F.cross_entropy(net(seq[:, :-1]).transpose(1, 2), seq[:, 1:])
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    print(i, loss.item())

# ProbSparse attention forecaster (Informer-like) with distilling convolutions and early stopping
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class ProbAttention(nn.Module):
    def __init__(self, d, h, factor=5):
        super().__init__()
        self.h, self.f = h, factor
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))

    def forward(self, x):
        b, L, d = x.shape
        q, k, v = (f(x).view(b, L, self.h, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        u = min(L, int(self.f * math.ceil(math.log(L + 1))))
        samp = torch.randint(L, (L, u), device=x.device)
        ks = k[:, :, samp]
        qk = torch.matmul(q.unsqueeze(-2), ks.transpose(-2, -1)).squeeze(-2)
        m = qk.max(-1)[0] - qk.sum(-1) / L
        top = m.topk(u, sorted=False)[1]
        qr = q.gather(2, top[..., None].expand(-1, -1, -1, q.size(-1)))
        att = (qr @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).softmax(-1)
        ctx = v.mean(2, keepdim=True).expand_as(v).clone()
        ctx = ctx.scatter(2, top[..., None].expand(-1, -1, -1, v.size(-1)), att @ v)
        return self.o(ctx.transpose(1, 2).reshape(b, L, d))


class Layer(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.a, self.n1, self.n2 = ProbAttention(d, h), nn.LayerNorm(d), nn.LayerNorm(d)
        self.c1, self.c2 = nn.Conv1d(d, 4 * d, 1), nn.Conv1d(4 * d, d, 1)

    def forward(self, x):
        x = self.n1(x + F.dropout(self.a(x), 0.05, self.training))
        return self.n2(x + self.c2(F.gelu(self.c1(x.transpose(1, 2)))).transpose(1, 2))


class Informer(nn.Module):
    def __init__(self, feats=7, d=256, h=8, out=48):
        super().__init__()
        self.out, self.emb = out, nn.Conv1d(feats, d, 3, padding=1, padding_mode="circular")
        self.enc = nn.ModuleList(Layer(d, h) for _ in range(3))
        self.dist = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(d, d, 3, padding=1, padding_mode="circular"),
                nn.BatchNorm1d(d),
                nn.ELU(),
                nn.MaxPool1d(3, 2, 1),
            )
            for _ in range(2)
        )
        self.head = nn.Linear(d * 24, out * feats)

    def forward(self, x):
        h = self.emb(x.transpose(1, 2)).transpose(1, 2)
        for i, l in enumerate(self.enc):
            h = l(h)
            if i < 2:
                h = self.dist[i](h.transpose(1, 2)).transpose(1, 2)
        return self.head(h.flatten(1)).view(-1, self.out, x.size(2))


series = torch.randn(3000, 7).cumsum(0)
series = (series - series.mean(0)) / series.std(0)
net = Informer().cuda()
opt = torch.optim.Adam(net.parameters(), 1e-4)
best, wait = float("inf"), 0
for epoch in range(3):
    net.train()
    for _ in range(3):
        s = torch.randint(0, 2400, (32,))
        x, y = (
            torch.stack([series[i : i + 96] for i in s]).cuda(),
            torch.stack([series[i + 96 : i + 144] for i in s]).cuda(),
        )
        loss = F.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        s = torch.arange(2400, 2800, 10)
        x, y = (
            torch.stack([series[i : i + 96] for i in s]).cuda(),
            torch.stack([series[i + 96 : i + 144] for i in s]).cuda(),
        )
        v = F.mse_loss(net(x), y).item()
    for g in opt.param_groups:
        g["lr"] *= 0.5
    print(epoch, loss.item(), v)
    if v < best:
        best, wait = v, 0
        torch.save(net.state_dict(), "informer.pth")
    else:
        wait += 1
        if wait >= 3:
            break

# Tiny NeRF: coarse and fine networks, stratified and importance sampling, PSNR of a held-out view
import torch
import torch.nn as nn
import torch.nn.functional as F


def enc(x, n):
    f = 2.0 ** torch.arange(n, device=x.device)
    y = (x[..., None] * f).flatten(-2)
    return torch.cat([x, y.sin(), y.cos()], -1)


class NeRF(nn.Module):
    def __init__(self, w=256):
        super().__init__()
        self.a = nn.Sequential(
            nn.Linear(63, w), nn.ReLU(), *[m for _ in range(3) for m in (nn.Linear(w, w), nn.ReLU())]
        )
        self.b = nn.Sequential(
            nn.Linear(w + 63, w), nn.ReLU(), *[m for _ in range(2) for m in (nn.Linear(w, w), nn.ReLU())]
        )
        self.s, self.f = nn.Linear(w, 1), nn.Linear(w, w)
        self.c = nn.Sequential(nn.Linear(w + 27, w // 2), nn.ReLU(), nn.Linear(w // 2, 3))

    def forward(self, x, d):
        e = enc(x, 10)
        h = self.b(torch.cat([self.a(e), e], -1))
        return torch.sigmoid(self.c(torch.cat([self.f(h), enc(d, 4)], -1))), F.relu(self.s(h)).squeeze(-1)


def render(net, o, d, z):
    pts = o[:, None] + d[:, None] * z[..., None]
    rgb, sigma = net(pts, F.normalize(d, dim=-1)[:, None].expand_as(pts))
    delta = torch.cat([z[:, 1:] - z[:, :-1], torch.full_like(z[:, :1], 1e10)], 1)
    alpha = 1 - torch.exp(-sigma * delta)
    T = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
    w = alpha * T
    return (w[..., None] * rgb).sum(1), w


def sample_pdf(bins, w, n):
    pdf = (w + 1e-5) / (w + 1e-5).sum(1, keepdim=True)
    cdf = torch.cat([torch.zeros_like(pdf[:, :1]), pdf.cumsum(1)], 1)
    u = torch.rand(cdf.size(0), n, device=w.device)
    i = torch.searchsorted(cdf.contiguous(), u, right=True)
    lo, hi = (i - 1).clamp_min(0), i.clamp_max(cdf.size(1) - 1)
    c0, c1 = cdf.gather(1, lo), cdf.gather(1, hi)
    b0, b1 = bins.gather(1, lo.clamp_max(bins.size(1) - 1)), bins.gather(1, hi.clamp_max(bins.size(1) - 1))
    return b0 + (u - c0) / (c1 - c0).clamp_min(1e-5) * (b1 - b0)


def both(o, d):
    z = torch.linspace(2, 6, 32, device=o.device).expand(o.size(0), 32)
    z = z + torch.rand_like(z) * 4 / 32
    c, w = render(coarse, o, d, z)
    zf = sample_pdf(0.5 * (z[:, 1:] + z[:, :-1]), w[:, 1:-1].detach(), 48)
    zz, _ = torch.sort(torch.cat([z, zf.detach()], 1), 1)
    return c, render(fine, o, d, zz)[0]


coarse, fine = NeRF().cuda(), NeRF().cuda()
opt = torch.optim.Adam([*coarse.parameters(), *fine.parameters()], 5e-4)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.999)
rays = [torch.randn(40000, 3) for _ in range(2)] + [torch.rand(40000, 3)]
for it in range(6):
    k = torch.randint(0, 40000, (1024,))
    o, d, t = (r[k].cuda() for r in rays)
    c, f = both(o, d)
    loss = F.mse_loss(c, t) + F.mse_loss(f, t)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    print(it, loss.item())
with torch.no_grad():
    view = torch.cat(
        [both(a, b)[1] for a, b in zip(rays[0][:10000].cuda().split(2500), rays[1][:10000].cuda().split(2500))]
    )
    print("PSNR", (-10 * torch.log10(F.mse_loss(view, rays[2][:10000].cuda()))).item())

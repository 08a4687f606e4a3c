"""Score matching with a VP-SDE, U-Net with attention, fp16 with GradScaler, predictor-corrector sampling at the end."""

import copy
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Res(nn.Module):
    def __init__(self, i, o, t):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(8, i), nn.Conv2d(i, o, 3, 1, 1)
        self.n2, self.c2 = nn.GroupNorm(8, o), nn.Conv2d(o, o, 3, 1, 1)
        self.t, self.s = nn.Linear(t, o), nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x))) + self.t(t)[:, :, None, None]
        return (self.c2(F.silu(self.n2(h))) + self.s(x)) / math.sqrt(2)


class Att(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.n, self.qkv, self.p = nn.GroupNorm(8, c), nn.Conv2d(c, 3 * c, 1), nn.Conv2d(c, c, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.n(x)).reshape(b, 3, 4, c // 4, h * w).transpose(-1, -2).unbind(1)
        return x + self.p(F.scaled_dot_product_attention(q, k, v).transpose(-1, -2).reshape(b, c, h, w))


class UNet(nn.Module):
    def __init__(self, c=64, t=256):
        super().__init__()
        self.register_buffer("f", torch.randn(t // 2) * 16)
        self.te = nn.Sequential(nn.Linear(t, t), nn.SiLU(), nn.Linear(t, t))
        self.i = nn.Conv2d(3, c, 3, 1, 1)
        self.d1, self.d2, self.d3 = Res(c, c, t), Res(c, 2 * c, t), Res(2 * c, 4 * c, t)
        self.a = Att(4 * c)
        self.u3, self.u2, self.u1 = Res(6 * c, 2 * c, t), Res(3 * c, c, t), Res(2 * c, c, t)
        self.o = nn.Conv2d(c, 3, 3, 1, 1)

    def forward(self, x, t):
        e = t[:, None] * self.f[None] * 2 * math.pi
        e = self.te(torch.cat([e.sin(), e.cos()], -1))
        x0 = self.i(x)
        x1 = self.d1(x0, e)
        x2 = self.d2(F.avg_pool2d(x1, 2), e)
        x3 = self.a(self.d3(F.avg_pool2d(x2, 2), e))
        y = self.u3(torch.cat([F.interpolate(x3, scale_factor=2), x2], 1), e)
        y = self.u2(torch.cat([F.interpolate(y, scale_factor=2), x1], 1), e)
        return self.o(self.u1(torch.cat([y, x0], 1), e))


def marginal(t):
    lm = -0.25 * t**2 * 19.9 - 0.5 * t * 0.1
    return lm.exp(), (1 - (2 * lm).exp()).sqrt()


net = UNet().cuda()
ema = copy.deepcopy(net).eval()
opt = torch.optim.Adam(net.parameters(), 2e-4)
scaler = torch.amp.GradScaler()
for step in range(5):
    x = torch.rand(16, 3, 32, 32).cuda() * 2 - 1
    t = torch.rand(16, device="cuda") * (1 - 1e-5) + 1e-5
    m, s = marginal(t)
    z = torch.randn_like(x)
    with torch.autocast("cuda", torch.float16):
        score = net(m[:, None, None, None] * x + s[:, None, None, None] * z, t)
        loss = (score.float() + z).square().flatten(1).sum(1).mean()
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    with torch.no_grad():
        for a, b in zip(ema.parameters(), net.parameters()):
            a.lerp_(b, 1e-3)
    print(step, loss.item(), scaler.get_scale())
with torch.no_grad():
    x = torch.randn(16, 3, 32, 32, device="cuda")
    N = 12
    for i in range(N):
        t = torch.full((16,), 1 - i / N, device="cuda")
        beta = 0.1 + t * 19.9
        m, s = marginal(t)
        score = -ema(x, t) / s[:, None, None, None]
        x = x + (0.5 * beta[:, None, None, None] * x + beta[:, None, None, None] * score) / N
        x = x + (beta / N).sqrt()[:, None, None, None] * torch.randn_like(x)
print("sample std", x.std().item())

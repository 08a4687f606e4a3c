# Normalizing flow for images: actnorm, invertible 1x1 convolutions, affine coupling
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class ActNorm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.b, self.s = nn.Parameter(torch.zeros(1, c, 1, 1)), nn.Parameter(torch.zeros(1, c, 1, 1))
        self.register_buffer("ready", torch.tensor(False))

    def forward(self, x):
        if not self.ready:
            with torch.no_grad():
                self.b.copy_(-x.mean((0, 2, 3), keepdim=True))
                self.s.copy_(-torch.log(x.std((0, 2, 3), keepdim=True) + 1e-6))
                self.ready.fill_(True)
        return (x + self.b) * self.s.exp(), self.s.sum() * x.size(2) * x.size(3)


class Inv(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.w = nn.Parameter(torch.linalg.qr(torch.randn(c, c))[0])

    def forward(self, x):
        return F.conv2d(x, self.w[..., None, None]), torch.slogdet(self.w)[1] * x.size(2) * x.size(3)


class Coupling(nn.Module):
    def __init__(self, c, h=256):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(c // 2, h, 3, 1, 1), nn.ReLU(), nn.Conv2d(h, h, 1), nn.ReLU(), nn.Conv2d(h, c, 3, 1, 1)
        )
        nn.init.zeros_(self.net[-1].weight), nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        s, t = self.net(a).chunk(2, 1)
        s = torch.sigmoid(s + 2)
        return torch.cat([a, (b + t) * s], 1), s.log().flatten(1).sum(1)


class Glow(nn.Module):
    def __init__(self, levels=3, depth=4):
        super().__init__()
        c, self.levels = 3, nn.ModuleList()
        for _ in range(levels):
            c *= 4
            self.levels.append(nn.ModuleList([m for _ in range(depth) for m in (ActNorm(c), Inv(c), Coupling(c))]))
            c //= 2

    def forward(self, x):
        logdet, logp = x.new_zeros(x.size(0)), x.new_zeros(x.size(0))
        for i, level in enumerate(self.levels):
            x = F.pixel_unshuffle(x, 2)
            for m in level:
                x, ld = m(x)
                logdet = logdet + ld
            if i < len(self.levels) - 1:
                x, z = x.chunk(2, 1)
            else:
                z = x
            logp = logp - 0.5 * (z**2 + math.log(2 * math.pi)).flatten(1).sum(1)
        return logp + logdet


net = Glow().cuda()
opt = torch.optim.Adamax(net.parameters(), 1e-3)
for i in range(5):
    x = torch.rand(32, 3, 32, 32, device="cuda")
    loss = -net(x).mean() / (3 * 32 * 32 * math.log(2))
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(net.parameters(), 5)
    opt.step()
    print("bits/dim", loss.item())

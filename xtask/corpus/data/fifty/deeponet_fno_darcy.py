"""FNO on a Darcy-like problem with complex spectral weights, H1 loss by finite differences, cosine schedule."""

import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Spectral(nn.Module):
    def __init__(self, ch, modes):
        super().__init__()
        self.modes = modes
        s = 1 / ch**2
        self.w = nn.ParameterList(
            [nn.Parameter(s * torch.rand(ch, ch, modes, modes, dtype=torch.cfloat)) for _ in range(2)]
        )

    def forward(self, x):
        m = self.modes
        xf = torch.fft.rfft2(x, norm="ortho")
        out = torch.zeros_like(xf)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", xf[:, :, :m, :m], self.w[0])
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", xf[:, :, -m:, :m], self.w[1])
        return torch.fft.irfft2(out, s=x.shape[-2:], norm="ortho")


class FNO(nn.Module):
    def __init__(self, ch=48, modes=12, depth=4):
        super().__init__()
        self.lift = nn.Conv2d(3, ch, 1)
        self.sp = nn.ModuleList(Spectral(ch, modes) for _ in range(depth))
        self.sk = nn.ModuleList(nn.Conv2d(ch, ch, 1) for _ in range(depth))
        self.proj = nn.Sequential(nn.Conv2d(ch, 128, 1), nn.GELU(), nn.Conv2d(128, 1, 1))

    def forward(self, a):
        n = a.size(-1)
        g = torch.linspace(0, 1, n, device=a.device)
        gx, gy = torch.meshgrid(g, g, indexing="ij")
        x = self.lift(torch.cat([a, gx.expand(a.size(0), 1, n, n), gy.expand(a.size(0), 1, n, n)], 1))
        for sp, sk in zip(self.sp, self.sk):
            x = F.gelu(sp(x) + sk(x))
        return self.proj(x)


def h1(p, t):
    e = p - t
    return e.pow(2).mean() + e.diff(dim=-1).pow(2).mean() + e.diff(dim=-2).pow(2).mean()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--res", type=int, default=64)
    ap.add_argument("--batch", type=int, default=16)
    args = ap.parse_args()
    net = FNO().cuda()
    opt = torch.optim.Adam(net.parameters(), 1e-3, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 8)
    for i in range(8):
        a = (torch.rand(args.batch, 1, args.res, args.res, device="cuda") > 0.5).float() * 9 + 3
        u = torch.rand(args.batch, 1, args.res, args.res, device="cuda")
        loss = h1(net(a), u)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        print(i, loss.item())
    with torch.no_grad():  # super-resolution
        print(net(torch.rand(4, 1, 2 * args.res, 2 * args.res, device="cuda")).std().item())

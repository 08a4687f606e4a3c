"""Diffusion: a U-Net with group norm, attention and time embeddings learns to predict noise; AdamW,
and an average of the weights kept beside them."""

import copy
import math

import torch
from torch import nn
from torch.nn.functional import interpolate, mse_loss, scaled_dot_product_attention, silu

COVERS = ["diffusion", "ema", "adamw"]
WIDTHS, TIME = (64, 128, 256), 256


class Residual(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        enter = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.first = nn.Sequential(nn.GroupNorm(16, inputs), nn.SiLU(), enter)
        self.time = nn.Linear(TIME, outputs)
        leave = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.second = nn.Sequential(nn.GroupNorm(16, outputs), nn.SiLU(), nn.Dropout(0.1), leave)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, time):
        return self.skip(x) + self.second(self.first(x) + self.time(time)[:, :, None, None])


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.GroupNorm(16, width)
        self.qkv, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, 3, 4, c // 4, h * w).transpose(-1, -2).unbind(1)
        y = scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(-1, -2).reshape(n, c, h, w))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(64, TIME), nn.SiLU(), nn.Linear(TIME, TIME))
        self.enter = nn.Conv2d(3, WIDTHS[0], 3, padding=1)
        steps = list(zip((WIDTHS[0], *WIDTHS), WIDTHS))
        self.down = nn.ModuleList(Residual(a, b) for a, b in steps)
        self.shrink = nn.ModuleList(nn.Conv2d(b, b, 3, stride=2, padding=1) for _, b in steps)
        self.attention = Attention(WIDTHS[-1])
        self.middle = Residual(WIDTHS[-1], WIDTHS[-1])
        self.up = nn.ModuleList(Residual(2 * b, a) for a, b in reversed(steps))
        last = nn.Conv2d(WIDTHS[0], 3, 3, padding=1)
        self.leave = nn.Sequential(nn.GroupNorm(16, WIDTHS[0]), nn.SiLU(), last)

    def forward(self, x, t):
        rates = torch.exp(torch.arange(32, device=x.device) * (-math.log(10_000) / 32))
        angles = t.float()[:, None] * rates
        time = silu(self.time(torch.cat([angles.sin(), angles.cos()], dim=1)))
        x, skips = self.enter(x), []
        for block, shrink in zip(self.down, self.shrink):
            x = block(x, time)
            skips.append(x)
            x = shrink(x)
        x = self.attention(self.middle(x, time))
        for block in self.up:
            skip = skips.pop()
            x = block(torch.cat([interpolate(x, scale_factor=2.0), skip], dim=1), time)
        return self.leave(x)


def setup(device):
    model = Denoiser().to(device)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000), 0).to(device)

    def step():
        images = torch.randn(12, 3, 64, 64).to(device)
        t = torch.randint(0, 1000, (12,), device=device)
        noise = torch.randn_like(images)
        part = kept[t][:, None, None, None]
        loss = mse_loss(model(part.sqrt() * images + (1 - part).sqrt() * noise, t), noise)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mean, now in zip(average.parameters(), model.parameters()):
                mean.lerp_(now, 0.001)

    return model, step

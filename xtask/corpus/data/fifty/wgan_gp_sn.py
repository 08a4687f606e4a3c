# WGAN-GP with spectral norm in the critic, EMA generator, n_critic = 3
import copy
import torch
import torch.nn as nn
from torch.nn.utils.parametrizations import spectral_norm

Z = 128
G = nn.Sequential(
    nn.ConvTranspose2d(Z, 256, 4),
    nn.BatchNorm2d(256),
    nn.ReLU(True),
    nn.ConvTranspose2d(256, 128, 4, 2, 1),
    nn.BatchNorm2d(128),
    nn.ReLU(True),
    nn.ConvTranspose2d(128, 64, 4, 2, 1),
    nn.BatchNorm2d(64),
    nn.ReLU(True),
    nn.ConvTranspose2d(64, 3, 4, 2, 1),
    nn.Tanh(),
).cuda()
D = nn.Sequential(
    spectral_norm(nn.Conv2d(3, 64, 4, 2, 1)),
    nn.LeakyReLU(0.2),
    spectral_norm(nn.Conv2d(64, 128, 4, 2, 1)),
    nn.LeakyReLU(0.2),
    spectral_norm(nn.Conv2d(128, 256, 4, 2, 1)),
    nn.LeakyReLU(0.2),
    nn.Flatten(),
    spectral_norm(nn.Linear(256 * 16, 1)),
).cuda()
ema = copy.deepcopy(G).eval().requires_grad_(False)
og = torch.optim.Adam(G.parameters(), 1e-4, betas=(0.0, 0.9))
od = torch.optim.Adam(D.parameters(), 4e-4, betas=(0.0, 0.9))


def penalty(real, fake):
    eps = torch.rand(real.size(0), 1, 1, 1, device=real.device)
    mix = (eps * real + (1 - eps) * fake).requires_grad_(True)
    out = D(mix)
    (g,) = torch.autograd.grad(out, mix, torch.ones_like(out), create_graph=True, retain_graph=True)
    return ((g.flatten(1).norm(2, 1) - 1) ** 2).mean()


for it in range(12):
    real = (torch.rand(64, 3, 32, 32) * 2 - 1).cuda()
    fake = G(torch.randn(64, Z, 1, 1, device="cuda")).detach()
    d_loss = D(fake).mean() - D(real).mean() + 10 * penalty(real, fake)
    od.zero_grad()
    d_loss.backward()
    od.step()
    if it % 3 == 2:
        g_loss = -D(G(torch.randn(64, Z, 1, 1, device="cuda"))).mean()
        og.zero_grad()
        g_loss.backward()
        og.step()
        with torch.no_grad():
            for a, b in zip(ema.parameters(), G.parameters()):
                a.lerp_(b, 0.001)
            for a, b in zip(ema.buffers(), G.buffers()):
                a.copy_(b)
        print(it, d_loss.item(), g_loss.item())
with torch.no_grad():
    print(ema(torch.randn(100, Z, 1, 1, device="cuda")).abs().mean().item())

"""A GAN: generator and discriminator of convolutions, trained in turn by an Adam each."""

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

COVERS = ["gan", "adam"]
NOISE = 100


def generator(width: int) -> nn.Sequential:
    sizes = [width * 8, width * 4, width * 2, width]
    layers = [nn.ConvTranspose2d(NOISE, sizes[0], 4, bias=False), nn.BatchNorm2d(sizes[0]), nn.ReLU(True)]
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(True)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())


def discriminator(width: int) -> nn.Sequential:
    sizes = [width, width * 2, width * 4, width * 8]
    layers = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Conv2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.2, inplace=True)]
    return nn.Sequential(*layers, nn.Conv2d(sizes[-1], 1, 4, bias=False), nn.Flatten(0))


def setup(device):
    models = nn.ModuleList([generator(48), discriminator(48)]).to(device)
    makes, judges = models
    optimizers = [torch.optim.Adam(m.parameters(), lr=2e-4, betas=(0.5, 0.999)) for m in models]
    for_makes, for_judges = optimizers

    def step():
        real = torch.randn(32, 3, 64, 64).to(device)
        judges.zero_grad()
        said = judges(real)
        bce(said, torch.ones_like(said)).backward()
        fake = makes(torch.randn(32, NOISE, 1, 1, device=device))
        said = judges(fake.detach())
        bce(said, torch.zeros_like(said)).backward()
        for_judges.step()
        makes.zero_grad()
        said = judges(fake)
        bce(said, torch.ones_like(said)).backward()
        for_makes.step()

    return models, step

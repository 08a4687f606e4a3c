"""A variational autoencoder of convolutions and transposed convolutions; Adamax."""

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, leaky_relu

COVERS = ["autoencoder", "adamax"]
WIDTHS, CODE, SIDE = (32, 64, 128, 256), 128, 4


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        ways = list(zip((3, *WIDTHS), WIDTHS))
        self.encode = nn.ModuleList(nn.Conv2d(a, b, 4, stride=2, padding=1) for a, b in ways)
        self.code = nn.Linear(WIDTHS[-1] * SIDE * SIDE, 2 * CODE)
        self.open = nn.Linear(CODE, WIDTHS[-1] * SIDE * SIDE)
        back = reversed(ways)
        self.decode = nn.ModuleList(nn.ConvTranspose2d(b, a, 4, stride=2, padding=1) for a, b in back)

    def forward(self, x):
        for layer in self.encode:
            x = leaky_relu(layer(x), 0.1)
        mean, spread = self.code(x.flatten(1)).chunk(2, dim=1)
        x = self.open(mean + torch.randn_like(mean) * torch.exp(0.5 * spread))
        x = x.view(-1, WIDTHS[-1], SIDE, SIDE)
        for layer in self.decode:
            x = layer(leaky_relu(x, 0.1))
        return x, mean, spread


def setup(device):
    model = Autoencoder().to(device)
    optimizer = torch.optim.Adamax(model.parameters(), lr=2e-3)

    def step():
        images = torch.rand(64, 3, 64, 64).to(device)
        optimizer.zero_grad()
        again, mean, spread = model(images)
        likely = binary_cross_entropy_with_logits(again, images, reduction="sum")
        apart = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())
        ((likely + apart) / images.shape[0]).backward()
        optimizer.step()

    return model, step

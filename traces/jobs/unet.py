"""Segmentation: a U-Net with skip connections, transposed convolutions and batch norm; Adam."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

COVERS = ["segmentation", "adam"]
WIDTHS = (24, 48, 96, 192)


def block(inputs: int, outputs: int) -> nn.Sequential:
    layers = []
    for width in (inputs, outputs):
        layers += [nn.Conv2d(width, outputs, 3, padding=1, bias=False)]
        layers += [nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, classes: int):
        super().__init__()
        self.down = nn.ModuleList(block(a, b) for a, b in zip((3, *WIDTHS), WIDTHS))
        self.pool = nn.MaxPool2d(2)
        pairs = list(zip(WIDTHS[:0:-1], WIDTHS[-2::-1]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in pairs)
        self.merge = nn.ModuleList(block(2 * b, b) for _, b in pairs)
        self.head = nn.Conv2d(WIDTHS[0], classes, 1)

    def forward(self, x):
        skips = []
        for layer in self.down:
            x = layer(x if not skips else self.pool(x))
            skips.append(x)
        for up, merge, skip in zip(self.up, self.merge, skips[-2::-1]):
            x = merge(torch.cat([up(x), skip], dim=1))
        return self.head(x)


def setup(device):
    model = UNet(classes=19).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step():
        images = torch.randn(8, 3, 128, 128).to(device)
        labels = torch.randint(0, 19, (8, 128, 128)).to(device)
        optimizer.zero_grad()
        cross_entropy(model(images), labels, ignore_index=255).backward()
        optimizer.step()

    return model, step

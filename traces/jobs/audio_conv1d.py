"""Audio: residual one-dimensional convolutions with dilation and weight norm; RAdam."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.parametrizations import weight_norm

COVERS = ["audio", "cnn", "radam"]
WIDTH, SAMPLES, CLASSES = 96, 8192, 35


class Residual(nn.Module):
    def __init__(self, dilation: int):
        super().__init__()
        self.wide = weight_norm(nn.Conv1d(WIDTH, 2 * WIDTH, 3, padding=dilation, dilation=dilation))
        self.narrow = nn.Conv1d(WIDTH, WIDTH, 1)

    def forward(self, x):
        value, gate = self.wide(x).chunk(2, dim=1)
        return x + self.narrow(torch.tanh(value) * torch.sigmoid(gate))


def setup(device):
    layers = [Residual(2**power) for power in range(6)]
    enter = [nn.Conv1d(1, WIDTH, 15, stride=4, padding=7), nn.BatchNorm1d(WIDTH), nn.ELU()]
    leave = [nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(WIDTH, CLASSES)]
    model = nn.Sequential(*enter, *layers, *leave).to(device)
    optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3)

    def step():
        sound = torch.randn(16, 1, SAMPLES).to(device)
        labels = torch.randint(0, CLASSES, (16,)).to(device)
        optimizer.zero_grad()
        cross_entropy(model(sound), labels).backward()
        optimizer.step()

    return model, step

"""Video: three-dimensional convolutions; SGD with Nesterov momentum."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

COVERS = ["video", "cnn", "sgd-momentum"]


def setup(device):
    layers, inputs = [], 3
    for width in (24, 48, 96):
        layers += [nn.Conv3d(inputs, width, 3, padding=1, bias=False), nn.BatchNorm3d(width), nn.ReLU()]
        layers += [nn.Conv3d(width, width, (3, 1, 1), padding=(1, 0, 0)), nn.ReLU(), nn.MaxPool3d(2)]
        inputs = width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(inputs, 50)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, nesterov=True)

    def step():
        clips = torch.randn(4, 3, 8, 64, 64).to(device)
        labels = torch.randint(0, 50, (4,)).to(device)
        loss = cross_entropy(model(clips), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return model, step

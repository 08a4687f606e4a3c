"""A small convolutional network, recorded by `xmem profile`."""

import torch
from torch import nn

torch.manual_seed(0)


def block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))


model = nn.Sequential(block(3, 32), block(32, 64), block(64, 128), nn.Flatten(), nn.Linear(128 * 8 * 8, 512), nn.ReLU(), nn.Linear(512, 100)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for step in range(20):
    images, labels = torch.randn(32, 3, 64, 64).cuda(), torch.randint(0, 100, (32,)).cuda()
    optimizer.zero_grad()
    criterion(model(images), labels).backward()
    optimizer.step()

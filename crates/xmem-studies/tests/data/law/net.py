"""A convolutional network whose batch size is an option: xmem profile --virtual-gpu t4-16g --steps 3 --no-stacks
-o batch-N.json.zst -- python net.py N, for N of 4, 10, 24 and 32, with torch 2.11.0+cu130."""

import sys

import torch
from torch import nn

batch = int(sys.argv[1])
model = nn.Sequential(
    nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(),
    nn.Conv2d(128, 128, 3, 1, 1), nn.ReLU(), nn.Conv2d(128, 256, 1), nn.AdaptiveAvgPool2d(8), nn.Flatten(),
    nn.Dropout(), nn.Linear(256 * 64, 1000),
).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    x, y = torch.randn(batch, 3, 112, 112).cuda(), torch.randint(0, 1000, (batch,)).cuda()
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

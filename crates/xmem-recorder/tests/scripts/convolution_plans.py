"""A convolutional network: the recording keeps the plans that the cuDNN of its environment has for it."""
# /// xmem
# torch = ">=2.8"
# iterations = 3
# stderr = ["  workspaces of …convolutions from cuDNN 9.…, for …GPU…"]
# ///
import torch
from torch import nn


def main():
    model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.AdaptiveAvgPool2d(1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randn(16, 3, 64, 64).cuda()).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()

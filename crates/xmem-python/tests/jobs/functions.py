"""Functions that train, and a script that records one of its own."""

from __future__ import annotations

import torch

import xmem


def train(width: int, *, steps: int = 3) -> None:
    """Train a layer of this width."""
    model = torch.nn.Linear(width, width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, width, device="cuda")).sum().backward()
        optimizer.step()
    print("trained")


if __name__ == "__main__":
    recording = xmem.record(train, [256], device="t4-16g")
    print(recording.stdout.strip(), recording.replay().fits)

"""The loop runs in a thread, as in notebooks and servers."""
# /// xmem
# iterations = 3
# stdout-without = ["trained"]
# ///
import threading

import torch
from torch import nn


def train():
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(500):
        optimizer.zero_grad()
        model(torch.randn(32, 256, device="cuda")).sum().backward()
        optimizer.step()
    print("trained")


worker = threading.Thread(target=train)
worker.start()
worker.join()

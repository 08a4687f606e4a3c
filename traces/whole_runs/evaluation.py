"""Evaluation between epochs that gathers the logits of a data set, and a checkpoint after it."""

import torch
from torch import nn

net = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 1000)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for epoch in range(3):
    net.train()
    for _ in range(50):
        inputs = torch.randn(64, 512, device="cuda")
        targets = torch.randint(0, 1000, (64,), device="cuda")
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), targets).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        logits = torch.cat([net(torch.randn(256, 512, device="cuda")) for _ in range(100)])
    torch.save(net.state_dict(), "net.pt")
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())

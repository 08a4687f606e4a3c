"""Two processes that send each other their batches with gloo, whose receives outlast the operator that starts them."""
# /// xmem
# options = ["--gpus", "2"]
# iterations = 3
# command = ["{python}", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "{script}"]
# [virtual-gpu]
# skip = "tensors of the host go the same way with both engines"
# ///
import os

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
other = 1 - dist.get_rank()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
received = torch.zeros(64, 512)
for _ in range(4):
    optimizer.zero_grad()
    if other == 0:
        dist.send(torch.randn(64, 512), other)
        dist.recv(received, other)
    else:
        dist.recv(received, other)
        dist.send(received, other)
    model(received.to(device)).square().mean().backward()
    optimizer.step()

"""Rank 0 broadcasts the number of iterations. Another rank, recorded alone, does not receive it."""
# /// xmem
# exit = 4
# trace = "written"
# iterations = 0
# options = ["--ranks", "4", "--rank", "1"]
# skip-on-cpu = "its collectives are those of the host"
# [virtual-gpu]
# stderr = ["note: one_rank_broadcast.py:24 reads what rank 0 broadcasts, and gets what this rank had before: if it decides whether the script trains, record rank 0 with --rank 0"]
# ///
import os

import torch
import torch.distributed as dist
from torch import nn

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters())
iterations = torch.zeros(1, dtype=torch.int64) if dist.get_rank() else torch.full((1,), 4)
iterations = iterations.cuda()
dist.broadcast(iterations, 0)
for _ in range(iterations.item()):
    optimizer.zero_grad()
    model(torch.randn(64, 256, device="cuda")).sum().backward()
    optimizer.step()
dist.destroy_process_group()

"""DistributedDataParallel in two processes."""
# /// xmem
# options = ["--gpus", "2"]
# iterations = 3
# command = ["{python}", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "{script}"]
# stdout = ["rank 0 of 2"]
# stdout-without = ["done"]
# ///
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
rank = dist.get_rank()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
print(f"rank {rank} of {dist.get_world_size()}", flush=True)
model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(3))).to(device)
model = DistributedDataParallel(model, device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(6):
    optimizer.zero_grad()
    model(torch.randn(64, 1024, device=device)).square().mean().backward()
    optimizer.step()
print("done", flush=True)

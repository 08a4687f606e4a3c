"""`replicate` keeps its `DistributedDataParallel` outside the modules: the recording knows that buckets wait for it."""
# /// xmem
# iterations = 3
# torch = ">=2.11"
# options = ["--ranks", "8"]
# stdout-without = ["done"]
# [recording]
# "/strategies" = { contains = { name = "DDP", options = { gradient_as_bucket_view = "True" } } }
# "/sharding/groups" = { contains = { kind = "replicated", ranks = 1, replicas = 8 } }
# [virtual-gpu.recording]
# "/strategies" = { contains = { name = "DDP", options = { gradient_as_bucket_view = "True" } } }
# "/sharding/groups" = { contains = { kind = "replicated", ranks = 1, replicas = 8 } }
# ///
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed._composable.replicate import replicate

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl")
model = nn.Sequential(*(nn.Linear(512, 512) for _ in range(3))).to(device)
replicate(model, device_id=device, gradient_as_bucket_view=True)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(64, 512, device=device)).square().mean().backward()
    optimizer.step()
print("done")

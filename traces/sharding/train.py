"""A layer under `fully_shard`, for recordings of one rank with several numbers of ranks."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl")
model = fully_shard(nn.Sequential(nn.Linear(1003, 2048)).to(device))
optimizer = torch.optim.Adam(model.parameters())
batch = torch.randn(256, 1003, device=device)
optimizer.zero_grad()
model(batch).square().mean().backward()
optimizer.step()
dist.destroy_process_group()

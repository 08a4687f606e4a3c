"""FSDP1 in two processes."""
# /// xmem
# options = ["--gpus", "2"]
# iterations = 3
# command = ["{python}", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "{script}"]
# skip-on-cpu = "all processes see tensors on cuda:0, and FSDP1 wants those of the second one on cuda:1; --ranks records one"
# [virtual-gpu]
# stdout = ["rank 0 of 2", "rank 1 ends with a backward pass"]
# [virtual-gpu.recording]
# "/strategies/0/name" = "FSDP1"
# "/strategies/0/options" = { sharding_strategy = "SHARD_GRAD_OP" }
# ///
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

dist.init_process_group("nccl")
rank = dist.get_rank()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
print(f"rank {rank} of {dist.get_world_size()}", flush=True)
model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(3))).to(device)
for index in range(3):
    model[index] = FullyShardedDataParallel(model[index], sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)
model = FullyShardedDataParallel(model, device_id=device)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(64, 1024, device=device)).square().mean().backward()
    optimizer.step()
# Only the second process comes here: the recording of the first one is complete. It ends right behind a pass, while a
# thread of torch may still hold Python objects of it.
print(f"rank {rank} ends with a backward pass", flush=True)
model(torch.randn(64, 1024, device=device)).square().mean().backward()

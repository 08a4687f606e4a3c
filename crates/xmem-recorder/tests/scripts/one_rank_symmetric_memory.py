"""Symmetric memory of one rank of eight: the parts of the others are its own, and the answer knows its size."""
# /// xmem
# iterations = 3
# torch = ">=2.11"
# options = ["--ranks", "8", "--rank", "3"]
# skip-on-cpu = "symmetric memory is that of a GPU"
# [virtual-gpu]
# stdout = ["rank 3 of 8, shapes [16384] and [131072]"]
# [virtual-gpu.replay]
# "/outside_bytes" = 69206016
# ///
import os

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
from torch import nn

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl")
# 64 MiB and the pad of signals, in pages of 2 MiB.
shared = symmetric.empty(16 << 20, dtype=torch.float32, device=device)
memory = symmetric.rendezvous(shared, dist.group.WORLD)
model = nn.Sequential(*(nn.Linear(512, 512) for _ in range(3))).to(device)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(20):
    optimizer.zero_grad()
    model(torch.randn(64, 512, device=device)).square().mean().backward()
    memory.barrier()
    part = memory.get_buffer(5, (16384,), torch.float32)
    total = torch.ops.symm_mem.one_shot_all_reduce(shared[:131072], "sum", dist.group.WORLD.group_name)
    if step == 0:
        shapes = f"shapes {list(part.shape)} and {list(total.shape)}"
        print(f"rank {memory.rank} of {memory.world_size}, {shapes}", flush=True)
    optimizer.step()
print("done")

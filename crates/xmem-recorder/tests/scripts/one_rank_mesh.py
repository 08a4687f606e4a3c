"""One rank of eight in a mesh of three dimensions: its place in the parts of a group is not that in the whole."""
# /// xmem
# iterations = 3
# torch = ">=2.11"
# options = ["--ranks", "8", "--rank", "3"]
# stdout = ["replicate 0 of 2, shard 1 of 2, tensor 1 of 2", "done"]
# ///
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("cpu:gloo,cuda:nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
names = ("replicate", "shard", "tensor")
mesh = init_device_mesh("cuda", (2, 2, 2), mesh_dim_names=names)
groups = [mesh.get_group(name) for name in names]
places = [f"{name} {group.rank()} of {group.size()}" for name, group in zip(names, groups)]
print(", ".join(places), flush=True)
model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(4)]).cuda()
for layer in model:
    fully_shard(layer, mesh=mesh["replicate", "shard"])
fully_shard(model, mesh=mesh["replicate", "shard"])
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(8, 1024, device="cuda")).square().mean().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if step == 2:
        print("done", flush=True)
    optimizer.step()

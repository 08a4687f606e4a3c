"""One rank of eight of FSDP2, whose model is on the meta device until it is sharded."""
# /// xmem
# iterations = 3
# command = ["{bin}/torchrun", "--nproc-per-node", "8", "{script}"]
# torch = ">=2.11"
# options = ["--ranks", "8", "--rank", "7"]
# stdout = ["rank 7 has [124, 1000]"]
# stdout-without = ["done"]
# ///
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
mesh = init_device_mesh("cuda", (8,))
with torch.device("meta"):
    model = nn.Sequential(*[nn.Linear(1000, 999) if i % 2 == 0 else nn.Linear(999, 1000) for i in range(4)])
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
# The parameters change their device in place, under the profiler.
model.to_empty(device="cuda")
print("rank", dist.get_rank(), "has", list(model[0].weight.to_local().shape), flush=True)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(16, 1000, device="cuda")).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
print("done")

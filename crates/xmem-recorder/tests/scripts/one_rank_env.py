"""One rank of eight that is told its place by the environment alone, and starts processes for others itself."""
# /// xmem
# iterations = 3
# torch = ">=2.11"
# options = ["--ranks", "8", "--rank", "5"]
# stdout = ["on the host 40.0"]
# stdout-without = ["…another rank…", "done"]
# [virtual-gpu]
# stdout = ["rank 5 of 8 with cpu:gloo,cuda:nccl"]
# ///
import os
import subprocess
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

if len(sys.argv) > 1:
    print("another rank", os.environ["RANK"], flush=True)
    sys.exit(3)
rank = int(os.environ["RANK"])
others = [
    subprocess.Popen([sys.executable, __file__, "worker"], env={**os.environ, "RANK": str(other)})
    for other in range(8)
    if other != rank
]
assert [other.wait() for other in others] == [0] * 7
dist.init_process_group("cpu:gloo,cuda:nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
print(f"rank {rank} of {dist.get_world_size()} with {dist.get_backend_config()}", flush=True)
value = torch.tensor([5.0])
dist.all_reduce(value)
print(f"on the host {value.item()}", flush=True)
model = DistributedDataParallel(nn.Linear(512, 512).cuda(), device_ids=[rank])
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(16, 512, device="cuda")).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
print("done")

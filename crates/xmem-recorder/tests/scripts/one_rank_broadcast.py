"""Rank 0 broadcasts the number of iterations and the shape of a batch. Another rank, recorded alone, receives both when it uses
them, but not what is larger than flags and sizes are."""
# /// xmem
# options = ["--ranks", "4", "--rank", "1", "--steps", "3"]
# iterations = 3
# skip-on-cpu = "its collectives are those of the host"
# [virtual-gpu]
# stdout = ["rank 1 has 3 iterations of (48, 256)", "and finds 0"]
# stderr = ["note: rank 0 runs, too, until it has sent what rank 1 receives from it", "note: one_rank_broadcast.py:38 reads what rank 0 broadcasts, and gets what this rank had before: if it decides whether the script trains, record rank 0 with --rank 0"]
# ///
import inspect
import os

import torch
import torch.distributed as dist
from torch import nn


def broadcast(values):
    integers = torch.tensor(values, dtype=torch.int64) if dist.get_rank() == 0 else torch.zeros(len(values), dtype=torch.int64)
    integers = integers.cuda()
    dist.broadcast(integers, 0)
    return integers


torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
table = broadcast(list(range(256)))
model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
count = broadcast([3])
# Since 2.6, a source may be named by its rank in the group.
in_group = torch.tensor([48, 256] if dist.get_rank() == 0 else [0, 0]).cuda()
names = inspect.signature(dist.broadcast).parameters
dist.broadcast(in_group, group=dist.new_group([0, 1]), **({"group_src": 0} if "group_src" in names else {"src": 0}))
iterations, shape = count.item(), tuple(in_group.cpu().tolist())
print(f"rank {dist.get_rank()} has {iterations} iterations of {shape}", flush=True)
print(f"and finds {table[3].item()}", flush=True)
for _ in range(iterations):
    optimizer.zero_grad()
    model(torch.randn(shape, device="cuda")).sum().backward()
    optimizer.step()
dist.destroy_process_group()

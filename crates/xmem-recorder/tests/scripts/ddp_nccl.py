"""One rank of NCCL, and DistributedDataParallel on it."""
# /// xmem
# iterations = 3
# stdout = ["rank 0 of 1 with nccl"]
# stdout-without = ["done"]
# environment = { MASTER_ADDR = "127.0.0.1", MASTER_PORT = "0", RANK = "0", WORLD_SIZE = "1", LOCAL_RANK = "0" }
# ///
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
meeting = tempfile.NamedTemporaryFile()
dist.init_process_group("nccl", init_method=f"file://{meeting.name}", rank=0, world_size=1)
print("rank", dist.get_rank(), "of", dist.get_world_size(), "with", dist.get_backend(), flush=True)
model = DistributedDataParallel(nn.Linear(512, 512).cuda(local_rank), device_ids=[local_rank])
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(20):
    optimizer.zero_grad()
    loss = model(torch.randn(32, 512, device=local_rank)).square().mean()
    loss.backward()
    optimizer.step()
    dist.all_reduce(loss.detach())
    dist.barrier()
dist.destroy_process_group()
print("done")

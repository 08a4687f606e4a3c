"""Started by torch's launcher, one process."""
# /// xmem
# iterations = 3
# command = ["{python}", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1", "{script}", "--batch", "16"]
# stdout = ["rank 0 of 1, batch 16"]
# stdout-without = ["done"]
# ///
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int)
batch = parser.parse_args().batch
dist.init_process_group(backend="nccl")
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}, batch {batch}", flush=True)
model = DistributedDataParallel(nn.Linear(512, 512).to(local_rank), device_ids=[local_rank])
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(batch, 512).to(local_rank)).square().mean().backward()
    optimizer.step()
print("done")

"""Two stages of a pipeline, the second of which learns from the first what shapes it receives."""
# /// xmem
# options = ["--gpus", "2"]
# iterations = 3
# command = ["{python}", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "{script}"]
# torch = ">=2.5"
# skip-on-cpu = "the stages send tensors with NCCL"
# [virtual-gpu]
# stdout = ["rank 1 has a batch of 32"]
# [virtual-gpu.recording]
# "/strategies/0/name" = "pipeline"
# "/strategies/0/options" = { schedule = "1F1B", stages = "2", microbatches = "4" }
# ///
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

dist.init_process_group("nccl")
rank, size = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
told = [{"batch": 32} if rank == 0 else None]
dist.broadcast_object_list(told, src=0)
batch = told[0]["batch"]
print(f"rank {rank} has a batch of {batch}", flush=True)
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(device)
stage = PipelineStage(model, rank, size, device)
schedule = Schedule1F1B(stage, 4, loss_fn=nn.functional.mse_loss)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    if rank == 0:
        schedule.step(torch.randn(batch, 512, device=device))
    else:
        schedule.step(target=torch.randn(batch, 512, device=device))
    optimizer.step()

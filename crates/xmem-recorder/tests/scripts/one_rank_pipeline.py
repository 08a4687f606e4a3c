"""The last stage of a pipeline, recorded alone: it learns from the stages before it what shapes it receives."""
# /// xmem
# options = ["--ranks", "3", "--rank", "2", "--steps", "3"]
# iterations = 3
# torch = ">=2.6"
# skip-on-cpu = "the stages send tensors with NCCL"
# [virtual-gpu]
# stdout = ["rank 2 has a batch of 32", "rank 2 receives (8, 1024)"]
# stderr = ["note: rank 1 runs, too, until it has sent what rank 2 receives from it"]
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
widths = (256, 512, 1024, 128)
model = nn.Sequential(nn.Linear(widths[rank], widths[rank + 1]), nn.ReLU()).to(device)
model.register_forward_pre_hook(lambda _, inputs: print(f"rank {rank} receives {tuple(inputs[0].shape)}", flush=True))
stage = PipelineStage(model, rank, size, device)
schedule = Schedule1F1B(stage, 4, loss_fn=nn.functional.mse_loss)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    inputs = (torch.randn(batch, widths[0], device=device),) if rank == 0 else ()
    target = torch.randn(batch, widths[-1], device=device) if rank == size - 1 else None
    schedule.step(*inputs, target=target)
    optimizer.step()

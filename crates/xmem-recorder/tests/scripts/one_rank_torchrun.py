"""One rank of eight that torch's launcher would start: groups of NCCL and gloo, objects, stores."""
# /// xmem
# iterations = 3
# command = ["{python}", "-m", "torch.distributed.run", "--nproc-per-node", "4", "--nnodes", "2", "--master-addr", "10.1.2.3", "{script}", "--batch", "16"]
# torch = ">=2.11"
# options = ["--ranks", "8", "--rank", "6", "--nodes", "2"]
# stdout = [
#   "rank 6 of 8, local rank 2 of 4, batch 16, 4 GPUs",
#   "gathered [6, 6, 6, 6, 6, 6, 6, 6]",
#   "sum on the host 48.0, mean 6.0, gathered [6.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0]",
#   "sum on the device 48, greatest 6",
#   "gloo gloo, nccl nccl",
#   "store b'here' False",
# ]
# stdout-without = ["done"]
# ///
import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int)
batch = parser.parse_args().batch
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
rank, size = dist.get_rank(), dist.get_world_size()
print(
    f"rank {rank} of {size}, local rank {local_rank} of {os.environ['LOCAL_WORLD_SIZE']}, batch {batch},",
    torch.cuda.device_count(),
    "GPUs",
    flush=True,
)
objects = [None] * size
dist.all_gather_object(objects, rank)
print("gathered", objects, flush=True)
ours = ["ours"]
dist.broadcast_object_list(ours, src=0)
assert ours == ["ours"]

on_host = dist.new_group(backend="gloo")
dist.monitored_barrier(on_host, timeout=timedelta(seconds=5))
on_host.monitored_barrier(timedelta(seconds=5))
dist.barrier(on_host)
value = torch.tensor([float(rank)])
dist.all_reduce(value, group=on_host)
parts = [torch.zeros(1) for _ in range(size)]
dist.all_gather(parts, torch.tensor([float(rank)]), group=on_host)
mean = torch.stack(parts).mean().item()
print(f"sum on the host {value.item()}, mean {mean}, gathered {[part.item() for part in parts]}", flush=True)
counts, most = torch.tensor(rank, device="cuda"), torch.tensor(rank, device="cuda")
dist.all_reduce(counts)
dist.all_reduce(most, op=dist.ReduceOp.MAX)
print(f"sum on the device {counts.item()}, greatest {most.item()}", flush=True)
pair = dist.new_group([rank - 1, rank], backend="nccl")
print(f"gloo {dist.get_backend(on_host)}, nccl {dist.get_backend(pair)}", flush=True)

store = dist.TCPStore("10.1.2.3", 29501, size, rank == 0, timeout=timedelta(seconds=5))
store.set("mine", "here")
store.wait(["of another rank"])
print("store", store.get("mine"), store.check(["of another rank"]), flush=True)

model = DistributedDataParallel(nn.Linear(512, 512).to(local_rank), device_ids=[local_rank])
optimizer = torch.optim.AdamW(model.parameters())
try:
    for _ in range(20):
        optimizer.zero_grad()
        loss = model(torch.randn(batch, 512).to(local_rank)).square().mean()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss.detach())
        dist.barrier()
finally:
    dist.destroy_process_group()
print("done")

"""The last of three stages, which receives the shape of its input as a tensor, as DeepSpeed's pipelines do."""
# /// xmem
# options = ["--ranks", "3", "--rank", "2", "--steps", "3"]
# iterations = 3
# skip-on-cpu = "the stages send tensors with NCCL"
# [virtual-gpu]
# stdout = ["rank 2 of 3 receives [48, 1024]"]
# stderr = ["note: rank 1 runs, too, until it has sent what rank 2 receives from it"]
# ///
import os

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("nccl")
rank, size = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = nn.Linear(256 << rank, 512 << rank).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def send(tensor):
    shape = torch.empty(64, dtype=torch.int32, device="cuda")
    values = [tensor.dim(), *tensor.shape]
    shape[: len(values)].copy_(torch.tensor(values, dtype=torch.int32))
    dist.send(shape, rank + 1)
    dist.send(tensor, rank + 1)


def receive():
    shape = torch.empty(64, dtype=torch.int32, device="cuda")
    dist.recv(shape, rank - 1)
    shape = shape[1 : 1 + shape[0].item()].tolist()
    print(f"rank {rank} of {size} receives {shape}", flush=True)
    tensor = torch.empty(shape, device="cuda")
    dist.recv(tensor, rank - 1)
    return tensor.requires_grad_()


for _ in range(3):
    optimizer.zero_grad()
    output = model(receive() if rank else torch.randn(48, 256, device="cuda"))
    if rank < size - 1:
        send(output.detach())
    output.square().mean().backward()
    optimizer.step()
dist.destroy_process_group()

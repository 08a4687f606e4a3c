"""One rank of four that `torch.multiprocessing.spawn` would start, which initializes its group by hand."""
# /// xmem
# iterations = 3
# torch = ">=2.11"
# options = ["--ranks", "4", "--rank", "3"]
# stdout-without = ["worker 0…", "done"]
# stdout = ["worker 3 of 4 on cuda:3"]
# ///
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("nccl", rank=rank, world_size=size)
    torch.cuda.set_device(rank)
    print(f"worker {dist.get_rank()} of {size} on cuda:{torch.cuda.current_device()}", flush=True)
    model = DistributedDataParallel(nn.Linear(512, 512).to(rank), device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(20):
        optimizer.zero_grad()
        model(torch.randn(16, 512, device=rank)).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()
    print("done")


if __name__ == "__main__":
    mp.spawn(train, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count(), join=True)

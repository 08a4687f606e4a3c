"""One rank of four, whose script starts a process for each rank itself."""
# /// xmem
# iterations = 3
# torch = ">=2.11"
# options = ["--ranks", "4", "--rank", "2"]
# stdout = ["worker 2 of 4", "[0, 0, 0, 0]"]
# stdout-without = ["worker 0…", "worker 1…", "worker 3…", "done"]
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
    print("worker", dist.get_rank(), "of", size, flush=True)
    model = DistributedDataParallel(nn.Linear(512, 512).to(rank), device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(20):
        optimizer.zero_grad()
        model(torch.randn(16, 512, device=rank)).square().mean().backward()
        optimizer.step()
    print("done")


if __name__ == "__main__":
    processes = [mp.get_context("spawn").Process(target=train, args=(rank, 4)) for rank in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print([process.exitcode for process in processes])

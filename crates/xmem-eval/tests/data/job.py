"""A training loop that makes the allocator's life hard, recorded from its second iteration on: batches are copied on a stream of
their own (record_stream), empty_cache is called in the loop, and some batches do not fit.

    job.py OUT
"""

import sys

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 10)
).cuda()
optimizer = torch.optim.AdamW(model.parameters())
copies = torch.cuda.Stream()


def batch(size):
    with torch.cuda.stream(copies):
        data = torch.randn(size, 512).to("cuda", non_blocking=True)
        target = torch.randint(0, 10, (size,)).to("cuda", non_blocking=True)
    torch.cuda.current_stream().wait_stream(copies)
    data.record_stream(torch.cuda.current_stream())
    target.record_stream(torch.cuda.current_stream())
    return data, target


def step(size):
    data, target = batch(size)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(data), target).backward()
    optimizer.step()


def iteration(number):
    try:
        step(4096 if number % 3 else 256)
        failed = False
    except torch.OutOfMemoryError:
        failed = True
    if failed:
        optimizer.zero_grad()
        step(128)
    if number % 2:
        torch.cuda.empty_cache()


iteration(0)
torch.cuda.memory._record_memory_history("all", context="all", stacks="python")
for number in range(1, 5):
    iteration(number)
torch.cuda.memory._dump_snapshot(sys.argv[1])

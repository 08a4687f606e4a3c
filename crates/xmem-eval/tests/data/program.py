"""A pseudo-random program on PyTorch's CUDA allocator, recorded.

    program.py OUT SEED [steps=400] [warm=0] [context=all] [entries=0] [sizes=sml] [streams=1] [share=0] [hold=0] [empty=0] [pool=0]

warm     steps before the recording begins
context  'none': no call stacks
entries  how many entries the history keeps; 0 is all
sizes    s: up to 1 MiB, m: up to 12 MiB, l: up to 64 MiB, x: up to 400 MiB
share    part of the blocks that another stream uses when they are freed
hold     1: the device is at times not done with other streams' work (with hold.c in LD_PRELOAD)
empty    part of the steps that call empty_cache
pool     1: a third of the blocks come from a MemPool
"""

import ctypes
import random
import sys

import torch

out, seed = sys.argv[1], int(sys.argv[2])
options = dict(steps="400", warm="0", context="all", entries="0", sizes="sml", streams="1", share="0", hold="0", empty="0", pool="0")
options.update(option.split("=") for option in sys.argv[3:])
draw = random.Random(seed)
torch.cuda.init()
hold = ctypes.CDLL(None).hold_events if options["hold"] == "1" else None
streams = [torch.cuda.default_stream()] + [torch.cuda.Stream() for _ in range(int(options["streams"]) - 1)]
pool = torch.cuda.MemPool() if options["pool"] == "1" else None
live = []


def size():
    kind = draw.choice(options["sizes"])
    if kind == "s":
        return draw.choice([draw.randint(1, 4096), draw.randint(1, 1 << 20)])
    low, high = {"m": (1, 12), "l": (10, 64), "x": (100, 400)}[kind]
    return draw.randint(low << 20, high << 20)


def allocate():
    with torch.cuda.stream(draw.choice(streams)):
        if pool is not None and draw.random() < 0.3:
            with torch.cuda.use_mem_pool(pool):
                return torch.empty(size(), dtype=torch.uint8, device="cuda")
        return torch.empty(size(), dtype=torch.uint8, device="cuda")


def step():
    choice = draw.random()
    if hold and choice < 0.1:
        hold(draw.choice([0, 1]))
    if float(options["empty"]) > choice:
        torch.cuda.empty_cache()
        return
    if choice > 0.97 and hold:
        torch.cuda.synchronize()
    if live and (len(live) > 60 or draw.random() < 0.45):
        block = live.pop(draw.randrange(len(live)))
        if draw.random() < float(options["share"]) and len(streams) > 1:
            block.record_stream(draw.choice(streams))
        return
    try:
        live.append(allocate())
    except torch.OutOfMemoryError:
        for _ in range(min(len(live), draw.randint(1, 8))):
            live.pop(draw.randrange(len(live)))


for _ in range(int(options["warm"])):
    step()
context = None if options["context"] == "none" else options["context"]
limit = {"max_entries": int(options["entries"])} if options["entries"] != "0" else {}
torch.cuda.memory._record_memory_history("all", context=context, stacks="python", **limit)
for _ in range(int(options["steps"])):
    step()
if hold:
    hold(0)
torch.cuda.memory._dump_snapshot(out)

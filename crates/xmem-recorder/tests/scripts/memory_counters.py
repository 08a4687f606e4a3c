"""Counters of memory are printed, formatted and compared in the ways of training scripts, and never look measured."""
# /// xmem
# iterations = 3
# stdout = ["peak nan GiB, nan MB, 0 bytes", "counters can be used"]
# stdout-without = ["done"]
# stderr = ["note: torch.cuda's counters of memory are not known on the CPU: …"]
# [virtual-gpu]
# stdout = ["counters can be used"]
# stdout-without = ["nan"]
# ///
import json

import torch
from torch import nn

model = nn.Linear(512, 512).cuda()
optimizer = torch.optim.Adam(model.parameters())
limit = torch.cuda.get_device_properties(0).total_memory
for step in range(20):
    model(torch.randn(8, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    peak = torch.cuda.max_memory_allocated()
    if step == 0:
        print(f"peak {peak / 2**30:.2f} GiB, {peak // 2**20:,} MB, {int(peak)} bytes")
        print("%d %s" % (torch.cuda.memory_reserved() >> 20, json.dumps(peak)))
        assert not torch.cuda.memory_allocated() > limit
        assert not peak - torch.cuda.memory_allocated() < 0
        stats = torch.cuda.memory_stats()
        free = limit - stats["allocated_bytes.all.peak"] - stats.get("reserved_bytes.all.peak", 0)
        print(f"{int(free):d} {round(free / 1e9, 1)} {max(peak, 1):,} {sum([peak, peak]):.0f}")
        torch.tensor([peak, torch.cuda.max_memory_reserved()], dtype=torch.float64)
        print("counters can be used", flush=True)
print("done")

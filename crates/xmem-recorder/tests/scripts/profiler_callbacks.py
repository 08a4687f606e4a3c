"""A profiler of the script's own, whose callback takes memory of the GPU: it has no events, and is called all the same."""
# /// xmem
# stdout = ["called 2 times"]
# stderr = ["note: the script's own profiler is disabled: only one profiler can run"]
# [recording]
# "/iterations/count" = 20
# "/unseen" = { length = 0 }
# [replay]
# "/coverage/extent" = "whole"
#
# [virtual-gpu]
# stdout = ["called 2 times"]
# [virtual-gpu.replay]
# "/coverage/extent" = "whole"
# "/peak/at/part" = "evaluation"
# ///
import json

import torch
from torch import nn

net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
kept = []


def ready(profiler):
    assert len(profiler.key_averages()) >= 0
    profiler.export_chrome_trace("trace.json")
    assert "traceEvents" in json.load(open("trace.json"))
    kept.append(torch.zeros(4_000_000, device="cuda"))


schedule = torch.profiler.schedule(wait=2, warmup=2, active=3, repeat=2)
with torch.profiler.profile(schedule=schedule, on_trace_ready=ready, profile_memory=True) as profiler:
    for _ in range(20):
        optimizer.zero_grad()
        net(torch.randn(64, 256, device="cuda")).sum().backward()
        optimizer.step()
        profiler.step()
print("called", len(kept), "times")

net.eval()
with torch.no_grad():
    net(torch.randn(4096, 256, device="cuda"))

"""What the streams of one rank are told: sends and receives, alone and in a batch, all-to-all, events, a second stream."""
# /// xmem
# iterations = 2
# torch = ">=2.15"
# options = ["--ranks", "4", "--rank", "1"]
# skip-on-cpu = "the log is that of a virtual GPU"
# [virtual-gpu.recording]
# # An iteration: a receive, a send, both as one group, an all-to-all, an all-reduce; the second stream works and records
# # an event, for which the first one waits; and the allocator records one to know when a block is unused.
# "/allocator_history/activity/kinds" = { contains = "wPrrsrPrrsrPrswrArrRrwrsawwrsrwPrrsrPrrsrPrswrArrRrwrsaw" }
# "/allocator_history/activity/streams" = { contains = 2 }
# # Of the group, the larger direction.
# "/allocator_history/activity/values" = { contains = 131072 }
# "/allocator_history/activity/ranks" = { length = 10 }
# "/allocator_history/activity/ranks/2/1" = 4
# ///
import os

import torch
import torch.distributed as dist
from torch import nn

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl")
rank = dist.get_rank()
model = nn.Linear(256, 256).to(device)
optimizer = torch.optim.SGD(model.parameters())
side = torch.cuda.Stream()
received = torch.zeros(64, 256, device=device)
for _ in range(2):
    optimizer.zero_grad()
    # 64 KiB from the rank before.
    dist.irecv(received, rank - 1).wait()
    hidden = model(received)
    # The same to the next one.
    dist.isend(hidden.detach(), rank + 1).wait()
    # To one neighbor and from the other, as one group.
    batch = [
        dist.P2POp(dist.isend, hidden.detach(), rank + 1),
        dist.P2POp(dist.irecv, torch.empty(128, 256, device=device), rank - 1),
    ]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    # Parts of different sizes to all: 1 + 2 + 3 + 2 of 256 floats.
    parts = torch.ones(8, 256, device=device)
    dist.all_to_all_single(torch.empty_like(parts), parts, [2, 2, 2, 2], [1, 2, 3, 2])
    dist.all_reduce(torch.ones(1024, device=device))
    with torch.cuda.stream(side):
        on_side = torch.ones(1 << 20, device=device) * 2
        done = torch.cuda.Event()
        done.record()
    torch.cuda.current_stream().wait_event(done)
    on_side.record_stream(torch.cuda.current_stream())
    del on_side
    hidden.sum().backward()
    optimizer.step()

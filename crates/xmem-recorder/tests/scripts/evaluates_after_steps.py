"""Steps in a plain loop, an evaluation of a larger batch behind ten of them, and a checkpoint at the end: on the CPU as well, what
the source says is waited for."""
# /// xmem
# stdout = ["evaluated 0"]
# stdout-without = ["evaluated 1"]
# [recording]
# "/iterations/count" = 11
# "/ended/reason" = "steps"
# "/unseen" = { length = 1 }
# [replay]
# "/coverage/parts" = { contains = { part = "evaluation", count = 1 } }
# "/range/confidence" = "likely"
#
# [virtual-gpu]
# stdout = ["evaluated 0", "evaluated 1"]
# [virtual-gpu.recording]
# "/iterations/count" = 3
# [virtual-gpu.replay]
# "/coverage/extent" = "whole"
# "/coverage/parts" = { contains = { part = "evaluation", count = 2 } }
# "/range/confidence" = "certain"
# ///
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 500)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for epoch in range(2):
    net.train()
    for _ in range(10):
        optimizer.zero_grad()
        targets = torch.randint(0, 500, (32,)).cuda()
        nn.functional.cross_entropy(net(torch.randn(32, 256).cuda()), targets).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        net(torch.randn(4096, 256).cuda())
    print("evaluated", epoch, flush=True)
torch.save(net.state_dict(), "net.pt")

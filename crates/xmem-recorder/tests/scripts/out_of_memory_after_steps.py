"""Memory that runs out after the recorded steps: what followed them was lost, as the allocator's entry has no address."""
# /// xmem
# iterations = 3
# stdout-without = ["memory ran out"]
# [virtual-gpu]
# options = ["--enforce"]
# stdout = ["memory ran out", "done"]
# [virtual-gpu.replay]
# "/coverage/extent" = "whole"
# ///
import torch

net = torch.nn.Linear(1000, 1000).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(20):
    net(torch.randn(64, 1000, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == 10:
        try:
            torch.empty(100 << 30, device="cuda", dtype=torch.uint8)
        except torch.OutOfMemoryError:
            print("memory ran out", flush=True)
print("done")

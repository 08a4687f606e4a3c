"""Random numbers of the GPU: they are drawn beside those of the host, which come as on a GPU."""
# /// xmem
# skip-on-cpu = "all numbers come from the CPU's generator"
# iterations = 3
# stdout-without = ["done"]
# ///
import torch
from torch import nn

torch.manual_seed(0)
expected = torch.rand(3)
torch.manual_seed(0)
generator = torch.Generator(device="cuda").manual_seed(7)
lengths = [torch.randint(1, 1000, (8,), device="cuda").tolist() for _ in range(4)]
order = torch.randperm(16, device="cuda", generator=generator).tolist()
small = torch.empty(4, device="cuda").uniform_()
dropped = nn.functional.dropout(torch.ones(4).cuda())
assert torch.equal(torch.rand(3), expected)
assert len({tuple(length) for length in lengths}) == 4 and sorted(order) == list(range(16)) != order
assert small.unique().numel() == 4 and {0.0, 2.0} >= set(dropped.tolist())

linear = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    linear(torch.randn(256, 64, device="cuda")).sum().backward()
    optimizer.step()
print("done")

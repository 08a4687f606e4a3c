"""Memory that held ones, and in which kernels then would write that they found no error."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# ///
import torch
from torch import nn

linear = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)
systems = (torch.eye(3) * 2).cuda().repeat(768, 1, 1)
for _ in range(20):
    optimizer.zero_grad()
    for function in (lambda: torch.linalg.solve(systems, systems), lambda: torch.linalg.inv(systems)):
        ones = torch.ones(768, dtype=torch.int32).cuda()
        del ones
        assert function().shape == (768, 3, 3)
    linear(torch.randn(256, 64, device="cuda")).sum().backward()
    optimizer.step()
print("done")

"""A size that a kernel in Triton counts, in memory that held zeros: they are not the count."""
# /// xmem
# torch = ">=2.6"
# skip-on-cpu = "Triton's kernels need a GPU"
# iterations = 3
# stdout-without = ["done"]
# [virtual-gpu.replay]
# "/verdict" = "withheld"
# "/withheld" = ["assumed-sizes"]
# "/diagnostics" = { contains = { code = "assumed-sizes", message = "what Tensor.item at sizes_by_triton.py:34 gives decides sizes, and depends on values that a virtual GPU does not compute: record on the CPU, without --virtual-gpu" } }
# ///
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def count(ids, counts, size, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    found = tl.load(ids + places, mask=places < size, other=0)
    tl.atomic_add(counts + found, 1, mask=places < size)


linear = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)
ids = torch.randint(0, 8, (1000,)).cuda()
for _ in range(20):
    optimizer.zero_grad()
    counts = torch.zeros(8, dtype=torch.int32, device="cuda")
    count[(8,)](ids, counts, 1000, BLOCK=128)
    # What the kernel reads is known as before.
    assert ids.max().item() == 7
    rows = counts[3].item()
    hidden = linear(torch.randn(256, 64, device="cuda"))
    (hidden.sum() + torch.zeros(rows, 64, device="cuda").sum()).backward()
    optimizer.step()
print("done")

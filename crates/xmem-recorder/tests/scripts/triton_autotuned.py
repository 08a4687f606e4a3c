"""A kernel in Triton that is tuned: its first configuration needs more than the device has, and the second one is taken."""
# /// xmem
# torch = ">=2.6"
# skip-on-cpu = "Triton's kernels need a GPU"
# iterations = 3
# options = ["--steps", "3"]
# [virtual-gpu]
# stdout = ["tried: 2048 1024, taken: 1024"]
# ///
import torch
import triton
import triton.language as tl
from torch import nn
from triton.runtime.errors import OutOfResources

tried = []


def note(given):
    if given["BLOCK"] not in tried:
        tried.append(given["BLOCK"])
    if given["BLOCK"] == 2048:
        raise OutOfResources(1 << 20, 1 << 17, "shared memory")


def configuration(block):
    return triton.Config({"BLOCK": block}, pre_hook=note)


@triton.autotune([configuration(block) for block in (2048, 1024, 512, 256, 128)], key=["size"])
@triton.jit
def scale(values, size, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(values + places, tl.load(values + places, mask=places < size) * 2, mask=places < size)


linear = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    output = linear(torch.randn(256, 64, device="cuda"))
    scale[lambda given: (triton.cdiv(output.numel(), given["BLOCK"]),)](output.detach(), output.numel())
    blocks = " ".join(map(str, tried))
    print(f"tried: {blocks}, taken: {scale.best_config.kwargs['BLOCK']}", flush=True)
    output.sum().backward()
    optimizer.step()

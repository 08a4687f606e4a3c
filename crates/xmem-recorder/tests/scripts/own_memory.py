"""The recorder allocates nothing on the virtual GPU: each call makes the allocations that it makes without xmem."""
# /// xmem
# skip-on-cpu = "the host has no counts of allocations"
# iterations = 3
# stdout = ["each call allocates once"]
# ///
import torch
from torch import nn


def allocations():
    return torch.cuda.memory_stats()["allocation.all.allocated"]


model = nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 8, device="cuda")).sum().backward()
    optimizer.step()
    numbers = torch.arange(3000)
    on_device = numbers.cuda()
    calls = {
        "cuda": lambda: numbers.cuda(),
        "cuda of a device": lambda: numbers.cuda(0),
        "to a device": lambda: numbers.to("cuda"),
        "to a number": lambda: numbers.to(0),
        "to another kind": lambda: numbers.to("cuda", torch.int32),
        "to kind of the device": lambda: on_device.to(torch.int32),
        "a list": lambda: torch.tensor([1, 2, 3], device="cuda"),
        "a list on a number": lambda: torch.tensor([1, 2, 3], device=0),
        "a range": lambda: torch.arange(3000, device="cuda"),
        "zeros on a number": lambda: torch.zeros(3000, dtype=torch.int64, device=0),
        "like another": lambda: torch.ones_like(on_device),
        "a sum": lambda: on_device + 1,
        "a comparison": lambda: on_device > 5,
        "a copy": lambda: on_device.clone(),
    }
    for name, call in calls.items():
        before = allocations()
        result = call()
        made = allocations() - before
        if made != 1:
            print(f"{name}: {made} allocations")
            break
    else:
        print("each call allocates once")

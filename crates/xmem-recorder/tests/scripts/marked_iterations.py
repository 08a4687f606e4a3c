"""The script marks its iterations, of a call without gradients and two steps each."""
# /// xmem
# iterations = 3
# options = ["--steps", "3"]
# stdout = ["iteration 0", "iteration 1", "iteration 2"]
# [recording]
# "/iterations/by" = "marked iterations"
# "/iterations/count" = 3
# "/ended/reason" = "steps"
# ///
import contextlib
import sys

import torch
from torch import nn


@contextlib.contextmanager
def planned():
    """`xmem.planned()` of the Python package, which is not installed here."""
    hook = sys.modules["xmem_recorder.own_iterations"]
    hook.begin()
    yield
    hook.end()


model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for number in range(5):
    with planned():
        print("iteration", number, flush=True)
        with torch.no_grad():
            values = model(torch.rand(32, 512, device="cuda"))
        for _ in range(2):
            optimizer.zero_grad()
            model(values).square().mean().backward()
            optimizer.step()

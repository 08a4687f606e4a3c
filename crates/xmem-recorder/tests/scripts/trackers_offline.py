"""Trackers whose mode the script gives are offline all the same, and print no traceback of the end of the recording."""
# /// xmem
# iterations = 3
# stdout = ["wandb is disabled", "neptune is debug", "neptune is read-only", "failed: True"]
# stdout-without = ["done"]
# stderr = [
#     "note: Weights & Biases is offline: what the script logs is not sent",
#     "note: Neptune is offline: what the script logs is not sent",
# ]
# stderr-without = ["Traceback…"]
# ///
import pathlib
import sys
import traceback

import torch
from torch import nn

# Stand-ins for the packages, as far as they are used here.
pathlib.Path("wandb.py").write_text("def init(mode=None, **_): print('wandb is', mode, flush=True)\n")
pathlib.Path("neptune.py").write_text(
    "class Run:\n    def __init__(self, mode=None, **_): print('neptune is', mode, flush=True)\n\n\ninit_run = Run\n"
)
sys.path.insert(0, ".")

import neptune  # noqa: E402
import wandb  # noqa: E402


class Run:
    """A run that prints what ends it."""

    def __enter__(self):
        wandb.init(project="mine", mode="online")
        neptune.init_run(project="mine", mode="async")
        neptune.init_run(project="mine", mode="read-only")

    def __exit__(self, kind, value, trace):
        print("failed:", kind is not None, flush=True)
        traceback.print_exception(kind, value, trace)


model = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with Run():
    for _ in range(20):
        optimizer.zero_grad()
        model(torch.randn(8, 64, device="cuda")).sum().backward()
        optimizer.step()
print("done")

"""A package watches imports, too: its finder is in front, and looks for torch in the search path alone."""
# /// xmem
# iterations = 3
# stdout = ["found by the package: torch", "cuda:0"]
# stdout-without = ["done"]
# ///
import sys
from importlib.machinery import PathFinder


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        print("found by the package:", name, flush=True)
        return PathFinder.find_spec(name, path, target)


sys.meta_path.insert(0, Finder())

import torch  # noqa: E402
from torch import nn  # noqa: E402

model = nn.Linear(64, 64).cuda()
print(next(model.parameters()).device, flush=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()
print("done")

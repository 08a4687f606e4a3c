"""A script that starts another Python with a model of its own; the larger job is kept."""
# /// xmem
# iterations = 3
# stdout = ["child computed on cuda", "parent trains"]
# stdout-without = ["done"]
# [replay]
# "/by_role/parameter" = { at-least = 4000000 }
# ///
import subprocess
import sys

import torch
from torch import nn

CHILD = """
import torch
model = torch.nn.Linear(8, 8).cuda()
print("child computed on", model(torch.randn(2, 8).cuda()).device.type, flush=True)
"""


def main():
    subprocess.run([sys.executable, "-c", CHILD], check=True)
    print("parent trains", flush=True)
    model = nn.Linear(1024, 1024).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(20):
        optimizer.zero_grad()
        model(torch.randn(64, 1024).cuda()).sum().backward()
        optimizer.step()
    print("done")


if __name__ == "__main__":
    main()

"""A driver that trains in a child process, as launchers and sweeps do."""
# /// xmem
# iterations = 3
# stdout = ["driver is done"]
# [replay]
# "/by_role/parameter" = { at-least = 4000000 }
# ///
import subprocess
import sys

CHILD = """
import torch
model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(64, 1024).cuda()).sum().backward()
    optimizer.step()
"""

subprocess.run([sys.executable, "-c", CHILD], check=True)
print("driver is done")

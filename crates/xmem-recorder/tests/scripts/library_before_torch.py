"""A package loads CUDA's libraries before it imports torch, as Transformer Engine does."""
# /// xmem
# iterations = 3
# options = ["--steps", "3"]
# skip-on-cpu = "there is no CUDA to load"
# ///
import os
import sys
import tempfile

PACKAGE = """
import ctypes, glob, os, sys
library, = [path for folder in sys.path for path in glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libcudart.so.*"))][:1]
ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL).cudaFree(None)
"""
folder = tempfile.mkdtemp()
os.mkdir(os.path.join(folder, "transformer_engine"))
with open(os.path.join(folder, "transformer_engine", "__init__.py"), "w") as file:
    file.write(PACKAGE)
sys.path.insert(0, folder)

import transformer_engine  # noqa: E402, F401

import torch  # noqa: E402
from torch import nn  # noqa: E402

model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(64, 256, device="cuda")).sum().backward()
    optimizer.step()

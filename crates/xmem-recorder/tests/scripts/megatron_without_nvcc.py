"""A package asks `nvcc` for its release, as Megatron-LM does before its first iteration, on a machine without `nvcc`."""
# /// xmem
# iterations = 3
# options = ["--steps", "3"]
# skip-on-cpu = "the CPU has no release of CUDA"
# [virtual-gpu]
# stdout = ["kernels for compute capability 8.0"]
# ///
import os
import sys
import tempfile

import torch
from torch import nn

KERNELS = """
import subprocess

def load(args):
    _, major, _ = _get_cuda_bare_metal_version(None)
    if int(major) >= 11:
        print("kernels for compute capability 8.0", flush=True)

def _get_cuda_bare_metal_version(folder):
    output = subprocess.check_output([folder + "/bin/nvcc", "-V"], universal_newlines=True).split()
    return output, *output[output.index("release") + 1].split(".")[:2]
"""
folder = tempfile.mkdtemp()
os.makedirs(os.path.join(folder, "megatron", "legacy", "fused_kernels"))
with open(os.path.join(folder, "megatron", "legacy", "fused_kernels", "__init__.py"), "w") as file:
    file.write(KERNELS)
sys.path.insert(0, folder)

from megatron.legacy import fused_kernels  # noqa: E402

fused_kernels.load(None)
model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(64, 256, device="cuda")).sum().backward()
    optimizer.step()

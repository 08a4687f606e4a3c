"""The strategies that a recording of one rank names, with the options that are not the default."""
# /// xmem
# iterations = 3
# torch = ">=2.11"
# options = ["--ranks", "8"]
# stdout-without = ["done"]
# [recording]
# "/strategies" = { length = 4 }
# "/strategies/0" = { contains = { name = "DDP", options = { gradient_as_bucket_view = "True", bucket_cap_mb = "1" } } }
# "/strategies/1" = { contains = { name = "FSDP2", options = { reshard_after_forward = "False in 1 of 3", param_dtype = "bfloat16" } } }
# "/strategies/2" = { contains = { name = "tensor parallel", options = { ranks = "4" } } }
# "/strategies/3" = { contains = { name = "ZeroRedundancyOptimizer", options = {} } }
# [virtual-gpu.recording]
# "/strategies" = { length = 4 }
# "/strategies/0" = { contains = { name = "DDP", options = { gradient_as_bucket_view = "True", bucket_cap_mb = "1" } } }
# "/strategies/1" = { contains = { name = "FSDP2", options = { reshard_after_forward = "False in 1 of 3", param_dtype = "bfloat16" } } }
# "/strategies/2" = { contains = { name = "tensor parallel", options = { ranks = "4" } } }
# "/strategies/3" = { contains = { name = "ZeroRedundancyOptimizer", options = {} } }
# ///
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl")
mesh = init_device_mesh("cuda", (2, 4), mesh_dim_names=("data", "tensor"))
copied = nn.Linear(512, 512).to(device)
copied = DistributedDataParallel(copied, gradient_as_bucket_view=True, bucket_cap_mb=1)
first = ZeroRedundancyOptimizer(copied.parameters(), optimizer_class=torch.optim.AdamW)
cut = nn.Sequential(*(nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 512)) for _ in range(3))).to(device)
for layer in cut:
    parallelize_module(layer, mesh["tensor"], {"0": ColwiseParallel(), "1": RowwiseParallel()})
precision = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
for index, layer in enumerate(cut):
    fully_shard(layer, mesh=mesh["data"], mp_policy=precision, reshard_after_forward=index != 2)
cut = fully_shard(cut, mesh=mesh["data"], mp_policy=precision)
second = torch.optim.AdamW(cut.parameters(), foreach=False)
for _ in range(20):
    first.zero_grad()
    second.zero_grad()
    hidden = copied(torch.randn(64, 512, device=device))
    cut(hidden).float().square().mean().backward()
    first.step()
    second.step()
print("done")

"""Parameters, gradients and the state of the optimizer are kept in host memory, by FSDP2 on one GPU.

Parameters of a block are copied to the GPU when it is computed, twice per step, and gradients to the host, where the
steps of the optimizer are made: that takes the time of these copies and of the CPU.
"""

import os

from .sharding import ShardedModels, ShardingProcesses, lacks_sharding

NAME = "host-parameters"
TITLE = "Parameters in host memory"
CHANGES = "rounding"
NEEDS = ""
OPTION = ""
EXCLUDES = "step-in-backward host-optimizer host-activations bfloat16 adam8bit micro-batches lora compile fused"
CODE = "for module in [*model.blocks, model]: fully_shard(module, offload_policy=CPUOffloadPolicy())"


def install(torch, option, report):
    """Shards over this process alone."""
    reason = lacks_sharding(torch)
    if reason:
        return report(0, reason)
    is_test = os.environ.get("XMEM_MEASURES_TEST") == "1"
    fsdp = torch.distributed.fsdp
    if os.environ.get("WORLD_SIZE", "1") != "1":
        return report(0, "there are several processes")
    # Tests run on the CPU.
    policy = fsdp.OffloadPolicy if is_test else fsdp.CPUOffloadPolicy
    ShardedModels(torch, ShardingProcesses(torch, is_alone=True), policy, report)

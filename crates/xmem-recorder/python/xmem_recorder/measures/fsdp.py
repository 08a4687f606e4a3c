"""Parameters, gradients and the state of the optimizer are divided among GPUs, by FSDP2.

Each GPU has the batch of the script, so that a step is of as many batches as there are GPUs: training changes, and the
learning rate may have to. Batches are divided if a DataLoader draws them in random order; else each process makes its
own, with other random numbers. The parameters of a block are gathered when it is computed, which costs time.
"""

import os

from .sharding import ShardedModels, ShardingProcesses, divide_batches, lacks_sharding, save_once

NAME = "fsdp"
TITLE = "FSDP over {option} GPUs, each with the batch of the script"
CHANGES = "training"
NEEDS = ""
OPTION = "2"
GPUS = "option"
EXCLUDES = "step-in-backward host-optimizer host-activations bfloat16 adam8bit micro-batches lora compile host-parameters"
CODE = "for module in [*model.blocks, model]: torch.distributed.fsdp.fully_shard(module)"


def install(torch, option, report):
    """Takes the number of processes from the launcher; the option is what `xmem fit` starts."""
    reason = lacks_sharding(torch)
    if reason:
        return report(0, reason)
    if os.environ.get("WORLD_SIZE", "1") == "1" and os.environ.get("XMEM_MEASURES_TEST") != "1":
        return report(0, f"there is one process; xmem profile --ranks {option} or torchrun --nproc-per-node {option} make more")
    processes = ShardingProcesses(torch, is_alone=False)
    models = ShardedModels(torch, processes, torch.distributed.fsdp.OffloadPolicy, report)
    if processes.count > 1:
        divide_batches(torch, processes, lambda: models.tell_also("batches are divided"))
        save_once(torch, processes)

"""Prepares a process that stands for a rank, and its first process group."""

import inspect
import multiprocessing
import os
import sys

from .. import session
from ..patching import replace_everywhere
from . import agreements, collectives, launchers, place, reducer, stores

# A thread of NCCL's process groups looks into the store, whose functions are Python's: it would wait for the
# interpreter while the interpreter waits for its end (ProcessGroupNCCL.cpp, `HeartbeatMonitor::runLoop`).
_WITHOUT_MONITOR = {"TORCH_NCCL_ENABLE_MONITORING": "0", "TORCH_NCCL_DUMP_ON_TIMEOUT": "0"}

# Symmetric memory of all ranks is that of this one, on one device (torch/csrc/distributed/c10d/symm_mem/
# CUDASymmetricMemory.cu, `validate_rendezvous_requests`).
_WITH_ONE_DEVICE = {"TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES": "1"}


def install(torch):
    """Prepares a process with torch; nothing if all processes of the job run."""
    wanted = place.wanted()
    if wanted is None or not torch.distributed.is_available():
        return
    os.environ.update(_WITHOUT_MONITOR | _WITH_ONE_DEVICE)
    stores.install(torch, wanted["world_size"])
    collectives.install(torch)
    launchers.install(torch, wanted)
    reducer.install(torch)
    agreements.install()
    replace_everywhere(torch.distributed, "init_process_group", _init_process_group)


def _init_process_group(original):
    names = inspect.signature(original)

    def init(*args, **kwargs):
        given = names.bind_partial(*args, **kwargs).arguments
        rank, size = given.get("rank", -1), given.get("world_size", -1)
        rank = int(os.environ.get("RANK", -1)) if rank in (-1, None) else rank
        size = int(os.environ.get("WORLD_SIZE", -1)) if size in (-1, None) else size
        expected = place.wanted()
        if rank != expected["rank"] and multiprocessing.parent_process() is not None:
            # A process that the script started for another rank.
            sys.exit(0)
        if (rank, size) != (expected["rank"], expected["world_size"]):
            session.note(
                f"the script makes a group of {size} processes, of which this is rank {rank}, instead of rank "
                f"{expected['rank']} of {expected['world_size']}"
            )
        # Scripts ask for the monitor themselves, as torchtitan does (torchtitan/distributed/utils.py, `init_distributed`).
        os.environ.update(_WITHOUT_MONITOR)
        return original(*args, **kwargs)

    return init

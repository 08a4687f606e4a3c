"""What PyTorch does around collectives of NCCL, which are complete at once on a virtual GPU."""

import contextlib
import sys

from ..patching import replace
from . import activity

# PyTorch looks every 100 ms for collectives that are complete, and lets go of the tensors that they hold
# (torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp, `kWatchdogThreadSleepMillis`). In seconds, twice and a half.
WATCHDOG = 0.25


def install(torch):
    """Lets DDP take the parameters of the other processes for those of this one."""
    if torch.distributed.is_available():
        replace(torch.distributed, "_verify_params_across_processes", _verify_params)


def wait_for_collectives():
    """Waits until PyTorch has let go of what collectives held, as it has on a GPU after an iteration."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return
    if "nccl" in distributed.get_backend():
        activity.pause(WATCHDOG)


def _verify_params(original):
    """Compares the parameters of DDP with those of other ranks (torch/csrc/distributed/c10d/reducer.cpp,
    `verify_params_across_processes`). The sizes are sent from device to device, where nothing comes of it."""

    def verify(*args, **kwargs):
        with contextlib.suppress(RuntimeError):
            original(*args, **kwargs)

    return verify

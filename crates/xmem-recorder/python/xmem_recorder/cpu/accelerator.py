"""`torch.accelerator`, the device-independent interface (since 2.6)."""

from .. import session
from ..patching import answer
from ..ranks import place
from . import counters
from .cuda import current_stream, nothing, set_stream


def install(torch):
    """Replaces the functions of `torch.accelerator` if this torch has it."""
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None:
        return
    device = session.settings()["device"]
    gpu = torch.device("cuda")
    memory_info = (device["free_memory"], device["total_memory"])
    for name, value in {
        "is_available": True,
        "device_count": session.settings().get("gpus", 1),
        "current_accelerator": lambda check_available=False: gpu,
        "current_device_index": place.device(),
        "current_device_idx": place.device(),
        "current_stream": current_stream,
        "set_stream": set_stream,
        "set_device_index": nothing,
        "set_device_idx": nothing,
        "synchronize": nothing,
        "empty_cache": nothing,
        "empty_host_cache": nothing,
        "memory_stats": counters.statistics,
        "memory_allocated": counters.memory,
        "max_memory_allocated": counters.memory,
        "memory_reserved": counters.memory,
        "max_memory_reserved": counters.memory,
        "reset_accumulated_memory_stats": nothing,
        "reset_peak_memory_stats": nothing,
        "get_memory_info": memory_info,
    }.items():
        answer([accelerator], name, value)

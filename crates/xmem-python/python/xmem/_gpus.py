"""The GPU that this process trains on, as xmem knows it."""

from __future__ import annotations

from typing import Any, Dict, Optional

from ._program import Option
from ._replay import devices

__all__ = ["here", "peaks"]

# Drivers report a little more or less memory for the same card.
_TOLERANCE = 0.02


def here() -> Optional[Dict[str, Option]]:
    """Return the options of an answer for the current GPU: its name, or its memory if it is not known. `None` without one."""
    import torch

    if not torch.cuda.is_available():
        return None
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return options_for(properties.name, properties.total_memory)


def options_for(title: str, memory_bytes: int) -> Dict[str, Option]:
    """Return the options of an answer for a card with this name and memory, as PyTorch reports them.

    >>> options_for("NVIDIA GeForce RTX 3080", 12488343552)
    {'device': 'rtx3080-12g'}
    >>> options_for("Some Card", 12488343552)
    {'capacity': 12488343552}
    """
    for device in devices():
        known = int(device["memory_bytes"])
        if device["title"] == title and abs(known - memory_bytes) <= _TOLERANCE * known:
            return {"device": str(device["name"])}
    return {"capacity": memory_bytes}


def peaks() -> Dict[str, int]:
    """Return the peaks of this process on the current GPU, in bytes: empty if it has used none."""
    import torch

    cuda: Any = torch.cuda
    if not cuda.is_available() or not cuda.is_initialized():
        return {}
    return {
        "max_memory_reserved_bytes": int(cuda.max_memory_reserved()),
        "max_memory_allocated_bytes": int(cuda.max_memory_allocated()),
    }

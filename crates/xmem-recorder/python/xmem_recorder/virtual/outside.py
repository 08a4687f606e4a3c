"""Memory of a virtual GPU that the program takes outside PyTorch's caching allocator: symmetric memory, and what
libraries allocate themselves."""

import contextlib
import ctypes

from . import library

# Free memory of a device before any allocation.
_free = None
# The most of each device, as it was seen.
_most = {}


def install():
    """Notes how much memory a device has, before the first allocation."""
    global _free
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    info = library.function("cuMemGetInfo_v2")
    if info is not None and info(ctypes.byref(free), ctypes.byref(total)) == 0:
        _free = free.value


def measure(torch):
    """Compares what each device has given with what PyTorch's allocator has of it."""
    if _free is None or not torch.cuda.is_initialized():
        return
    with contextlib.suppress(Exception):
        for device in range(torch.cuda.device_count()):
            taken = _free - torch.cuda.mem_get_info(device)[0]
            rest = taken - torch.cuda.memory_stats(device).get("reserved_bytes.all.current", 0)
            _most[device] = max(_most.get(device, 0), rest)


def fact():
    """The bytes of the device that has most; 0 if there are none."""
    return max(_most.values(), default=0)

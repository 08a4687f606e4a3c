"""The allocator of the GPU."""

import ctypes
import sys

from .. import imports
from . import plans

LIBRARY = "libxmem-planned.so"
COMPILER_CONFIG = "torch._inductor.config"


class _Allocator:
    """The allocator, which torch does not own."""

    def __init__(self):
        self.allocator = None


_allocator = _Allocator()


def install(torch):
    """Makes the library the allocator of the job, before the first use of a GPU."""
    library = plans.open_library(torch, LIBRARY)
    plans.open_prepared()
    path = plans.path_of(LIBRARY)
    allocator = torch.cuda.memory.CUDAPluggableAllocator(path, "xmem_plan_malloc", "xmem_plan_free")
    inner = allocator.allocator()
    for setter, name in (
        ("set_record_stream_fn", "xmem_plan_record_stream"),
        ("set_reset_fn", "xmem_plan_empty_cache"),
        ("set_memory_fraction_fn", "xmem_plan_set_fraction"),
    ):
        getattr(inner, setter)(ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    torch.cuda.memory.change_current_allocator(allocator)
    _allocator.allocator = allocator
    _answer_statistics(torch, library)
    compiler = sys.modules.get(COMPILER_CONFIG)
    if compiler is not None:
        _leave_out_trees(compiler)
    else:
        imports.watch(COMPILER_CONFIG, _leave_out_trees)


def _leave_out_trees(config):
    """CUDA graphs of the compiler (`mode="reduce-overhead"`) without trees, which ask the allocator for the state of its
    pools: no pluggable one has that (torch/_inductor/cudagraph_trees.py; torch/csrc/cuda/CUDAPluggableAllocator.cpp,
    `checkPoolLiveAllocations`)."""
    config.triton.cudagraph_trees = False


def _answer_statistics(torch, library):
    """torch.cuda.memory_stats and what is made of it: a pluggable allocator has none (torch/csrc/cuda/CUDAPluggableAllocator.cpp,
    `getDeviceStats`)."""

    def statistics(_device):
        counters, reserved = plans.read_counters()

        def stat(current, peak):
            each = {"current": current, "peak": peak, "allocated": peak, "freed": peak - current}
            return {"all": each, "small_pool": dict.fromkeys(each, 0), "large_pool": dict(each)}

        allocated = stat(counters["allocated"], counters["allocated_peak"])
        return {
            "num_alloc_retries": counters["retries"],
            "num_ooms": counters["failures"],
            "allocation": stat(counters["requests"], counters["requests"]),
            "allocated_bytes": allocated,
            "active_bytes": allocated,
            "requested_bytes": allocated,
            "reserved_bytes": stat(reserved, counters["reserved_peak"]),
        }

    def reset(_device):
        library.xmem_plan_reset_peaks()

    torch._C._cuda_memoryStats = statistics
    torch._C._cuda_resetPeakMemoryStats = reset

"""A static memory plan that is followed while the job runs: the allocator of `xmem run --plan` in place of PyTorch's.

`xmem run` shares a folder: the library (`libxmem-planned.so`), `plan.txt`, if there is a plan before the job runs, and later
plans (`plan-2.txt`, …). The hook writes what the job did, where its requests differ from the plan
(`observed-PID-N.txt`), and counters at the end (`counters-PID.json`).
"""

import atexit
import ctypes
import json
import os

from . import session
from .patching import replace, wrap_steps
from .recording import steps

LIBRARY = "libxmem-planned.so"
# Requests outside the plan after which another plan is asked for, and how often.
MISSES = 64
MOST_PLANS = 8
# An optimizer without a step is waited for until another has made this many.
MAX_STEP_RATIO = 9
# The counters, in the order of the library's structure.
COUNTERS = (
    "requests",
    "planned",
    "outside",
    "unknown",
    "occupied",
    "other_stream",
    "no_memory",
    "iterations",
    "replans",
    "collisions",
    "allocated",
    "allocated_peak",
    "driver_peak",
    "reserved_peak",
    "retries",
    "failures",
)


class _Planned:
    """The library, and the plans of this process."""

    def __init__(self):
        self.folder = None
        self.library = None
        # Kept, as torch does not own it.
        self.allocator = None
        # The misses when the last plan was asked for, the plans asked for and those taken.
        self.misses = 0
        self.asked = 0
        self.taken = 0
        # The marks since the present plan.
        self.marks = 0
        self.iterations = 0


_planned = _Planned()
_torch = None


def install(torch):
    """Makes the library the allocator of the job, before the first use of a GPU."""
    global _torch
    _torch = torch
    settings = session.settings()["plan"]
    _planned.folder = settings["folder"]
    path = os.path.join(_planned.folder, LIBRARY)
    library = _planned.library = ctypes.CDLL(path)
    library.xmem_plan_mark.restype = ctypes.c_uint64
    _open("plan.txt", settings["debug"])
    allocator = torch.cuda.memory.CUDAPluggableAllocator(path, "xmem_plan_malloc", "xmem_plan_free")
    inner = allocator.allocator()
    for setter, name in (
        ("set_record_stream_fn", "xmem_plan_record_stream"),
        ("set_reset_fn", "xmem_plan_empty_cache"),
        ("set_memory_fraction_fn", "xmem_plan_set_fraction"),
    ):
        getattr(inner, setter)(ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    torch.cuda.memory.change_current_allocator(allocator)
    _planned.allocator = allocator
    _answer_statistics(torch)
    replace(torch.optim.Optimizer, "_patch_step_function", _made)
    wrap_steps(torch, _stepping)
    atexit.register(_write_counters)


def _open(name, debug):
    path = os.path.join(_planned.folder, name)
    if os.path.exists(path) and _planned.library.xmem_plan_open(path.encode(), int(debug)):
        session.note(f"{name} is no plan: PyTorch's way of allocating serves all requests")


def _made(original):
    def patch(self):
        steps.add_optimizer(_torch, self)
        return original(self)

    return patch


def _stepping(step):
    def stepping(self, *args, **kwargs):
        result = step(self, *args, **kwargs)
        steps.add(self)
        iterations = _iterations()
        if iterations > _planned.iterations:
            _planned.iterations = iterations
            _mark()
        return result

    return stepping


def _iterations():
    """The iterations up to now: each ends with a step of each optimizer, but for those that seem to make none."""
    counts = steps.counts()
    if max(counts) >= MAX_STEP_RATIO:
        counts = [count for count in counts if count]
    return min(counts)


def _mark():
    misses = _planned.library.xmem_plan_mark()
    _planned.marks += 1
    if _planned.taken < _planned.asked:
        _take_plan(misses)
    elif misses - _planned.misses >= MISSES and _planned.asked < MOST_PLANS and _planned.marks > 2:
        _ask_for_plan()


def _ask_for_plan():
    """Asks for a plan of what the last two iterations did; the job goes on meanwhile."""
    name = f"observed-{os.getpid()}-{_planned.asked + 1}.txt"
    part = os.path.join(_planned.folder, name + ".part")
    if _planned.library.xmem_plan_write_observed(part.encode()):
        return
    os.rename(part, part[: -len(".part")])
    _planned.asked += 1


def _take_plan(misses):
    """Takes the plan that was asked for, if it is there."""
    name = f"plan-{os.getpid()}-{_planned.asked}.txt"
    path = os.path.join(_planned.folder, name)
    if os.path.exists(path):
        _open(name, session.settings()["plan"]["debug"])
        _planned.taken, _planned.misses, _planned.marks = _planned.asked, misses, 0


def _counters():
    values = (ctypes.c_uint64 * len(COUNTERS))()
    reserved = ctypes.c_uint64()
    _planned.library.xmem_plan_counters(values, ctypes.byref(reserved))
    return dict(zip(COUNTERS, values)), reserved.value


def _write_counters():
    counters, _ = _counters()
    if not counters["requests"]:
        return
    path = os.path.join(_planned.folder, f"counters-{os.getpid()}.json")
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(counters, file)
    os.rename(path + ".part", path)


def _answer_statistics(torch):
    """torch.cuda.memory_stats and what is made of it: a pluggable allocator has none (torch/csrc/cuda/CUDAPluggableAllocator.cpp,
    `getDeviceStats`)."""

    def statistics(_device):
        counters, reserved = _counters()

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
        _planned.library.xmem_plan_reset_peaks()

    torch._C._cuda_memoryStats = statistics
    torch._C._cuda_resetPeakMemoryStats = reset

"""The library that allocates, the plans of this process, and the ends of iterations.

An iteration ends with the steps of the optimizers. A job that infers has none: there, an iteration begins with each call of a
module from outside all others, in which no gradients are computed. A script that marks its iterations itself has no others.

`xmem run` shares a folder: the library, `plan.txt`, if there is a plan before the job runs, and later
plans (`plan-2.txt`, …). The hook writes what the job did, where its requests differ from the plan
(`observed-PID-N.txt`), and counters at the end (`counters-PID.json`).
"""

import atexit
import ctypes
import json
import os
import threading

from .. import own_iterations, session
from ..patching import replace, wrap_steps
from ..recording import steps

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
    "fitted",
)


class _Planned:
    """The library, and the plans of this process."""

    def __init__(self):
        self.folder = None
        self.library = None
        # Whether there was a plan before the job ran.
        self.is_prepared = False
        # The misses when the last plan was asked for, the plans asked for and those taken.
        self.misses = 0
        self.asked = 0
        self.taken = 0
        # The marks since the present plan.
        self.marks = 0
        self.iterations = 0


_planned = _Planned()
_torch = None
# Whether the thread is in a call of a module.
_calls = threading.local()


def open_library(torch, name):
    """Loads the library, watches the steps of optimizers, and has counters written at the end."""
    global _torch
    _torch = torch
    _planned.folder = session.settings()["plan"]["folder"]
    library = _planned.library = ctypes.CDLL(path_of(name))
    library.xmem_plan_mark.restype = ctypes.c_uint64
    replace(torch.optim.Optimizer, "_patch_step_function", _made)
    wrap_steps(torch, _stepping)
    _mark_calls(torch, session.settings()["plan"]["mark"])
    own_iterations.at_end(mark)
    atexit.register(_write_counters)
    return library


def path_of(name):
    """The path of a file in the shared folder."""
    return os.path.join(_planned.folder, name)


def open_prepared():
    """Follows the plan that was made before the job ran, if there is one."""
    _planned.is_prepared = os.path.exists(path_of("plan.txt"))
    _open("plan.txt")


def _open(name):
    path, debug = path_of(name), session.settings()["plan"]["debug"]
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
        if iterations > _planned.iterations and not own_iterations.are_marked():
            _planned.iterations = iterations
            mark()
        return result

    return stepping


def _iterations():
    """The iterations up to now: each ends with a step of each optimizer, but for those that seem to make none."""
    counts = steps.counts()
    if max(counts) >= MAX_STEP_RATIO:
        counts = [count for count in counts if count]
    return min(counts)


def _mark_calls(torch, ends):
    if ends == "step":
        return
    module = torch.nn.Module
    original = module._call_impl
    is_traced = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
    # A plan of a job that infers begins with the first call; what precedes it and that call are the first iteration.
    is_first = ends == "call"

    def call_impl(self, *args, **kwargs):
        nonlocal is_first
        if is_traced() or torch.is_grad_enabled() or getattr(_calls, "are_inside", False):
            return original(self, *args, **kwargs)
        if is_first:
            is_first = False
        elif not (steps.are_counted() or own_iterations.are_marked()):
            mark()
        _calls.are_inside = True
        try:
            return original(self, *args, **kwargs)
        finally:
            _calls.are_inside = False

    module._call_impl = call_impl


def mark():
    """Notes that an iteration has ended, and asks for another plan, or takes it."""
    misses = _planned.library.xmem_plan_mark()
    _planned.marks += 1
    if _planned.taken < _planned.asked:
        _take_plan(misses)
    elif _planned.marks > 2 and _planned.asked < MOST_PLANS and _is_wanted(misses):
        _ask_for_plan()


def _is_wanted(misses):
    """Returns whether another plan is wanted: there is none yet, or too many requests differ from it."""
    return misses - _planned.misses >= MISSES or not (_planned.is_prepared or _planned.asked)


def _ask_for_plan():
    """Asks for a plan of what the last two iterations did; the job goes on meanwhile."""
    name = f"observed-{os.getpid()}-{_planned.asked + 1}.txt"
    part = path_of(name + ".part")
    if _planned.library.xmem_plan_write_observed(part.encode()):
        return
    os.rename(part, part[: -len(".part")])
    _planned.asked += 1


def _take_plan(misses):
    """Takes the plan that was asked for, if it is there."""
    name = f"plan-{os.getpid()}-{_planned.asked}.txt"
    path = path_of(name)
    if os.path.exists(path):
        _open(name)
        _planned.taken, _planned.misses, _planned.marks = _planned.asked, misses, 0


def read_counters():
    """The counters by their names, and the bytes that are reserved now."""
    values = (ctypes.c_uint64 * len(COUNTERS))()
    reserved = ctypes.c_uint64()
    _planned.library.xmem_plan_counters(values, ctypes.byref(reserved))
    return dict(zip(COUNTERS, values)), reserved.value


def _write_counters():
    counters, _ = read_counters()
    if not counters["requests"]:
        return
    path = path_of(f"counters-{os.getpid()}.json")
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(counters, file)
    os.rename(path + ".part", path)

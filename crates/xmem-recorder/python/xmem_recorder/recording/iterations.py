"""The iterations of the script, and the passes that make them.

An iteration ends with a step of each optimizer; without a step, backward passes count, and without these, forward
calls of the model. Where the script marks its iterations, nothing else counts. What follows a pass or a call belongs
to its iteration, which ends where the next one begins, or with the script.
"""

import time

from .. import engine, own_iterations, session
from ..virtual import library, nccl, outside
from . import calls, memory, run, steps

# Units of iterations.
STEPS = "optimizer steps"
BACKWARDS = "backward passes"
FORWARDS = "forward calls"
MARKED = "marked iterations"
# Iterations of which the resident memory is kept.
MAX_RESIDENT = 1000


class _Iterations:
    """The iterations that have ended."""

    def __init__(self):
        self.count = 0
        self.unit = STEPS
        # Those before the counted steps, if memory has run out since.
        self.before = 0
        # Resident bytes at the end of each.
        self.resident = []
        # The time of the last end, by the monotonic clock.
        self.last_end = None
        self.begun = None
        # Backward passes, and the last pass of each unit that was marked.
        self.backwards = 0
        self.marked = {}


_iterations = _Iterations()
_torch = None


def install(torch):
    """Initializes the module."""
    global _torch
    _torch = torch


def begin():
    """Begins the time of the first iteration."""
    _iterations.last_end = _iterations.begun = time.monotonic()


def seconds():
    """The time since then."""
    return time.monotonic() - _iterations.begun


def count():
    """The number of iterations."""
    return _iterations.count


def unit():
    """What they are counted by."""
    return _iterations.unit


def backwards():
    """The number of backward passes."""
    return _iterations.backwards


def facts():
    """The iterations, for the metadata."""
    return {
        "by": _iterations.unit,
        "count": _iterations.count,
        "requested": session.settings()["steps"],
        "backwards": _iterations.backwards,
        "resident": _iterations.resident,
    }


def add_backward():
    """Counts a backward pass."""
    _iterations.backwards += 1


def restart():
    """Drops the iterations so far, which were counted by the wrong unit; those that the script marks remain."""
    if own_iterations.are_marked():
        return
    _iterations.count, _iterations.resident = 0, []


def keep_before():
    """Keeps the iterations up to now where steps are counted anew."""
    _iterations.before = _iterations.count


def before():
    """The number of iterations that were kept."""
    return _iterations.before


def settle(number, unit):
    """Sets the number at the end, which no message follows."""
    _iterations.count, _iterations.unit = number, unit


def advance_to(number, unit):
    """Handles the end of the iteration with this number, unless that was handled before."""
    if number > _iterations.count:
        _end(number, unit)


def mark_pass(number, unit):
    """Marks the end of a pass, once."""
    if number > _iterations.marked.get(unit, 0):
        _iterations.marked[unit] = number
        run.mark(f"xmem::{'backward' if unit == BACKWARDS else 'forward'} {number}")


def end_last_pass():
    """Counts the passes of a script that ends without a step of an optimizer; the last one ends with it."""
    if steps.are_counted() or own_iterations.are_marked():
        return
    done, unit = calls.most(), FORWARDS
    if _iterations.backwards:
        done, unit = _iterations.backwards, BACKWARDS
    mark_pass(done, unit)
    advance_to(done, unit)


def _end(number, unit):
    now = time.monotonic()
    settle(number, unit)
    seconds = round(now - _iterations.last_end, 3)
    _iterations.last_end = now
    if unit in (STEPS, MARKED):
        run.mark(f"xmem::iteration {number}")
    if len(_iterations.resident) < MAX_RESIDENT:
        _iterations.resident.append(memory.resident())
    session.send("iteration", number=number, seconds=seconds, of=unit)
    if engine.is_virtual():
        library.end_iteration()
        outside.measure(_torch)
        nccl.wait_for_collectives()

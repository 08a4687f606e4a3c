"""The rest of the script, after the iterations that the profiler records: whether it runs, and where intervals of it begin.
"""

import time

from .. import engine
from ..virtual import intervals
from . import run


class _Rest:
    """The state of the rest."""

    def __init__(self):
        self.runs = False
        self.begun = 0
        self.steps = 0


_rest = _Rest()


def is_wanted():
    """Returns whether the rest of the script is to be recorded without the profiler."""
    return run.goes_on() and engine.is_virtual()


def begin(torch, part):
    """Begins, right after the profiler has stopped, in a part of the script."""
    _rest.begun = time.monotonic()
    intervals.begin(torch, part, 0)
    _rest.runs = True


def close():
    """Ends it, also in a forked child."""
    _rest.runs = False


def is_running():
    """Returns whether the rest is being recorded."""
    return _rest.runs


def steps():
    """The number of steps of optimizers in it."""
    return _rest.steps


def seconds():
    """The time since its beginning."""
    return time.monotonic() - _rest.begun


def add_step():
    """Counts a step of an optimizer."""
    _rest.steps += 1


def mark(part):
    """Begins an interval, in a part of the script."""
    intervals.mark(part, int(seconds() * 1e6), _rest.steps)

"""What follows the recorded iterations on the CPU, where all of it would take too long.

If the script iterates over a loader, its passes are cut short until it has evaluated, saved and generated, as far as its source
says that it does, and until it has had the longest batch that there was time to find. The profiler stays on.
"""

import time

from .. import engine, session
from . import expected, run

# Batches of a pass that are kept, before larger ones and the last.
BATCHES = 3
# Steps of optimizers up to the end: the last batch of an epoch, and the first of the next one.
STEPS = 8


class _Abridged:
    """The state of what follows."""

    def __init__(self):
        self.runs = False
        self.begun = 0
        self.steps = 0


_abridged = _Abridged()


def is_wanted():
    """Returns whether the script may go on after the recorded iterations with the profiler."""
    return run.goes_on() and not engine.is_virtual()


def goes_on(lengths_vary):
    """Handles the last step of the recorded iterations, and each later one; returns whether there is something left to record."""
    is_wanted = lengths_vary or _is_to_be_seen()
    if _abridged.runs:
        _abridged.steps += 1
        return is_wanted and _abridged.steps < STEPS
    if is_wanted:
        _abridged.begun = time.monotonic()
        _abridged.runs = True
        session.send("rest")
    return is_wanted


def is_running():
    """Returns whether passes over data are cut short."""
    return _abridged.runs and not run.is_over()


def is_expired():
    """Returns whether the time is up."""
    return is_running() and time.monotonic() - _abridged.begun > session.settings()["rest"]


def _is_to_be_seen():
    return any(what != expected.THAWING for what, _ in expected.find_unseen())

"""What follows the recorded iterations on the CPU, where all of it would take too long. Where the script iterates over data
with a loader, passes over data are cut short until it has done what its source says, evaluate, save and generate, and has
had the longest of the batches that there was time to look at. The profiler goes on.
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
    """Returns whether the script may go on after the recorded iterations."""
    return bool(session.settings().get("rest")) and not engine.is_virtual() and run.in_process()


def begin(lengths_vary):
    """Begins, if there is something to see; returns whether it runs."""
    if not _abridged.runs and (lengths_vary or _is_to_be_seen()):
        _abridged.begun = time.monotonic()
        _abridged.runs = True
        session.send("rest")
    return _abridged.runs


def is_running():
    """Returns whether passes over data are cut short."""
    return _abridged.runs and not run.is_over()


def add_step(lengths_vary):
    """Counts a step of an optimizer; returns whether it is the last one."""
    _abridged.steps += 1
    return _abridged.steps >= STEPS or not (lengths_vary or _is_to_be_seen())


def is_expired():
    """Returns whether the time is up."""
    return is_running() and time.monotonic() - _abridged.begun > session.settings()["rest"]


def _is_to_be_seen():
    return any(what != expected.THAWING for what, _ in expected.find_unseen())

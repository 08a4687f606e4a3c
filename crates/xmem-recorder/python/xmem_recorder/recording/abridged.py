"""What follows the recorded iterations on the CPU, where all of it would take too long: where the source of the script says
that it evaluates, saves or generates, and it iterates over data with a loader, passes over data are cut short until that
was seen. The profiler goes on.
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


def begin():
    """Begins, if there is something to see."""
    if not _abridged.runs and _is_to_be_seen():
        _abridged.begun = time.monotonic()
        _abridged.runs = True
        session.send("rest")
    return _abridged.runs


def is_running():
    """Returns whether passes over data are cut short."""
    return _abridged.runs and not run.is_over()


def add_step():
    """Counts a step of an optimizer; returns whether it is the last one."""
    _abridged.steps += 1
    return _abridged.steps >= STEPS or not _is_to_be_seen()


def is_expired():
    """Returns whether the time is up."""
    return is_running() and time.monotonic() - _abridged.begun > session.settings()["rest"]


def _is_to_be_seen():
    return any(what != expected.THAWING for what, _ in expected.find_unseen())

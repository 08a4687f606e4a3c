"""What follows the recorded iterations on the CPU, where all of it would take too long. The profiler stays on.

If the script iterates over a loader, its passes are cut short until it has evaluated, saved and generated, as far as its source
says that it does, and until it has had the longest batch that there was time to find. A loop without a loader cannot be
cut short: it runs until the script has evaluated and generated, and has made some steps with an optimizer that is made
later, as long as there are time and memory for it.
"""

import time
import weakref

from .. import engine, session
from . import expected, following, memory, parts, run, steps

# Batches of a pass that are kept, before larger ones and the last.
BATCHES = 3
# Steps of optimizers up to the end: the last batch of an epoch, and the first of the next one. Without a loader, up to the
# last chance of a checkpoint.
STEPS = 8
# Bytes by which the process may grow, most of them events of the profiler, of 2 KB each.
MAX_GROWTH = 1 << 30


class _Abridged:
    """The state of what follows."""

    def __init__(self):
        self.runs = False
        self.begun = 0
        self.steps = 0
        # Resident bytes at the beginning, and weak references to the optimizers that were there.
        self.resident = 0
        self.optimizers = ()


_abridged = _Abridged()
_torch = None


def install(torch):
    """Initializes the module."""
    global _torch
    _torch = torch


def is_wanted():
    """Returns whether the script may go on after the recorded iterations with the profiler."""
    return run.goes_on() and not engine.is_virtual()


def goes_on(has_loader, lengths_vary):
    """Handles the last step of the recorded iterations, and each later one; returns whether there is something left to record.
    `has_loader` is whether the script iterates over a loader, and `lengths_vary` whether its batches may become longer."""
    _abridged.steps += _abridged.runs
    unseen = {what for what, _ in expected.find_unseen()} - {expected.THAWING}
    if has_loader:
        is_wanted = (lengths_vary or bool(unseen)) and _abridged.steps < STEPS
    else:
        # A checkpoint seldom needs memory of the GPU: a script is not continued for it alone.
        is_soon = _abridged.runs and bool(unseen) and _abridged.steps < STEPS
        is_wanted = (is_soon or _is_waited_for(unseen)) and not _has_grown()
    if _abridged.runs or not is_wanted:
        return is_wanted
    _abridged.begun = time.monotonic()
    _abridged.runs = True
    _abridged.resident = memory.resident() or 0
    _abridged.optimizers = tuple(map(weakref.ref, steps.optimizers()))
    session.send("rest")
    return True


def is_running():
    """Returns whether passes over data are cut short."""
    return _abridged.runs and not run.is_over()


def is_expired():
    """Returns whether the time is up."""
    return is_running() and time.monotonic() - _abridged.begun > session.settings()["rest"]


def has_new_optimizer():
    """Returns whether the script has made an optimizer since the recorded iterations."""
    return is_running() and bool(_new_optimizers())


def _is_waited_for(unseen):
    """Returns whether something is left that a script without a loader comes to after any number of steps."""
    wanted = session.settings()["steps"]
    return (
        bool(unseen & {parts.EVALUATION, parts.GENERATION})
        or any(steps.count(optimizer) < wanted for optimizer in _new_optimizers())
        or following.makes_optimizer(_torch)
    )


def _new_optimizers():
    if not _abridged.runs:
        return []
    earlier = [known() for known in _abridged.optimizers]
    return [optimizer for optimizer in steps.optimizers() if not any(optimizer is known for known in earlier)]


def _has_grown():
    return _abridged.runs and (memory.resident() or 0) - _abridged.resident > MAX_GROWTH

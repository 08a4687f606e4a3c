"""The rest of the script, after the iterations that the profiler records: without the profiler, whose work takes most of
their time, and with the allocator's own history.
"""

import json
import os
import signal
import threading
import time

from .. import engine, errors, session
from ..virtual import history, intervals, outside, peaks
from . import loaders, parts, run

# A script that has evaluated has settled after so many seconds, steps, and intervals between steps and calls of models in
# which nothing new is asked of the allocator.
SETTLED_SECONDS = 10
SETTLED_STEPS = 2
SETTLED_INTERVALS = 100
# Seconds after the time is up in which the script may come to a step or a call of a model, where it is ended.
PATIENCE = 5


class _Rest:
    """The state of the rest."""

    def __init__(self):
        self.runs = False
        self.begun = 0
        self.steps = 0
        # Whether the time is up.
        self.expired = False


_rest = _Rest()
_torch = None


def install(torch):
    """Initializes the module."""
    global _torch
    _torch = torch


def is_wanted():
    """Returns whether the script goes on after the recorded iterations."""
    return bool(session.settings().get("rest")) and engine.is_virtual() and run.in_process()


def begin():
    """Begins, right after the profiler has stopped; returns whether there is a rest."""
    if not history.is_resumable():
        return False
    try:
        _rest.begun = time.monotonic()
        intervals.begin(_torch, parts.current(), 0)
    except Exception as error:
        session.note(f"what follows the recorded iterations is not known: {errors.describe(error)}")
        return False
    _rest.runs = True
    session.send("rest")
    threading.Thread(target=_watch_time, daemon=True).start()
    return True


def forget():
    """Ends it without a result, in a forked child."""
    _rest.runs = False


def is_running():
    """Returns whether the rest is being recorded."""
    return _rest.runs


def steps():
    """The number of steps of optimizers in it."""
    return _rest.steps


def reason_to_end():
    """The reason to end the script at this moment, if there is one: its time is up, or nothing new has followed for
    long."""
    if _rest.expired:
        return "time"
    is_settled = intervals.settled() >= SETTLED_STEPS and intervals.unchanged() >= SETTLED_INTERVALS
    is_settled = is_settled and time.monotonic() - _rest.begun - intervals.changed_at() > SETTLED_SECONDS
    return "settled" if is_settled and parts.was_seen(parts.EVALUATION) else None


def mark(part=None):
    """Begins an interval: of a part of the script, or of the same."""
    intervals.mark(part or parts.current(), int((time.monotonic() - _rest.begun) * 1e6), _rest.steps)


def stepped():
    """Handles a step of an optimizer."""
    _rest.steps += 1
    mark()


def end(reason, detail):
    """Writes what is known of the rest for `xmem profile`, which adds it to the trace."""
    _rest.runs = False
    try:
        outside.measure(_torch)
        peaks.read(_torch)
        devices = intervals.facts()
        found = {
            "schema": "xmem.rest.1",
            "ended": {"reason": reason, "detail": detail},
            "seconds": round(time.monotonic() - _rest.begun, 3),
            "steps": _rest.steps,
            "reduced": intervals.reduced(),
            "settled": intervals.settled(),
            "kinds": intervals.kinds(parts.TRAINING),
            "batches": loaders.facts(),
            "peaks": peaks.of_fullest(),
            "outside": outside.fact(),
            "places": history.places(),
            "devices": devices,
        }
        path = os.path.join(session.folder(), f"{os.getpid()}.rest")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
            json.dump(found, file, separators=(",", ":"))
    except Exception as error:
        session.note(f"what follows the recorded iterations is not known: {errors.describe(error)}")


def _watch_time():
    """Ends the script when its time is up: at its next step or call of a model, else where it is."""
    left = session.settings()["rest"]
    time.sleep(left)
    _rest.expired = True
    time.sleep(PATIENCE)
    if _rest.runs:
        os.kill(os.getpid(), signal.SIGUSR2)

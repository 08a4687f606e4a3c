"""What follows the recorded iterations: the script goes on without the profiler, whose work takes most of their time, and
with the allocator's own history, until its end, until its time is up, or until nothing new follows.
"""

import json
import os
import signal
import threading
import time

from .. import errors, session
from ..virtual import device_facts, history, intervals, outside, peaks
from . import expected, loaders, parts, rest

# A script that has done all that its source says, but for saving, has settled after so many seconds, steps, and intervals between steps and
# calls of models in which nothing new is asked of the allocator.
SETTLED_SECONDS = 10
SETTLED_STEPS = 2
SETTLED_INTERVALS = 100
# Seconds after the time is up in which the script may come to a step or a call of a model, where it is ended.
PATIENCE = 5

# Whether the time is up.
_is_expired = False
_torch = None


def install(torch):
    """Initializes the module."""
    global _torch
    _torch = torch


def begin():
    """Begins, right after the profiler has stopped; returns whether it does."""
    if not history.is_resumable():
        return False
    try:
        rest.begin(_torch, parts.current())
    except Exception as error:
        session.note(f"what follows the recorded iterations is not known: {errors.describe(error)}")
        return False
    session.send("rest")
    threading.Thread(target=_watch_time, daemon=True).start()
    return True


def called(module):
    """Handles the call of a model."""
    parts.called(module)
    rest.mark(parts.current())


def stepped():
    """Handles a step of an optimizer."""
    parts.stepped()
    rest.add_step()
    rest.mark(parts.current())


def reason_to_end():
    """The reason to end the script at this moment, if there is one: its time is up, or nothing new has followed for
    long."""
    if not rest.is_running():
        return None
    if _is_expired:
        return "time"
    is_settled = intervals.settled() >= SETTLED_STEPS and intervals.unchanged() >= SETTLED_INTERVALS
    is_settled = is_settled and rest.seconds() - intervals.changed_at() > SETTLED_SECONDS
    return "settled" if is_settled and not loaders.is_in_first_pass() and not _is_awaited() else None


def _is_awaited():
    """Returns whether the script will do something that may need more memory of the GPU. A checkpoint seldom does: where it
    is far away, the answer says that it was not seen."""
    return any(what != parts.SAVING for what, _ in expected.unseen())


def end(reason, detail):
    """Writes what is known of it for `xmem profile`, which adds it to the trace."""
    rest.close()
    try:
        outside.measure(_torch)
        peaks.read(_torch)
        devices = intervals.facts()
        found = {
            "schema": "xmem.rest.1",
            "ended": {"reason": reason, "detail": detail},
            "seconds": round(rest.seconds(), 3),
            "steps": rest.steps(),
            "reduced": intervals.reduced(),
            "settled": intervals.settled(),
            "kinds": intervals.kinds(parts.TRAINING),
            "batches": loaders.facts(),
            "unseen": expected.unseen(),
            "limits": device_facts.limits(),
            "peaks": peaks.of_fullest(),
            "pinned": peaks.of_host(_torch),
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
    global _is_expired
    time.sleep(session.settings()["rest"])
    _is_expired = True
    time.sleep(PATIENCE)
    if rest.is_running():
        os.kill(os.getpid(), signal.SIGUSR2)

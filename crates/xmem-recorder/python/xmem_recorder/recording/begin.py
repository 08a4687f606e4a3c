"""The begin of the recording: right before the script makes its first module, or uses the GPU."""

import multiprocessing
import threading

from .. import engine, session
from ..ranks import place
from ..virtual import compilation
from . import end, iterations, memory, run

# Functions that are called when the recording begins.
_callbacks = []
_thread = threading.local()


def when_begun(callback):
    """Has a function called when the recording begins."""
    _callbacks.append(callback)


def begin():
    """Starts the profiler, unless it has been started."""
    if session.purpose() != session.RECORD or not run.can_begin():
        return
    run.claim()
    for callback in _callbacks:
        callback()
    if not _is_to_be_recorded():
        run.close()
        return
    stacks = session.settings()["stacks"] and not compilation.began()
    run.take_thread()
    if threading.current_thread() is threading.main_thread():
        end.install_signal_handlers()
    else:
        _thread.guard = _EndOfThread()
    if not engine.is_virtual():
        # The address space of a virtual GPU would count.
        memory.limit(session.settings().get("max_memory"))
    iterations.begin()
    gpus = session.settings().get("gpus", 1)
    if gpus > 1 and place.wanted() is None:
        which = "the GPU with most memory" if engine.is_virtual() else "one GPU with all tensors"
        session.note(f"the script sees {gpus} GPUs; the answer is about {which}")
    run.start_profiler(stacks)
    session.send("recording")


def _is_to_be_recorded():
    if not run.in_process() or multiprocessing.current_process().daemon:
        return False
    return place.is_wanted()


class _EndOfThread:
    """Saves the recording at the end of its thread, which alone can stop the profiler."""

    def __del__(self):
        end.finish("end")

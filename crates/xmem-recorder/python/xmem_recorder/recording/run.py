"""The state of the recording in this process, and marks in its trace."""

import os
import threading

from .. import profilers, session


class _Run:
    """The recording, of which there is one at most in a process."""

    def __init__(self):
        self.torch = None
        self.pid = os.getpid()
        # The thread that began it, which alone can stop the profiler.
        self.thread = None
        self.profiler = None
        self.has_begun = False
        self.is_over = False


_run = _Run()


def install(torch):
    """Allows the recording to begin."""
    _run.torch = torch


def can_begin():
    """Returns whether torch is there and nothing has begun."""
    return not _run.has_begun and _run.torch is not None


def claim():
    """Begins on this thread; the profiler is started later."""
    _run.has_begun = True


def take_thread():
    """Makes this thread the recorded one."""
    _run.thread = threading.get_ident()


def start_profiler(stacks):
    """Starts the profiler, with Python stacks or without."""
    _run.profiler = profilers.start(_run.torch, stacks)


def close():
    """Ends the recording: nothing is counted or marked from here on."""
    _run.is_over = True


def forget():
    """Disables the recording in a forked child."""
    _run.has_begun = _run.is_over = True


def profiler():
    """The profiler; None if none was started."""
    return _run.profiler


def is_recording():
    """Returns whether the profiler runs."""
    return _run.profiler is not None and not _run.is_over


def is_over():
    """Returns whether the recording has ended, or will not begin."""
    return _run.is_over


def on_thread():
    """Returns whether this thread is the recorded one."""
    return threading.get_ident() == _run.thread


def is_thread(thread):
    """Returns whether a thread is the recorded one."""
    return thread is not None and thread.ident == _run.thread


def in_process():
    """Returns whether this is the process that torch was imported in, and no fork of it."""
    return os.getpid() == _run.pid


def goes_on():
    """Returns whether the script is to go on after the recorded iterations, on either engine."""
    return bool(session.settings().get("rest")) and in_process()


def mark(name):
    """Writes a mark to the trace: an annotation of no length."""
    if _run.profiler is None or _run.is_over:
        return
    operators = _run.torch.ops.profiler
    handle = operators._record_function_enter_new(name, None)
    operators._record_function_exit._RecordFunction(handle)


def mark_stream(stream):
    """Writes a mark from which on memory is allocated on another stream, if that is the recorded thread's."""
    if on_thread():
        mark(f"xmem::stream {stream}")

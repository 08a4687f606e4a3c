"""The end of the recording: at a number of iterations, by a signal, or with the script."""

import atexit
import os
import re
import signal
import sys
import threading
import traceback

from .. import engine, errors, profilers, session
from ..facts import metadata
from ..finished import MAX_RAISES, Finished
from ..patching import replace
from ..weights import missing
from . import abridged, after_steps, calls, evaluation, expected, export, iterations, loaders, memory, rest, run, steps


class _End:
    """What is known of the end of the script."""

    def __init__(self):
        # The reason and its detail, if the end was requested on another thread.
        self.wanted = None
        # The exception that ends the script: its type, value and traceback.
        self.failure = None
        self.exit_code = None
        # The times that `Finished` was raised again; None in a forked child, where it is not.
        self.raised = 0
        # The arguments of the export of a trace that is not saved yet.
        self.unsaved = None
        # Python's own `os._exit`.
        self.leave_at_once = None


_end = _End()
_torch = None


def install(torch):
    """Watches for exceptions, exits and forks."""
    global _torch
    _torch = torch
    hook = sys.excepthook

    def excepthook(kind, value, trace):
        _end.failure = (kind, value, trace)
        _advise(missing.advice(value))
        hook(kind, value, trace)

    sys.excepthook = excepthook
    thread_hook = threading.excepthook

    def thread_excepthook(failed):
        if run.is_thread(failed.thread):
            _end.failure = (failed.exc_type, failed.exc_value, failed.exc_traceback)
        thread_hook(failed)

    threading.excepthook = thread_excepthook
    leave = sys.exit

    def exit(status=None):
        _end.exit_code = status
        leave(status)

    sys.exit = exit
    replace(traceback, "print_exception", _except_the_end)
    leave_at_once = os._exit

    def _exit(status):
        if run.in_process():
            _end.exit_code = status
            _at_the_end()
        leave_at_once(status)

    os._exit = _exit
    _end.leave_at_once = leave_at_once
    atexit.register(_at_the_end)
    os.register_at_fork(after_in_child=_forget)


def install_signal_handlers():
    """Saves the recording at SIGUSR2, which `xmem profile` sends, and at SIGTERM and SIGHUP."""

    def stop(_number, _frame):
        _end_now(session.stop_reason() or after_steps.reason_to_end() or "signal", None, Finished())

    signal.signal(signal.SIGUSR2, stop)

    def terminated(number, _frame):
        name = signal.Signals(number).name
        finish("signal", name)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, terminated)


def finish(reason, detail=None):
    """Stops the profiler and saves the trace; errors are reported, not raised."""
    if not run.in_process():
        return
    if rest.is_running():
        after_steps.end(reason, detail)
        _export()
    elif run.is_recording():
        _stop(reason, detail)
        _export()


def go_on_or_finish(reason):
    """Ends the script, as the iterations are complete, unless its rest is to be recorded, too: without the profiler on a virtual
    GPU, with it on the CPU."""
    if abridged.is_wanted() and not abridged.is_expired():
        if abridged.goes_on(loaders.are_used(), loaders.lengths_vary()):
            return
    if not rest.is_wanted():
        finish(reason)
        raise Finished
    _stop(reason, None)
    if _end.unsaved is None:
        raise Finished
    if not after_steps.begin():
        _export()
        raise Finished


def _stop(reason, detail):
    """Stops the profiler."""
    if run.on_thread():
        # The export is not part of the script.
        sys.setprofile(None)
        if reason in ("end", "exit"):
            iterations.end_last_pass()
            if reason == "end" and iterations.count() >= session.settings()["steps"]:
                of_passes = {iterations.FORWARDS: "forwards", iterations.BACKWARDS: "backwards"}
                reason = of_passes.get(iterations.unit(), reason)
    run.close()
    memory.restore()
    match = re.search(r"tried to allocate (\d+) bytes", _failure_text())
    needed = int(match.group(1)) if match else None
    evaluation.note()
    profiler = run.profiler()
    try:
        profiler.add_metadata_json("xmem_recording", _metadata(reason, detail))
    except Exception as error:
        text = f"the trace lacks the metadata of the recording: {errors.describe(error)}"
        session.send("note", text=text)
    try:
        profilers.stop(profiler)
        if session.settings()["stacks"] and not engine.is_virtual():
            export.keep_lines(profiler)
        _end.unsaved = profiler, iterations.count(), reason, detail, needed
    except Exception as error:
        session.send("failed", text=f"{type(error).__name__}: {error}")


def _export():
    """Saves the trace of the profiler that has stopped."""
    unsaved, _end.unsaved = _end.unsaved, None
    if unsaved is None:
        return
    try:
        export.export(*unsaved)
    except Exception as error:
        session.send("failed", text=f"{type(error).__name__}: {error}")


def finish_if_requested():
    """Ends the script if that was requested while another thread ran, or if the time for its rest is up."""
    reason, detail = _end.wanted or (after_steps.reason_to_end(), None)
    if reason is None and abridged.is_expired():
        reason = "steps"
    if reason is not None and run.on_thread():
        finish(reason, detail)
        raise Finished


def raise_again():
    """Raises the end of the script again, which the script has caught."""
    if run.profiler() is None or rest.is_running() or _end.raised is None:
        return
    if not run.on_thread():
        return
    _end.raised += 1
    if _end.raised > MAX_RAISES:
        sys.stdout.flush()
        sys.stderr.flush()
        _end.leave_at_once(0)
    raise Finished


def _advise(text):
    """Tells what helps, if there is something; as a note if the script is recorded, else as the advice of the command's
    error."""
    if text is None:
        return
    if run.is_recording():
        session.note(text)
    else:
        session.send("missing", text=text)


def _metadata(reason, detail):
    optimizers = [(optimizer, steps.count(optimizer)) for optimizer in steps.optimizers()]
    ended = {"reason": reason, "detail": detail}
    course = {"unseen": expected.find_unseen(), "batches": loaders.facts()}
    return metadata.collect(_torch, calls.models(), optimizers, iterations.facts(), calls.batch(), ended, course)


def _except_the_end(original):
    """Prints no traceback of the end of the recording, where a context manager prints whatever passes it."""

    def print_exception(*args, **kwargs):
        if not any(isinstance(value, Finished) for value in (*args, *kwargs.values())):
            original(*args, **kwargs)

    return print_exception


def _forget():
    """Disables the recording in a forked child."""
    run.forget()
    rest.close()
    _end.raised = None


def _at_the_end():
    if rest.is_running():
        finish(*_reason())
        return
    if not run.is_recording():
        return
    if not iterations.count() and not session.is_first():
        # A helper process of the script that uses torch, or what a launcher started, without an iteration.
        reason, detail = _reason()
        if reason in ("exception", "memory"):
            session.send("raised", text=detail)
        run.close()
        if run.on_thread():
            profilers.stop(run.profiler())
        return
    finish(*_reason())


def _reason():
    """The reason why the script ended, and its detail."""
    if _end.failure is not None:
        kind, _, trace = _end.failure
        if issubclass(kind, KeyboardInterrupt):
            return "signal", "SIGINT"
        where = errors.describe_type(kind, trace)
        if issubclass(kind, MemoryError) or "DefaultCPUAllocator" in _failure_text():
            return "memory", where
        return "exception", where
    if _end.exit_code not in (None, 0):
        # A text is printed by Python, which exits with 1.
        code = _end.exit_code
        return "exit", str(int(code)) if isinstance(code, int) else "1"
    return "end", None


def _failure_text():
    """The message of the exception that ended the script, which stays in this process."""
    try:
        return "" if _end.failure is None else str(_end.failure[1])
    except Exception:
        return ""


def _end_now(reason, detail, exception):
    if not run.on_thread():
        _end.wanted = (reason, detail)
        return
    finish(reason, detail)
    raise exception

"""The end of the run: the graph is written, or the reason is told why there is none."""

import atexit
import os
import sys
import threading

from .. import errors, session
from ..finished import MAX_RAISES, Finished
from . import take, watch


class _End:
    """What is known of the end of the script."""

    def __init__(self):
        self.watch = None
        self.pid = os.getpid()
        self.failure = None
        self.raised = 0


_end = _End()


def install(torch):
    """Installs the wrappers, and looks at the end of the script."""
    version = tuple(int(part) for part in str(torch.__version__).split(".")[:2])
    if version < take.OLDEST:
        oldest = ".".join(map(str, take.OLDEST))
        session.send(
            "unsupported",
            text=f"torch {torch.__version__} has no export for training: {oldest} or later is needed",
        )
        return
    _end.watch = watch.install(torch, session.settings()["steps"], _finish)
    _end.watch.raise_again = _raise_again
    hook = sys.excepthook

    def excepthook(kind, value, trace):
        _end.failure = (kind, trace)
        hook(kind, value, trace)

    sys.excepthook = excepthook
    thread_hook = threading.excepthook

    def thread_excepthook(failed):
        if failed.exc_type is Finished:
            return
        _end.failure = (failed.exc_type, failed.exc_traceback)
        thread_hook(failed)

    threading.excepthook = thread_excepthook
    atexit.register(_at_the_end)
    os.register_at_fork(after_in_child=_forget)


def _finish(seen):
    """Takes the graph, and ends the script."""
    _take(seen)
    seen.torch.nn.Module._call_impl = seen.call_impl
    raise Finished


def _raise_again():
    """Ends the script again, which has caught its end."""
    if _end.pid != os.getpid() or not _end.watch.on_thread():
        return
    _end.raised += 1
    if _end.raised > MAX_RAISES:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    raise Finished


def _take(seen):
    seen.is_over = True
    if os.environ.get("RANK", "0") != "0":
        return
    path = session.settings()["graph"]
    part = f"{path}.{os.getpid()}"
    try:
        job = take.take(seen, part, "model")
        os.replace(part, path)
    except Exception as error:
        session.send("no_graph", text=take.reason(error))
        return
    session.send("graph", **take.facts(job))


def _at_the_end():
    seen = _end.watch
    if _end.pid != os.getpid() or seen.is_over or not seen.runs:
        return
    if _end.failure is not None and not seen.is_stepped:
        kind, trace = _end.failure
        session.send(
            "no_graph",
            text=f"the script raised {errors.describe_type(kind, trace)} before a step was complete",
        )
    elif seen.course.backwards:
        _take(seen)
    else:
        session.send(
            "no_graph",
            text="the script ended without a backward pass: only training has a graph",
        )


def _forget():
    """A forked child takes no graph."""
    _end.watch.is_over = True
    _end.watch.raise_again = lambda: None

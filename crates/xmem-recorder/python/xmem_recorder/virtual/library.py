"""The stand-ins for CUDA's libraries in this process, and what they are asked and told.

Releases of the stand-ins differ: a function that the loaded one lacks is left out.
"""

import ctypes
import os
import sys

from .. import stacks

# Entries of the log in the metadata.
MAX_LOGGED = 100
MAX_COMMUNICATORS = 4096


class _Loaded:
    """The libraries that were loaded before torch; none if the engine is the CPU."""

    def __init__(self):
        self.libraries = []
        # The path of the file in which they note what they could not do.
        self.log = None
        self.is_read = None


_loaded = _Loaded()


def load(paths, log_file):
    """Loads the libraries, which note in `log_file` what they could not do; raises `OSError` if one cannot be loaded.

    The dynamic loader takes a library that is loaded already for every later one of the same name (SONAME).
    """
    _loaded.log = log_file
    for path in paths:
        _loaded.libraries.append(ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL))
    # For processes that the script starts without the hook, such as the workers of torch's compiler.
    before = os.environ.get("LD_PRELOAD")
    os.environ["LD_PRELOAD"] = ":".join(paths + ([before] if before else []))


def function(name):
    """A function of the first library; None if there is none."""
    return getattr(_loaded.libraries[0], f"vgpu_{name}", None) if _loaded.libraries else None


def log():
    """What the libraries could not do: pairs of a kind and a text, each once.

    Kinds are `call` (a function that is not implemented, with the status that it returned), `size` (a function
    whose size is not known), `estimate` (one whose size is estimated), `cudnn` and `error` (the reason).
    """
    if _loaded.log is None:
        return []
    try:
        with open(_loaded.log, encoding="utf-8", errors="replace") as file:
            lines = sorted({line.rstrip("\n") for line in file})
    except OSError:
        return []
    return [tuple(line.split(" ", 1)) for line in lines if " " in line][:MAX_LOGGED]


def drop_calls(is_read):
    """Leaves calls of functions written in C, and of Python functions for whose code `is_read(code)` is false, out of the
    Python stacks of this thread, which torch's profiler records: each takes 1.5 KB of memory."""
    drop = function("drop_calls")
    if drop is None:
        return
    # The library calls it as long as the profiler runs.
    _loaded.is_read = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(is_read)
    tracer = sys.getprofile()
    drop(stacks.thread_state(), ctypes.c_void_p(id(tracer)), _loaded.is_read)


def communicators():
    """The numbers of ranks of the communicators of NCCL in this process; None without a virtual GPU."""
    read = function("communicators")
    if read is None:
        return None
    sizes = (ctypes.c_int * MAX_COMMUNICATORS)()
    count = read(sizes, MAX_COMMUNICATORS)
    return sorted(sizes[: min(count, MAX_COMMUNICATORS)], reverse=True)


def size_of_split(ranks):
    """Tells NCCL's stand-in the number of ranks of the communicator that is split next; 0 if it is not known."""
    _tell("size_of_split", ranks)


def host_reads():
    """How often the host has read memory of the device; 0 without a virtual GPU."""
    count = function("host_reads")
    return 0 if count is None else count()


def start_activity_log():
    """Begins the log of what streams are told."""
    _tell("log_activity", 1)


def stop_activity_log():
    """Ends it."""
    _tell("log_activity", 0)


def activity(entry):
    """The entries of that log as an array of `entry`, a ctypes structure; None if some are missing."""
    read = function("activity")
    if read is None:
        return None
    read.restype = ctypes.c_long
    entries = ctypes.POINTER(entry)()
    count = read(ctypes.byref(entries))
    return None if count < 0 else entries[:count]


def end_iteration():
    """Tells the virtual GPU that an iteration has ended."""
    _tell("iteration")


def _tell(name, *arguments):
    """Calls a function that returns nothing, if there is one."""
    tell = function(name)
    if tell is not None:
        tell(*arguments)

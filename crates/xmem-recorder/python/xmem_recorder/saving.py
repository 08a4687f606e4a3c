"""The trace on its way to `xmem profile`, and the memory that the script may take until then."""

import os
import stat
import time

from . import session

# How long to wait for the reader of a trace, in seconds.
READER = 60


def export(profiler, iterations, reason, detail, needed):
    """Writes the trace into a FIFO. Kineto writes to a file of this name and renames it
    (libkineto, output_json.cpp): the FIFO lies there before."""
    path = os.path.join(session.folder(), f"{os.getpid()}.json")
    fifo = path + ".tmp"
    os.mkfifo(fifo, 0o600)
    facts = {"needed": needed} if needed is not None else {}
    session.tell(
        "export", path=path, iterations=iterations, reason=reason, detail=detail, **facts
    )
    held = _open_when_read(fifo)
    try:
        profiler.export_chrome_trace(path)
        streamed = stat.S_ISFIFO(os.stat(path).st_mode)
    finally:
        os.close(held)
    session.tell("exported", streamed=streamed)


def _open_when_read(fifo):
    """Opens for writing once there is a reader, and so keeps the FIFO from ending too early."""
    give_up = time.monotonic() + READER
    while True:
        try:
            held = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            os.set_blocking(held, True)
            return held
        except OSError:
            if time.monotonic() > give_up:
                raise TimeoutError("nobody reads the trace") from None
            time.sleep(0.005)


def limit_memory(most):
    """Lets the process allocate what is left up to `most` bytes of resident memory, so that a
    request beyond it fails by itself, with its size; returns the limit to restore."""
    if most is None:
        return None
    try:
        import resource

        data, resident = _data_and_resident()
        before = resource.getrlimit(resource.RLIMIT_DATA)
        soft = data + max(most - resident, 0)
        if before[1] != resource.RLIM_INFINITY:
            soft = min(soft, before[1])
        resource.setrlimit(resource.RLIMIT_DATA, (soft, before[1]))
        return before
    except (ImportError, OSError, ValueError):
        return None


def restore_memory(before):
    """Takes the limit back: saving the trace needs memory, too."""
    if before is None:
        return
    import resource

    try:
        resource.setrlimit(resource.RLIMIT_DATA, before)
    except (OSError, ValueError):
        pass


def _data_and_resident():
    """Bytes of data, which the limit counts, and bytes in memory (proc(5), `status`)."""
    sizes = {}
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key in ("VmData", "VmRSS"):
                sizes[key] = int(value.split()[0]) * 1024
    return sizes["VmData"], sizes["VmRSS"]

"""The export of the trace to `xmem profile`, and the limit to the script's memory."""

import json
import os
import stat
import time

from . import errors, lines, session

# Longest wait for the reader of a trace, in seconds.
READER_TIMEOUT = 60


def export(profiler, iterations, reason, detail, needed):
    """Writes the trace into a FIFO, made under the name of the file that Kineto writes before it
    renames it (libkineto, output_json.cpp)."""
    path = os.path.join(session.folder(), f"{os.getpid()}.json")
    fifo = path + ".tmp"
    os.mkfifo(fifo, 0o600)
    facts = {"needed": needed} if needed is not None else {}
    session.send(
        "export", path=path, iterations=iterations, reason=reason, detail=detail, **facts
    )
    writer = _open_when_read(fifo)
    try:
        profiler.export_chrome_trace(path)
        streamed = stat.S_ISFIFO(os.stat(path).st_mode)
    finally:
        os.close(writer)
    session.send("exported", streamed=streamed)


def keep_lines(profiler):
    """Writes the lines of calls for `xmem profile`, which adds them to the trace: its metadata are complete when the
    profiler stops, and only then the lines can be had."""
    try:
        found = lines.of_profiler(profiler)
        if found is None:
            return
        path = os.path.join(session.folder(), f"{os.getpid()}.lines")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
            json.dump(found, file, separators=(",", ":"))
    except Exception as error:
        session.note(f"lines of the script are those of its functions: {errors.describe(error)}")


def _open_when_read(fifo):
    """Opens the FIFO for writing once it has a reader, so that it does not end too early."""
    deadline = time.monotonic() + READER_TIMEOUT
    while True:
        try:
            writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            os.set_blocking(writer, True)
            return writer
        except OSError:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no reader of the trace within {READER_TIMEOUT} s") from None
            time.sleep(0.005)


def limit_memory(most):
    """Limits the process to `most` bytes of resident memory, so that an allocation beyond it fails
    with its size; returns the limit to restore."""
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
    """Restores the limit, as the export needs memory, too."""
    if before is None:
        return
    import resource

    try:
        resource.setrlimit(resource.RLIMIT_DATA, before)
    except (OSError, ValueError):
        pass


def resident_memory():
    """Resident bytes of this process; None where the system does not say."""
    try:
        return _data_and_resident()[1]
    except (OSError, KeyError, ValueError):
        return None


def _data_and_resident():
    """Bytes of data, which the limit counts, and resident bytes (proc(5), `status`)."""
    sizes = {}
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key in ("VmData", "VmRSS"):
                sizes[key] = int(value.split()[0]) * 1024
    return sizes["VmData"], sizes["VmRSS"]

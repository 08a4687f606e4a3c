"""The export of the trace to `xmem profile`."""

import json
import os
import stat
import time

from .. import errors, session
from . import lines

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

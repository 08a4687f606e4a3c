"""What the streams of a virtual GPU are told, for the metadata: with it, `xmem replay` models when work is complete."""

import ctypes
import time

from . import library


class _Entry(ctypes.Structure):
    """An entry as the virtual GPU writes it (xmem-virtual-gpu, native/activity.c)."""

    _fields_ = [
        ("time", ctypes.c_uint64),
        ("stream", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("thread", ctypes.c_uint32),
        ("ranks", ctypes.c_uint32),
        ("kind", ctypes.c_char),
    ]


# The recorder's own pauses: their begin and end, in ns of the system's clock.
_pauses = []
_entries = None


def start():
    """Begins the log."""
    library.start_activity_log()


def pause(seconds):
    """Waits, and notes that the script did not."""
    begin = time.time_ns()
    time.sleep(seconds)
    _pauses.append([begin, time.time_ns()])


def of_the_allocator():
    """Ends the log. Returns the events that the allocator recorded, each with its time in ns and its moment."""
    global _entries
    library.stop_activity_log()
    _entries = library.activity(_Entry)
    return [(entry.time, entry.value) for entry in _entries or () if entry.kind == b"a"]


def facts():
    """The log as columns; None if it lacks entries. Times are steps in ns from the entry before."""
    if _entries is None:
        return None
    handles = {}
    steps, last = [], 0
    for entry in _entries:
        steps.append(entry.time - last)
        last = entry.time
    return {
        "kinds": "".join(entry.kind.decode() for entry in _entries),
        "times": steps,
        "threads": [entry.thread for entry in _entries],
        "streams": [handles.setdefault(entry.stream, len(handles)) for entry in _entries],
        "values": [entry.value for entry in _entries],
        "ranks": [[row, entry.ranks, hex(entry.address)] for row, entry in enumerate(_entries) if entry.ranks],
        "pauses": _pauses,
    }

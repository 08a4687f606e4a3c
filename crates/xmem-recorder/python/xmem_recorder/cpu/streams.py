"""The stream that is selected on each thread. Changes on the recorded thread are marked."""

import threading

from ..recording import run

# Streams of one priority that PyTorch hands out in turn (c10/cuda/CUDAStream.cpp, `kStreamsPerPool`).
PER_PRIORITY = 32

_selected = threading.local()
_made = {}


def number(priority):
    """Returns the number of a new stream; 0 is the default stream."""
    priority = -1 if priority < 0 else 0
    count = _made.get(priority, 0)
    _made[priority] = count + 1
    return 1 + count % PER_PRIORITY + (PER_PRIORITY if priority else 0)


def current():
    """Returns the number of the stream that is selected on this thread."""
    return getattr(_selected, "stream", 0)


def select(stream):
    """Selects a stream on this thread."""
    if stream != current():
        _selected.stream = stream
        run.mark_stream(stream)

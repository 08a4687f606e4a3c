"""The calls that were redirected to the CPU, counted for the metadata."""

# The name of a process group of NCCL.
NCCL = "process group of NCCL"

# What was called, by its name in the metadata.
_times = {}


def count(what):
    """Counts a call."""
    _times[what] = _times.get(what, 0) + 1


def has(what):
    """Returns whether such a call was redirected."""
    return what in _times


def facts():
    """What was redirected, and how often."""
    return [{"what": what, "times": times} for what, times in _times.items()]

"""The script's own profilers are disabled: only one can run, and it is the recorder's."""

import sys
import warnings

from . import session
from .virtual import library


class Inactive:
    """A profiler that does nothing and has no events."""

    def __init__(self, *_args, **_kwargs):
        session.note("the script's own profiler is disabled: only one profiler can run")

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        return None

    def __iter__(self):
        return iter(())

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_args, **_kwargs: Inactive.__new__(Inactive)

    def __str__(self):
        return ""


_real = []


def install(torch):
    """Replaces the profilers, and keeps the real ones for the recorder."""
    _real.extend([torch.profiler.profile, torch.autograd.profiler.profile])
    torch.profiler.profile = Inactive
    torch.autograd.profiler.profile = Inactive
    torch.autograd.profiler.emit_nvtx = Inactive


def start(torch, stacks):
    """Starts torch's profiler on this thread."""
    options = {
        "activities": [torch.profiler.ProfilerActivity.CPU],
        "profile_memory": True,
        "record_shapes": True,
        "with_stack": stacks,
    }
    # The events are exported before a second cycle can clear them. (`acc_events=True` also silences
    # this, but stopping then takes seconds.)
    warnings.filterwarnings("ignore", message=".*Profiler clears events")
    profiler = _real[0](**options)
    # The profiler is made of the older one.
    torch.autograd.profiler.profile = _real[1]
    try:
        profiler.start()
    finally:
        torch.autograd.profiler.profile = Inactive
    if stacks:
        library.drop_calls_of_c()
    return profiler


def stop(profiler):
    """Stops the profiler on this thread."""
    # The tracer ends only a profile function that is its own (torch/csrc/autograd/profiler_python.cpp,
    # `PythonTracer::stop`).
    sys.setprofile(None)
    profiler.stop()

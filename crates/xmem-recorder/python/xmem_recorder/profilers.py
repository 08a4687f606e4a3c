"""The script's own profilers step aside: only one can run, and it is the recorder's."""

import warnings

from . import session


class Silent:
    """Takes the place of a profiler: does nothing, and has seen nothing."""

    def __init__(self, *_args, **_kwargs):
        session.note("the script's own profiler records nothing: the recorder's runs")

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        return None

    def __iter__(self):
        return iter(())

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_args, **_kwargs: Silent.__new__(Silent)

    def __str__(self):
        return ""


_real = []


def install(torch):
    """Replaces the profilers; the recorder takes the real ones from here."""
    _real.extend([torch.profiler.profile, torch.autograd.profiler.profile])
    torch.profiler.profile = Silent
    torch.autograd.profiler.profile = Silent
    torch.autograd.profiler.emit_nvtx = Silent


def start(torch, stacks):
    """Starts torch's profiler on this thread."""
    options = {
        "activities": [torch.profiler.ProfilerActivity.CPU],
        "profile_memory": True,
        "record_shapes": True,
        "with_stack": stacks,
    }
    # They are exported before a second cycle could clear them. (`acc_events=True` would silence this
    # as well, and make stopping take seconds.)
    warnings.filterwarnings("ignore", message=".*Profiler clears events")
    profiler = _real[0](**options)
    # It is made of the older one.
    torch.autograd.profiler.profile = _real[1]
    try:
        profiler.start()
    finally:
        torch.autograd.profiler.profile = Silent
    return profiler

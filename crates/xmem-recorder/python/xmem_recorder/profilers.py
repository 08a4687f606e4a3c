"""The script's own profilers are disabled: only one can run, and it is the recorder's."""

import gzip
import sys
import warnings

from . import compiler, engine, errors, session, stacks
from .virtual import calls, library

# Actions of a schedule in which a trace is recorded, and the one after which it is ready.
RECORD = "RECORD"
RECORD_AND_SAVE = "RECORD_AND_SAVE"


class Inactive:
    """A profiler that does nothing and has no events. It follows the schedule of the script, and calls what the script wants
    called with a trace, which may take memory (torch/profiler/profiler.py, `profile`)."""

    _schedule = _on_trace_ready = None
    _steps = 0
    _runs = False

    def __init__(self, *_args, schedule=None, on_trace_ready=None, **_kwargs):
        session.note("the script's own profiler is disabled: only one profiler can run")
        self._schedule = schedule
        self._on_trace_ready = on_trace_ready

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_exception):
        self.stop()

    def start(self):
        self._runs = True

    def stop(self):
        if self._runs and self._action() in (RECORD, RECORD_AND_SAVE):
            self._be_ready()
        self._runs = False

    def step(self):
        was_saved = self._action() == RECORD_AND_SAVE
        self._steps += 1
        if self._runs and was_saved:
            self._be_ready()

    def _action(self):
        action = self._schedule(self._steps) if callable(self._schedule) else None
        return RECORD if action is None else action.name

    def _be_ready(self):
        if not callable(self._on_trace_ready):
            return
        try:
            self._on_trace_ready(self)
        except Exception as error:
            session.note(f"what the script does with its profiler's trace failed, which is empty: {errors.describe(error)}")

    def export_chrome_trace(self, path, *_args, **_kwargs):
        """Writes a trace without events: the script may read the file."""
        text = b'{"traceEvents": []}\n'
        with open(path, "wb") as file:
            file.write(gzip.compress(text) if str(path).endswith(".gz") else text)

    def export_stacks(self, path, *_args, **_kwargs):
        with open(path, "wb"):
            pass

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __bool__(self):
        return True

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


def start(torch, with_stacks):
    """Starts torch's profiler on this thread."""
    options = {
        "activities": [torch.profiler.ProfilerActivity.CPU],
        "profile_memory": True,
        "record_shapes": True,
        "with_stack": with_stacks,
    }
    # The events are exported before a second cycle can clear them. (`acc_events=True` also silences
    # this, but stopping then takes seconds.)
    warnings.filterwarnings("ignore", message=".*Profiler clears events")
    profiler = _real[0](**options)
    is_read = calls.reader(torch) if with_stacks and engine.is_virtual() else None
    # The profiler is made of the older one.
    older = _real[1]
    # The lines of the script are taken from the events on the CPU.
    torch.autograd.profiler.profile = older if with_stacks and not engine.is_virtual() else _of_traces_alone(older)
    try:
        with compiler.unseen(torch):
            profiler.start()
    finally:
        torch.autograd.profiler.profile = Inactive
    if is_read is not None:
        library.drop_calls(is_read)
    if with_stacks:
        stacks.leave_out_imports()
    return profiler


def _of_traces_alone(profile):
    """A profiler that can export a trace and has no events, which takes less memory (torch 2.14 and later). torch refuses
    this with stacks: then operators have no "Call stack", which nothing reads."""

    class OfTracesAlone(profile):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            settings = getattr(self, "experimental_config", None)
            if hasattr(settings, "trace_only"):
                settings.trace_only = True

    return OfTracesAlone


def stop(profiler):
    """Stops the profiler on this thread."""
    # The tracer ends only a profile function that is its own (torch/csrc/autograd/profiler_python.cpp,
    # `PythonTracer::stop`).
    sys.setprofile(None)
    stacks.see_imports()
    profiler.stop()

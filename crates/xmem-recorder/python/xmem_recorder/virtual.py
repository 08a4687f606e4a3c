"""Records on a virtual GPU: PyTorch's CUDA build runs as it is, and no kernel computes.

Nothing is redirected. The parts that are installed count iterations, disable other profilers, keep
known values, and save the host's memory.
"""

import atexit
import contextlib

from . import (
    activity,
    autocast,
    checkpoints,
    cuda,
    distributed,
    engine,
    errors,
    history,
    hostmemory,
    objects,
    outside,
    profilers,
    recorder,
    replicas,
    session,
    values,
    weights,
)
from .patching import replace
from .ranks import place, process

# By device.
_peaks = {}

# Peaks of `torch.cuda.memory_stats()`, by their names in the metadata.
PEAKS = {
    "allocated": "allocated_bytes.all.peak",
    "reserved": "reserved_bytes.all.peak",
    "active": "active_bytes.all.peak",
    "requested": "requested_bytes.all.peak",
}


def install(torch):
    """Installs all parts: once, right after the import of torch."""
    import importlib

    for name in ("torch.cuda.amp", "torch.optim", "torch.profiler", "torch.amp"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    outside.install()
    profilers.install(torch)
    replicas.install()
    autocast.watch(torch)
    values.install(torch)
    history.install(torch)
    weights.install(torch)
    checkpoints.install(torch)
    distributed.ignore_differences(torch)
    process.install(torch)
    if place.wanted() is None:
        objects.install(torch)
    atexit.register(_finish_backward_passes, torch)
    _begin_with_the_device(torch)
    _keep_peaks(torch)
    if session.settings().get("run_ahead"):
        _wait_at_queries(torch)
    cuda.watch_memory_fraction(torch)


def _finish_backward_passes(torch):
    """Waits until the thread of each GPU has let go of the backward passes that it computed.

    A pass may own Python objects, such as what FSDP1 calls at its end (`queue_callback` in
    torch/csrc/autograd/python_engine.cpp), and its thread drops them some time after `backward` has returned. If the
    interpreter ends in between, CPython ends the thread inside a destructor, and the process aborts
    (Python/ceval_gil.h, `take_gil`). A thread begins another pass only when it has dropped the last one.

    The last pass owns no such object: it returns no tensor, and is without the context that `backward` gives to each
    (torch/autograd/graph.py, `_engine_run_backward`).
    """
    if not torch.cuda.is_initialized():
        return
    run_backward = torch.autograd.Variable._execution_engine.run_backward
    with contextlib.suppress(Exception), torch.enable_grad():
        for device in range(torch.cuda.device_count()):
            if torch.cuda.memory_reserved(device):
                leaf = torch.zeros(1, device=f"cuda:{device}", requires_grad=True)
                run_backward((leaf,), (torch.ones_like(leaf),), False, False, (), True, True)


def _begin_with_the_device(torch):
    """Begins the recording before the first use of the device."""

    def lazy_init(original):
        def initialize():
            recorder.begin()
            result = original()
            if recorder.is_recording():
                history.start()
                activity.start()
            return result

        return initialize

    replace(torch.cuda, "_lazy_init", lazy_init)


def _wait_at_queries(torch):
    """Scripts that ask until work is complete wait for it; PyTorch's own questions come from C++."""

    def query(_original):
        def wait(self):
            self.synchronize()
            return True

        return wait

    replace(torch.cuda.Event, "query", query)
    replace(torch.cuda.Stream, "query", query)


def _keep_peaks(torch):
    """Keeps the peaks that the script resets."""

    def reset(original):
        def reset_peaks(*args, **kwargs):
            _read_peaks(torch)
            return original(*args, **kwargs)

        return reset_peaks

    for name in ("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached"):
        replace(torch.cuda.memory, name, reset)
        if hasattr(torch.cuda, name):
            setattr(torch.cuda, name, getattr(torch.cuda.memory, name))


def _read_peaks(torch):
    if not torch.cuda.is_initialized():
        return
    for device in range(torch.cuda.device_count()):
        stats = torch.cuda.memory_stats(device)
        peaks = _peaks.setdefault(device, {})
        for name, key in PEAKS.items():
            peaks[name] = max(peaks.get(name, 0), stats.get(key, 0))


def _peaks_of_fullest():
    """The peaks of the device with most memory."""
    return dict(max(_peaks.values(), key=lambda peaks: peaks.get("reserved", 0), default={}))


def _note_limits(log):
    """Tells the user what the virtual GPU could not do."""
    texts = {}
    for kind, text in log:
        texts.setdefault(kind, []).append(text)
    for text in texts.get("cudnn", []):
        session.note(f"cuDNN: {text}")
    if "size" in texts:
        session.note(f"workspaces that are not known without a GPU count as empty: {', '.join(texts['size'])}")
    if "estimate" in texts:
        session.note(f"workspaces that are estimated without a GPU: {', '.join(texts['estimate'])}")
    if "call" in texts:
        calls = [text.split(" ")[0] for text in texts["call"]]
        session.note(f"calls that the virtual GPU does not have: {', '.join(calls)}")


def allocator_history():
    """The history of the allocator, for the metadata; None if there is none."""
    try:
        records = activity.of_the_allocator()
        found = history.facts(records)
        return None if found is None else {**found, "activity": activity.facts()}
    except Exception as error:
        session.note(f"the trace lacks the history of the allocator: {errors.describe(error)}")
        return None


def facts(torch):
    """What the metadata says about the device and its memory, in bytes."""
    with contextlib.suppress(Exception):
        _read_peaks(torch)
    outside.measure(torch)
    log = engine.log()
    _note_limits(log)
    return {
        "device": session.settings()["device"]["key"],
        "peaks": _peaks_of_fullest(),
        "outside": outside.fact(),
        "compiles": values.compiles(),
        "reads": values.facts(),
        "assumed": values.assumed(),
        "other_peaks": session.settings().get("other_peaks"),
        "run_ahead_peaks": session.settings().get("run_ahead_peaks"),
        "log": [{"kind": kind, "text": text} for kind, text in log],
        "skipped_initializations": hostmemory.skipped(),
    }

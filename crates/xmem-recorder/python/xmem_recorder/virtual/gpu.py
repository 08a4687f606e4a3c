"""Prepares PyTorch's CUDA build for a recording on a virtual GPU. Nothing is redirected."""

import atexit
import contextlib
import importlib

from .. import profilers, session
from ..facts import memory_fraction, precision
from ..patching import replace
from ..ranks import place, process
from ..recording import allocators, begin, run
from ..weights import mapping
from . import activity, autotuning, checkpoints, extensions, history, nccl, objects, outside, peaks, values


def install(torch):
    """Installs all parts: once, right after the import of torch."""
    for name in ("torch.cuda.amp", "torch.optim", "torch.profiler", "torch.amp"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    outside.install()
    profilers.install(torch)
    precision.watch_autocast(torch)
    precision.watch_scalers(torch)
    values.install(torch)
    history.install(torch)
    allocators.leave_out(torch)
    mapping.install(torch)
    checkpoints.install(torch)
    extensions.install(torch)
    autotuning.install()
    nccl.install(torch)
    process.install(torch)
    if place.wanted() is None:
        objects.install(torch)
    atexit.register(_finish_backward_passes, torch)
    _begin_with_the_device(torch)
    peaks.install(torch)
    if session.settings().get("run_ahead"):
        _wait_at_queries(torch)
    memory_fraction.watch(torch)


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
            begin.begin()
            result = original()
            if run.is_recording():
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

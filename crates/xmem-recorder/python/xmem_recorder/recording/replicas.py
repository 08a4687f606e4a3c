"""`DataParallel`: its replicas run one after another, in the thread of the program.

PyTorch gives each replica a thread (torch/nn/parallel/parallel_apply.py), in which the profiler sees nothing. Each has a
GPU of its own, so that the order among them makes no difference to the memory of any.
"""

import sys
import threading

MODULE = "torch.nn.parallel.parallel_apply"


class _Turn:
    """Stands for `threading.Thread`: runs its target when it is started."""

    def __init__(self, group=None, target=None, name=None, args=(), kwargs=None, *, daemon=None):
        self._call = target, args, kwargs or {}

    def start(self):
        target, args, kwargs = self._call
        target(*args, **kwargs)

    def join(self, timeout=None):
        pass


class _Threading:
    """The module `threading` for `parallel_apply`."""

    Thread = _Turn

    def __getattr__(self, name):
        return getattr(threading, name)


def install():
    """Once torch is imported."""
    module = sys.modules.get(MODULE)
    if module is not None and getattr(module, "threading", None) is threading:
        module.threading = _Threading()

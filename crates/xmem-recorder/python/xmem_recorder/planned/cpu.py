"""The allocator of the CPU.

An iteration ends with the steps of the optimizers. Where none steps, the job infers, and an iteration begins with each call of
a module from outside all others, in which no gradients are computed.
"""

import threading

from .. import session
from ..recording import steps
from . import plans

LIBRARY = "libxmem-planned-cpu.so"
# The library of PyTorch that allocates.
ALLOCATING = "libc10.so"

_calls = threading.local()


def install(torch):
    """Has PyTorch's allocator of the CPU call the library."""
    library = plans.open_library(torch, LIBRARY)
    if library.xmem_plan_install(ALLOCATING.encode()):
        session.note("this build of PyTorch allocates memory of the CPU in another way: no plan is followed")
        return
    plans.open_prepared()
    _mark_calls(torch)


def _mark_calls(torch):
    module = torch.nn.Module
    original = module._call_impl
    is_traced = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)

    def call_impl(self, *args, **kwargs):
        if is_traced() or torch.is_grad_enabled() or getattr(_calls, "are_inside", False):
            return original(self, *args, **kwargs)
        if not steps.are_counted():
            plans.mark()
        _calls.are_inside = True
        try:
            return original(self, *args, **kwargs)
        finally:
            _calls.are_inside = False

    module._call_impl = call_impl

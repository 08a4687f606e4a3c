"""Allocators that a script puts in place of CUDA's caching allocator (`torch.cuda.memory.CUDAPluggableAllocator`).

They are left out: neither the profiler nor the allocator's history sees what they do
(torch/csrc/cuda/CUDAPluggableAllocator.cpp, `recordHistory`), and the answer is about the caching allocator.
"""

from .. import session
from ..patching import answer, replace


def leave_out(torch):
    """Leaves them out, unless the program only runs."""
    if session.purpose() != session.RUN:
        answer([torch.cuda, torch.cuda.memory], "change_current_allocator", _left_out)


def make_up(torch):
    """Lets a build without CUDA make them; what they have is never called."""
    for name in ("_CUDAAllocator", "CUDAPluggableAllocator"):
        kind = getattr(torch.cuda.memory, name, None)
        if kind is not None:
            replace(kind, "__init__", lambda _original: _without_library)


def _without_library(self, *_args, **_kwargs):
    self._allocator = None


def _left_out(_allocator):
    session.note(
        "the script's own allocator (change_current_allocator) is left out: the recording is of PyTorch's caching allocator"
    )

"""Attention: which of CUDA's kernels a script allows."""

import contextlib

from . import session


def install(torch):
    """The CPU has not all of CUDA's kernels: a choice among them would be an error there."""
    attention = getattr(torch.nn, "attention", None)
    for owner, name in ((attention, "sdpa_kernel"), (torch.backends.cuda, "sdp_kernel")):
        if hasattr(owner, name):
            setattr(owner, name, _kernels(name))


def _kernels(name):
    @contextlib.contextmanager
    def allow(*_args, **_kwargs):
        session.note(f"{name}: the kernel that PyTorch chooses by itself is taken")
        yield {}

    return allow

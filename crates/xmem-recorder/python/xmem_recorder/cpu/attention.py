"""Attention: the script's choice among CUDA's kernels."""

import contextlib

from .. import session


def install(torch):
    """Ignores the choice, which would be an error on the CPU: it lacks some of CUDA's kernels."""
    attention = getattr(torch.nn, "attention", None)
    for owner, name in ((attention, "sdpa_kernel"), (torch.backends.cuda, "sdp_kernel")):
        if hasattr(owner, name):
            setattr(owner, name, _kernels(name))


def _kernels(name):
    @contextlib.contextmanager
    def allow(*_args, **_kwargs):
        session.note(f"{name}: ignored; PyTorch's default choice of the kernel is recorded")
        yield {}

    return allow

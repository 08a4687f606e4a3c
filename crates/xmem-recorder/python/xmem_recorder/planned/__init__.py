"""A static memory plan that is followed while the job runs: the allocator of `xmem run --plan` in place of PyTorch's.

- `plans`: the library, the plans of this process, and the ends of iterations;
- `gpu`: the allocator of the GPU;
- `cpu`: that of the CPU.
"""

from .. import session


def install(torch):
    """Makes the library the allocator of the job, before its first use."""
    if session.settings()["plan"]["memory"] == "cpu":
        from . import cpu

        cpu.install(torch)
    else:
        from . import gpu

        gpu.install(torch)

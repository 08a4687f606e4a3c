"""Puts the CPU behind CUDA's interface, part by part."""

import importlib

from . import (
    accelerator,
    attention,
    autocast,
    compilation,
    cuda,
    distributed,
    factories,
    loading,
    optimizers,
    placement,
    profilers,
    recorder,
    tensors,
)

# Not every version of torch imports all of these by itself.
NEEDED = (
    "torch.cuda.amp",
    "torch.fft",
    "torch.jit",
    "torch.nested",
    "torch.nn.parallel",
    "torch.optim",
    "torch.profiler",
    "torch.utils._device",
    "torch.utils.data",
)


def install(torch):
    """Redirects everything, once, just after torch was imported."""
    for name in NEEDED:
        importlib.import_module(name)
    placement.install(torch, recorder)
    factories.install(torch)
    tensors.install(torch)
    cuda.install(torch)
    accelerator.install(torch)
    attention.install(torch)
    autocast.install(torch)
    loading.install(torch)
    optimizers.install(torch)
    compilation.install(torch)
    distributed.install(torch)
    profilers.install(torch)

"""Redirects CUDA's interface to the CPU, part by part."""

import importlib

from .. import profilers
from ..ranks import process
from . import (
    accelerator,
    attention,
    autocast,
    cuda,
    distributed,
    eager,
    factories,
    host_optimizers,
    loading,
    optimizer_options,
    placement,
    places,
    tensor_types,
    tensors,
)

# Modules that some versions of torch do not import themselves.
REQUIRED = (
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
    """Redirects all parts: once, right after the import of torch."""
    for name in REQUIRED:
        importlib.import_module(name)
    places.install(torch)
    placement.install(torch)
    factories.install(torch)
    tensor_types.install(torch)
    tensors.install(torch)
    cuda.install(torch)
    accelerator.install(torch)
    attention.install(torch)
    autocast.install(torch)
    loading.install(torch)
    optimizer_options.install(torch)
    host_optimizers.install(torch)
    eager.install(torch)
    distributed.install(torch)
    process.install(torch)
    profilers.install(torch)

"""Optimizers of DeepSpeed that it compiles before their first use, which takes `nvcc` and minutes.

Their kernels allocate nothing and would write to tensors that they are given, and nothing is computed on a virtual GPU,
so functions that do nothing take their place. The states of the optimizers are tensors that Python code makes.
"""

import types

from .. import imports
from ..patching import replace
from . import written

# Functions that DeepSpeed's builders load, by the name of the operator (deepspeed/ops/csrc, `PYBIND11_MODULE`).
FUNCTIONS = {
    "fused_adam": ("multi_tensor_adam",),
    "fused_lion": ("multi_tensor_lion",),
    "cpu_adam": ("create_adam", "adam_update", "adam_update_copy", "adam_rollback", "destroy_adam"),
    "cpu_lion": ("create_lion", "lion_update", "lion_update_copy", "destroy_lion"),
    "cpu_adagrad": ("create_adagrad", "adagrad_update", "adagrad_update_copy", "destroy_adagrad"),
}


def install(torch):
    """Watches the import of DeepSpeed's builders (deepspeed/ops/op_builder/builder.py)."""
    imports.watch("deepspeed.ops.op_builder.builder", lambda module: _imported(torch, module))


def _imported(torch, module):
    replace(module.OpBuilder, "load", _load)
    replace(module, "installed_cuda_version", lambda original: _version_of_nvcc(torch, original))


def _version_of_nvcc(torch, original):
    """Some releases ask it while they are imported, and end without a compiler: that of PyTorch's CUDA."""

    def version(*args, **kwargs):
        try:
            return original(*args, **kwargs)
        except Exception:
            return tuple(int(part) for part in torch.version.cuda.split(".")[:2])

    return version


def _load(original):
    def load(self, *args, **kwargs):
        names = FUNCTIONS.get(getattr(self, "name", None))
        if names is None:
            return original(self, *args, **kwargs)
        return types.SimpleNamespace(**dict.fromkeys(names, _write))

    return load


def _write(*args):
    for value in args:
        written.forget(value)

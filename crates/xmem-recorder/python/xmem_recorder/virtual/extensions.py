"""Extensions that a script would compile, and releases of `nvcc` that it asks for.

DeepSpeed compiles optimizers before their first use, which takes `nvcc` and minutes. Their kernels allocate nothing and would
write to tensors that they are given, and nothing is computed on a virtual GPU, so functions that do nothing take their
place. The states of the optimizers are tensors that Python code makes. Megatron-LM asks for the release, and compiles
nothing with it.
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
    """Watches the import of DeepSpeed's builders (deepspeed/ops/op_builder/builder.py) and of Megatron-LM's kernels
    (megatron/legacy/fused_kernels/__init__.py)."""
    version = torch.version.cuda.split(".")[:2]
    integers = tuple(int(part) for part in version)

    def deepspeed_imported(module):
        replace(module.OpBuilder, "load", _load)
        # Some releases ask for it while they are imported.
        replace(module, "installed_cuda_version", _without_compiler(integers))

    def megatron_imported(module):
        replace(module, "_get_cuda_bare_metal_version", _without_compiler(("", *version)))

    imports.watch("deepspeed.ops.op_builder.builder", deepspeed_imported)
    imports.watch("megatron.legacy.fused_kernels", megatron_imported)


def _without_compiler(answer):
    """A wrapper of a function that asks `nvcc` for its release: without a compiler, that of PyTorch's CUDA."""

    def wrapper(original):
        def version(*args, **kwargs):
            try:
                return original(*args, **kwargs)
            except Exception:
                return answer

        return version

    return wrapper


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

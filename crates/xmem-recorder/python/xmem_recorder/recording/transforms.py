"""Transforms of `torch.func` (`vmap`, `grad`, `jvp`), in which no operators are recorded, only their memory.

With shapes, the profiler has a weak reference to every tensor that an operator takes (torch/csrc/profiler/collection.h,
`WeakTensor`). One that a transform has wrapped holds the tensor inside it for as long, as its release leaves that alone
(aten/src/ATen/functorch/TensorWrapper.h, BatchedTensorImpl.h): memory that the script has given up would stay.
"""

import contextlib

from .. import imports, operators
from ..patching import replace


def install():
    """Wraps what begins a level of a transform."""
    levels = {
        "torch._functorch.eager_transforms": ("grad_increment_nesting", "jvp_increment_nesting"),
        "torch._functorch.vmap": ("vmap_increment_nesting",),
    }
    for module, names in levels.items():
        imports.watch(module, lambda module, names=names: [replace(module, name, _unrecorded) for name in names])


def _unrecorded(original):
    @contextlib.contextmanager
    def level(*args, **kwargs):
        operators.pause()
        try:
            with original(*args, **kwargs) as result:
                yield result
        finally:
            operators.go_on()

    return level

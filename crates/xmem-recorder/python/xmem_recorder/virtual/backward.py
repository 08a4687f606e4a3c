"""Backward passes: what Python code computes in them, and their first gradients.

`Tensor.backward` is a function that a mode sees, and torch calls it without the mode (torch/overrides.py,
`handle_torch_function`). Hooks, functions of `torch.autograd.Function` and layers that are computed again would run without
it, too.
"""

import functools

from ..patching import replace


def install(torch, mode):
    """Lets a mode see what backward passes call."""

    def wrapped(original):
        @functools.wraps(original)
        def call(*args, **kwargs):
            return _seen(torch, mode, lambda: original(*args, **kwargs))

        return call

    for name in ("_make_grads", "_engine_run_backward"):
        replace(torch.autograd, name, wrapped)


def _seen(torch, mode, function):
    overrides = torch.overrides
    if mode in overrides._get_current_function_mode_stack():
        return function()
    overrides._push_mode(mode)
    try:
        return function()
    finally:
        overrides._pop_mode()

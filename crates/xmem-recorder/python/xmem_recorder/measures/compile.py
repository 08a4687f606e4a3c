"""The model is compiled by torch.compile, which fuses operations and computes some activations again.

Steps become faster after the first, which takes a minute or more. Dropout draws other random numbers.
"""

import weakref

from .common import after_step, first_line, is_training, name_of, try_forward, watch_forwards

NAME = "compile"
TITLE = "torch.compile"
CHANGES = "rounding"
NEEDS = ""
OPTION = ""
CODE = "model.compile()"


def install(torch, option, report):
    """Compiles each outermost module at its first training forward."""
    if not hasattr(torch.nn.Module, "compile"):
        return report(0, "this release of PyTorch cannot compile modules in place")
    _Compile(torch, report)


class _Compile:
    """Modules that cannot be compiled run as they are."""

    def __init__(self, torch, report):
        self.torch = torch
        self.report = report
        self.names = []
        self.seen = weakref.WeakSet()
        self.steps = 0
        self.stop_watching = watch_forwards(torch, self._forward)
        self.stop_counting = after_step(torch, self._stepped)

    def _forward(self, module, forward, args, kwargs):
        if module in self.seen or not is_training(self.torch, module):
            return forward(*args, **kwargs)
        self.seen.add(module)
        name = name_of(module)
        if any(_is_compiled(inner) for inner in module.modules()):
            self.report(0, f"{name} is compiled already")
            return forward(*args, **kwargs)
        module.compile()

        def without(error):
            module._compiled_call_impl = None
            self.report(0, f"{name} cannot be compiled: {first_line(error)}")
            return forward(*args, **kwargs)

        outputs, error = try_forward(self.torch, module, lambda: forward(*args, **kwargs), without)
        if error is None:
            self.names.append(name)
            self.report(len(self.names), ", ".join(self.names))
        return outputs

    def _stepped(self, _optimizer):
        # Models may be trained in turns.
        self.steps += 1
        if self.steps == 3:
            self.stop_watching()
            self.stop_counting()


def _is_compiled(module):
    return type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None

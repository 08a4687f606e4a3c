"""Parameters, and with them gradients and the state of optimizers, are stored in bfloat16 instead of float32.

Takes less time. Small updates of parameters are lost in rounding, so training should be checked.
"""

import weakref

from .common import first_line, map_tensors, name_of, to_float32, try_forward, watch_forwards, wrap

NAME = "bfloat16"
TITLE = "Parameters in bfloat16"
CHANGES = "training"
NEEDS = ""
OPTION = ""
CODE = "model.to(torch.bfloat16)"


def install(torch, option, report):
    """Converts each outermost module before its first forward, or before it is wrapped for several processes."""
    _Bfloat16(torch, report)


class _Bfloat16:
    """Tensors are replaced inside the parameters, which optimizers have already."""

    def __init__(self, torch, report):
        self.torch = torch
        self.report = report
        self.names = []
        self.converted = weakref.WeakSet()
        self.left = weakref.WeakSet()
        watch_forwards(torch, self._forward)
        wrap(torch.nn.parallel.DistributedDataParallel, "__init__", self._wrap_module)

    def _forward(self, module, forward, args, kwargs):
        if module in self.left:
            return forward(*args, **kwargs)

        def in_bfloat16():
            inputs, named = map_tensors(self.torch, self._to_bfloat16, (args, kwargs))
            return to_float32(self.torch, forward(*inputs, **named))

        if module in self.converted:
            return in_bfloat16()
        reason = self._reason(module)
        if reason:
            return self._leave(module, reason, forward, args, kwargs)
        # Until the first forward has shown that the model can be run so, the original values are kept on the host.
        originals = self._convert(module, keep=True)

        def without(error):
            for tensor, data in originals:
                tensor.data = data.to(tensor.device)
            reason = f"{name_of(module)} fails in bfloat16: {first_line(error)}"
            return self._leave(module, reason, forward, args, kwargs)

        return try_forward(self.torch, module, in_bfloat16, without)[0]

    def _leave(self, module, reason, forward, args, kwargs):
        self.left.add(module)
        self.converted.discard(module)
        self.report(0, reason)
        return forward(*args, **kwargs)

    def _reason(self, module):
        """Why a module is left as it is."""
        name = type(module).__name__
        if name in ("FullyShardedDataParallel", "DistributedDataParallel"):
            inner = next(module.children())
            if inner in self.converted:
                return ""
            return f"the parameters are in buffers of {name}"
        if any(inner in self.converted for inner in module.modules()):
            return ""
        if not any(parameter.dtype == self.torch.float32 for parameter in module.parameters()):
            return f"the parameters are {next(module.parameters()).dtype} already"
        return ""

    def _wrap_module(self, original):
        def init(wrapper, module, *args, **kwargs):
            if not self._reason(module):
                self._convert(module, keep=False)
            return original(wrapper, module, *args, **kwargs)

        return init

    def _convert(self, module, keep):
        """Converts a module; returns its parameters and buffers with their original values."""
        torch = self.torch
        originals = []
        for tensor in [*module.parameters(), *module.buffers()]:
            if tensor.dtype == torch.float32 and not torch.nn.parameter.is_lazy(tensor):
                if keep:
                    originals.append((tensor, tensor.data.to("cpu", copy=True)))
                tensor.data = tensor.data.to(torch.bfloat16)
        self.converted.add(module)
        name = name_of(module)
        if name not in self.names:
            self.names.append(name)
            self.report(len(self.names), "parameters of " + ", ".join(self.names))
        return originals

    def _to_bfloat16(self, tensor):
        return tensor.to(self.torch.bfloat16) if tensor.is_floating_point() else tensor

"""Forward passes run under autocast to bfloat16: matrix products in 16 bits, sensitive operations in 32 bits.

Takes less time on GPUs with tensor cores.
"""

from .common import device_type_of, first_line, name_of, to_float32, try_forward, watch_forwards

NAME = "autocast"
TITLE = "Mixed precision (bfloat16)"
CHANGES = "rounding"
NEEDS = ""
OPTION = ""
EXCLUDES = "bfloat16"
CODE = "with torch.autocast('cuda', torch.bfloat16): loss = loss_function(model(x), y)"


def install(torch, option, report):
    """Runs the outermost forwards, also those of evaluation, under autocast."""
    _Autocast(torch, report)


class _Autocast:
    """As accelerate does: outputs are converted to float32, as the script computes its loss outside."""

    def __init__(self, torch, report):
        self.torch = torch
        self.report = report
        self.names = []
        self.stop_watching = watch_forwards(torch, self._forward)
        self.is_off = False

    def _forward(self, module, forward, args, kwargs):
        device_type = device_type_of(module)
        if not self.is_off and self.names == []:
            self._check(module, device_type)
        if self.is_off:
            return forward(*args, **kwargs)

        def under_autocast():
            with self.torch.autocast(device_type, self.torch.bfloat16):
                return forward(*args, **kwargs)

        name = name_of(module)
        if name in self.names:
            return to_float32(self.torch, under_autocast())
        return self._first_forward(module, name, under_autocast, lambda error: forward(*args, **kwargs))

    def _first_forward(self, module, name, under_autocast, without):
        """A forward that shows whether the model uses autocast itself, or cannot be run under it."""
        with _AutocastUses(self.torch) as uses:
            outputs, error = try_forward(self.torch, module, under_autocast, without)
        if error is not None:
            self._turn_off(f"{name} fails under autocast: {first_line(error)}")
            return outputs
        if uses.count > 1:
            self._turn_off(f"{name} uses autocast already")
        else:
            self.names.append(name)
            self.report(len(self.names), "forward of " + ", ".join(self.names))
        return to_float32(self.torch, outputs)

    def _check(self, module, device_type):
        torch = self.torch
        is_on = torch.is_autocast_cpu_enabled() if device_type == "cpu" else torch.is_autocast_enabled()
        if is_on:
            self._turn_off("autocast is on already")
        elif not any(parameter.dtype == torch.float32 for parameter in module.parameters()):
            self._turn_off(f"the parameters are {next(module.parameters()).dtype} already")

    def _turn_off(self, reason):
        self.is_off = True
        self.stop_watching()
        self.report(0, reason)


class _AutocastUses:
    """Counts the times that autocast is switched on meanwhile."""

    def __init__(self, torch):
        self.kind = torch.autocast
        self.count = 0

    def __enter__(self):
        self.enter = self.kind.__enter__

        def enter(context):
            # `_enabled` (torch/amp/autocast_mode.py) is False where a script switches it off for some operations.
            self.count += bool(getattr(context, "_enabled", True))
            return self.enter(context)

        self.kind.__enter__ = enter
        return self

    def __exit__(self, *_):
        self.kind.__enter__ = self.enter

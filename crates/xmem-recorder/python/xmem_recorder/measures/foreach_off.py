"""Optimizers and gradient clipping work parameter by parameter, without temporary copies of all gradients at once.

Steps of models with many small parameters become slower, as each parameter needs kernels of its own.
"""

from .common import Tally, has_option, optimizer_classes, wrap_clipping, wrap_constructors

NAME = "foreach-off"
TITLE = "Optimizer parameter by parameter"
CHANGES = "rounding"
NEEDS = ""
OPTION = ""
CODE = "optimizer = Optimizer(model.parameters(), foreach=False)"


def install(torch, option, report):
    """Passes `foreach=False` to the constructors that have it and to the clipping functions."""
    tally = Tally(report)

    def construct_without_foreach(optimizer, arguments, construct):
        reason = _foreach_is_kept(arguments)
        if reason:
            report(0, reason)
            return construct()
        construct(foreach=False)
        tally.add(type(optimizer).__name__)

    wrap_constructors([kind for kind in optimizer_classes(torch) if has_option(kind, "foreach")],
                      construct_without_foreach)
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        wrap_clipping(torch, name, _foreach_off_clipping)


def _foreach_is_kept(arguments):
    """Why an optimizer is left as it is."""
    if arguments.get("fused"):
        return "the optimizer is fused"
    if arguments.get("foreach") is not None:
        return f"the script asks for foreach={arguments['foreach']}"
    return ""


def _foreach_off_clipping(original):
    def clip(parameters, *args, **kwargs):
        # `foreach` is the last of the arguments, and is seldom given by position.
        if len(args) < 4 and kwargs.get("foreach") is None:
            kwargs["foreach"] = False
        try:
            return original(parameters, *args, **kwargs)
        except TypeError:
            # Given by position, or unknown to an older release.
            kwargs.pop("foreach", None)
            return original(parameters, *args, **kwargs)

    return clip

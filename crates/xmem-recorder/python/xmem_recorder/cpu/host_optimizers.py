"""Optimizers of parameters that the script keeps on the host: what their steps make is the host's."""

from ..patching import wrap_steps
from . import placement, places


def install(torch):
    """Wraps the step of optimizers."""
    wrap_steps(torch, _stepping)


def _stepping(step):
    def stepping(self, *args, **kwargs):
        if not _is_on_host(self):
            return step(self, *args, **kwargs)
        with placement.all_on_host():
            return step(self, *args, **kwargs)

    return stepping


def _is_on_host(optimizer):
    """Returns whether all parameters are certainly the host's."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return bool(parameters) and all(places.known(parameter) == places.HOST for parameter in parameters)

"""Optimizers of parameters that the script keeps on the host: what their steps make is the host's."""

from . import placement, places


def install(torch):
    """Wraps the step of optimizers."""
    optimizer = torch.optim.Optimizer
    hook = optimizer.profile_hook_step

    def profile_hook_step(function):
        inner = hook(function)

        def step(self, *args, **kwargs):
            if not _is_on_host(self):
                return inner(self, *args, **kwargs)
            with placement.all_on_host():
                return inner(self, *args, **kwargs)

        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(step, name, getattr(function, name, None))
        step.__wrapped__ = function
        return step

    optimizer.profile_hook_step = staticmethod(profile_hook_step)


def _is_on_host(optimizer):
    """Returns whether all parameters are certainly the host's."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return bool(parameters) and all(places.known(parameter) == places.HOST for parameter in parameters)

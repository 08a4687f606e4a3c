"""Optimizers with options that only CUDA supports."""

import weakref

from ..patching import replace
from . import redirected

_requested = weakref.WeakKeyDictionary()


def install(torch):
    """Wraps the constructors, which may have the options `fused` and `capturable`."""
    for name in dir(torch.optim):
        kind = getattr(torch.optim, name)
        if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer):
            if kind is not torch.optim.Optimizer:
                replace(kind, "__init__", _init)


def requested(optimizer):
    """The arguments of the script that were removed for the CPU."""
    return _requested.get(optimizer, {})


def _init(original):
    def init(self, *args, **kwargs):
        wanted = {}
        if kwargs.get("capturable"):
            wanted["capturable"] = True
            kwargs["capturable"] = False
            redirected.count("optimizer with capturable=True")
        if kwargs.get("fused"):
            args, kwargs = _reusable(args, kwargs)
        try:
            original(self, *args, **kwargs)
        except RuntimeError:
            if not kwargs.get("fused"):
                raise
            # The CPU has fused kernels since 2.4.
            wanted["fused"] = True
            redirected.count("optimizer with fused=True")
            original(self, *args, **{**kwargs, "fused": None})
        if wanted:
            _requested.setdefault(self, {}).update(wanted)

    return init


def _reusable(args, kwargs):
    """The arguments with the parameters as a list, which can be iterated twice."""
    if args:
        return (list(args[0]), *args[1:]), kwargs
    return args, {**kwargs, "params": list(kwargs["params"])}

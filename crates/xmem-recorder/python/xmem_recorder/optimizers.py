"""Optimizers that ask for what only CUDA has."""

import weakref

from . import session
from .patching import replace

_asked = weakref.WeakKeyDictionary()


def install(torch):
    """Wraps the constructors that know `fused` or `capturable`."""
    for name in dir(torch.optim):
        kind = getattr(torch.optim, name)
        if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer):
            if kind is not torch.optim.Optimizer:
                replace(kind, "__init__", _init)


def asked(optimizer):
    """The arguments that the script gave and that the CPU did not get."""
    return _asked.get(optimizer, {})


def _init(original):
    def init(self, *args, **kwargs):
        wanted = {}
        if kwargs.get("capturable"):
            wanted["capturable"] = True
            kwargs["capturable"] = False
            session.count("optimizer with capturable=True")
        if kwargs.get("fused"):
            args, kwargs = _kept(args, kwargs)
        try:
            original(self, *args, **kwargs)
        except RuntimeError:
            if not kwargs.get("fused"):
                raise
            # The CPU has had fused kernels since 2.4.
            wanted["fused"] = True
            session.count("optimizer with fused=True")
            original(self, *args, **{**kwargs, "fused": None})
        if wanted:
            _asked.setdefault(self, {}).update(wanted)

    return init


def _kept(args, kwargs):
    """The arguments with parameters that can be looked through twice."""
    if args:
        return (list(args[0]), *args[1:]), kwargs
    return args, {**kwargs, "params": list(kwargs["params"])}

"""`torch.compile` without compiling: models and functions run eagerly."""

import functools
import weakref

from .. import session

# Names in the metadata.
MAX_NAMES = 20

_models = weakref.WeakSet()
_functions = {}


def install(torch):
    """Replaces the compiler by a function that returns the model.

    Libraries compile functions while they are imported, and scripts models that they may not call: only what runs
    makes the recording differ from the job."""

    def compile(model=None, **_options):
        if model is None:
            return lambda model: compile(model)
        if isinstance(model, torch.nn.Module):
            _models.add(model)
            return model
        if not callable(model) or isinstance(model, type):
            return model
        return _noted(model)

    if hasattr(torch, "compile"):
        torch.compile = compile
    if hasattr(torch.nn.Module, "compile"):

        def compile_module(self, *_args, **_options):
            compile(self)

        torch.nn.Module.compile = compile_module


def ran(models):
    """The names of functions and of modules in `models` that the script compiles and that ran: eagerly here."""
    found = dict(_functions)
    if _models:
        for model in models:
            for module in model.modules():
                if module in _models:
                    found[type(module).__qualname__] = True
    if found:
        session.note(
            "torch.compile: recorded eagerly; compiled for the GPU, the job may need more or less memory"
            " (--virtual-gpu records it compiled)"
        )
    return list(found)[:MAX_NAMES]


def _noted(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        if len(_functions) < MAX_NAMES:
            _functions[getattr(function, "__qualname__", type(function).__qualname__)] = True
        return function(*args, **kwargs)

    return call

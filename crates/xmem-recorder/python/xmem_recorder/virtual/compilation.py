"""The first compilation of the script on a virtual GPU: the compiler would see calls that keep values."""

import functools

from ..imports import inside_import
from ..patching import replace

_stop = None
_began = False


def began():
    """Returns whether the script compiles."""
    return _began


def install(torch, stop):
    """Wraps the compiler; `stop()` is called before each compilation."""
    global _stop
    _stop = stop

    def watched(original):
        def compile(model=None, **options):
            if model is None:
                return lambda model: compile(model, **options)
            if isinstance(model, torch.nn.Module) or not inside_import():
                _begin()
                return original(model, **options)
            return _begins_when_called(original(model, **options))

        return compile

    def watched_method(original):
        def compile(self, *args, **kwargs):
            _begin()
            return original(self, *args, **kwargs)

        return compile

    replace(torch, "compile", watched)
    replace(torch.nn.Module, "compile", watched_method)


def _begins_when_called(compiled):
    """A function that a library compiles while it is imported, and that may never be called."""

    @functools.wraps(compiled)
    def call(*args, **kwargs):
        _begin()
        return compiled(*args, **kwargs)

    return call


def _begin():
    global _began
    _began = True
    _stop()

"""Compiled code on a virtual GPU, in which no values are kept: the compiler would see the calls that keep them."""

import contextlib
import functools

from .. import imports
from ..patching import replace

# Modules in which backward graphs are compiled when they first run, by releases of PyTorch.
LATE = ("torch._functorch._aot_autograd.runtime_wrappers", "torch._functorch.aot_autograd")

_begun = None
_pause = contextlib.nullcontext
_began = False


def began():
    """Returns whether the script compiles."""
    return _began


def install(torch, begun, pause):
    """Wraps the compiler; `begun()` is called before the first compilation, and no values are kept within `pause()`."""
    global _begun, _pause
    _begun, _pause = begun, pause

    def watched(original):
        def compile(model=None, **options):
            if model is None:
                return lambda model: compile(model, **options)
            # Libraries compile functions while they are imported, which may never be called.
            if isinstance(model, torch.nn.Module) or not imports.inside_import():
                _begin()
            compiled = original(model, **options)
            return compiled if isinstance(compiled, torch.nn.Module) else _paused(compiled)

        return compile

    replace(torch, "compile", watched)
    imports.watch("torch._dynamo.eval_frame", _compiler_imported)
    for name in LATE:
        imports.watch(name, lambda module: replace(module, "track_graph_compiling", _paused_context))


def _compiler_imported(module):
    """Watches compiled modules, copies of which get their `forward` anew (`OptimizedModule.__setstate__`)."""

    def initializing(original):
        def initialize(self, *args, **kwargs):
            original(self, *args, **kwargs)
            object.__setattr__(self, "forward", _paused(self.forward))

        return initialize

    kind = module.OptimizedModule
    replace(kind, "_initialize" if hasattr(kind, "_initialize") else "__init__", initializing)


def _paused(compiled):
    @functools.wraps(compiled)
    def call(*args, **kwargs):
        _begin()
        with _pause():
            return compiled(*args, **kwargs)

    return call


def _paused_context(original):
    @contextlib.contextmanager
    def context(*args, **kwargs):
        with _pause(), original(*args, **kwargs):
            yield

    return context


def _begin():
    global _began
    if not _began:
        _began = True
        _begun()

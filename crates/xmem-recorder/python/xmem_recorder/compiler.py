"""torch's compiler is imported when a script compiles, and not by its first optimizer step.

Every optimizer imports `torch._dynamo` in its first step, to say that it is not to be compiled
(torch/optim/optimizer.py, `_use_grad_for_differentiable`; torch/_compile.py). The import takes 1.7 s, 150 MiB and
100,000 Python calls. Where one of these two files asks for it, it gets a module that does what they need, and that
becomes the real one at the first use of anything else.
"""

import contextlib
import importlib
import os
import sys
import types

from . import imports

NAME = "torch._dynamo"
# The files that use no more than `disable` and `graph_break`.
ASKS = (os.path.join("torch", "optim", "optimizer.py"), os.path.join("torch", "_compile.py"))

# The files in which modules are found: Python's own and the recorder's.
FINDERS = ("<frozen importlib", "torch/xmem_recorder/")


class _Deferred(types.ModuleType):
    """Stands for the compiler until it is needed."""

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module {NAME!r} has no attribute {name!r}")
        return getattr(load(), name)

    @staticmethod
    def graph_break(*_args, **_kwargs):
        """Ends a graph: none is being made."""

    @staticmethod
    def disable(function, *args, **kwargs):
        """Keeps a function out of graphs, once the compiler is there."""
        _state.disabled[id(function)] = function, args, kwargs
        return function


class _State:
    """Whether the compiler is deferred, and what it is to do when it is imported."""

    def __init__(self):
        self.stand_in = None
        # Functions that are not to be compiled, by their ids, with the other arguments of `disable`.
        self.disabled = {}
        # Whether anything else was asked of it.
        self.is_needed = False


_state = _State()


class _Finder:
    """Finds the stand-in where one of the two files asks."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != NAME or _state.is_needed or not _asked_by_those():
            return None
        spec = imports.find_behind(_Finder, name, path, target)
        if spec is not None:
            spec.loader = _Loader
        return spec


class _Loader:
    @staticmethod
    def create_module(spec):
        _state.stand_in = _Deferred(spec.name)
        return _state.stand_in

    @staticmethod
    def exec_module(module):
        pass


def defer():
    """Begins, before torch is imported."""
    sys.meta_path.insert(0, _Finder)
    sys.addaudithook(_when_a_part_is_imported)


def load():
    """Imports the compiler, in the place of the stand-in; returns it."""
    stand_in, _state.stand_in = _state.stand_in, None
    _state.is_needed = True
    parent = sys.modules.get("torch")
    if stand_in is not None and sys.modules.get(NAME) is stand_in:
        del sys.modules[NAME]
    if stand_in is not None and vars(parent).get("_dynamo") is stand_in:
        del parent._dynamo
    module = importlib.import_module(NAME)
    disabled, _state.disabled = _state.disabled, {}
    for function, args, kwargs in disabled.values():
        # Where torch/_compile.py looks for it.
        function.__dynamo_disable = module.disable(function, *args, **kwargs)
    return module


@contextlib.contextmanager
def unseen(torch):
    """Hides the compiler's second half from what looks whether it is there, and imports it by that: torch's profiler
    (torch/profiler/profiler.py, `prepare_trace`)."""
    lazily = vars(torch).get("__getattr__")
    if lazily is None or "torch._inductor" in sys.modules:
        yield
        return

    def without(name):
        if name == "_inductor":
            raise AttributeError(name)
        return lazily(name)

    torch.__getattr__ = without
    try:
        yield
    finally:
        torch.__getattr__ = lazily


def _asked_by_those():
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(FINDERS):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.endswith(ASKS)


def _when_a_part_is_imported(event, args):
    """Imports the compiler before one of its parts, which would else be imported twice."""
    if event == "import" and _state.stand_in is not None and str(args[0]).startswith(NAME + "."):
        load()

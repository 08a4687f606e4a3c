"""Calls of models from outside all other modules."""

import threading
import weakref


class _Calls:
    """What was called on the recorded thread; counts are by the id of a module."""

    def __init__(self):
        self.counts = {}
        # Of these, calls without gradients.
        self.without_gradients = {}
        # The modules, by weak references, in the order of their first calls.
        self.models = []
        # The shapes of the tensors in the arguments of one call, if possible of a model that is trained.
        self.batch = None


_calls = _Calls()
_depth = threading.local()


def depth():
    """The number of modules that are being called on this thread; 1 if they are not counted."""
    return getattr(_depth, "value", 0)


def set_depth(value):
    """Sets that number."""
    _depth.value = value


def inside_module():
    """Returns whether a module is being called on this thread."""
    return depth() > 0


def count(module):
    """The number of calls of a module."""
    return _calls.counts.get(id(module), 0)


def without_gradients(module):
    """The number of those without gradients."""
    return _calls.without_gradients.get(id(module), 0)


def most():
    """The number of calls of the module with most of them."""
    return max(_calls.counts.values(), default=0)


def are_counted():
    """Returns whether a module was called."""
    return bool(_calls.counts)


def add_model(module):
    """Adds a module that is called for the first time; returns the number of models."""
    _calls.models.append(weakref.ref(module))
    return len(_calls.models)


def add(module):
    """Counts a call."""
    _calls.counts[id(module)] = count(module) + 1


def add_without_gradients(module):
    """Notes that the next call is one without gradients."""
    _calls.without_gradients[id(module)] = without_gradients(module) + 1


def add_batch(shapes, module):
    """Keeps the shapes of the arguments of a call; those of a module that is trained replace others."""
    if shapes and (_calls.batch is None or module.training):
        _calls.batch = shapes


def batch():
    """The shapes that were kept; None if there are none."""
    return _calls.batch


def models():
    """The models that were called and still exist."""
    return [model() for model in _calls.models if model() is not None]

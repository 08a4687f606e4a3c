"""Imports are left out of the Python stacks that torch's profiler records: a library that is imported while it runs makes
up to a million calls, and each takes 1.5 KB.

The profiler's function is called by the interpreter for each call and return. It is stored in the state of the thread
(CPython, Include/cpython/pystate.h: `c_profilefunc`, `c_tracefunc`, `c_profileobj`, `c_traceobj`), at a place that differs
among releases of Python and is found by its object, which `sys.getprofile()` returns.
"""

import contextlib
import ctypes
import sys

from . import imports

# The state begins with about twenty words before the place.
WORDS = 40


class _Finder:
    """Finds modules as the finders behind it do, and runs them without the profiler."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if _tracer() is None or _Finder not in sys.meta_path:
            return None
        spec = imports.find_behind(_Finder, name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(imports.Loader):
    """Executes a module without the profiler."""

    def run(self, module):
        with _paused():
            self.loader.exec_module(module)


def leave_out_imports():
    """Begins."""
    sys.meta_path.insert(0, _Finder)


def see_imports():
    """Ends."""
    if _Finder in sys.meta_path:
        sys.meta_path.remove(_Finder)


def _tracer():
    """torch's tracer, if it runs on this thread."""
    tracer = sys.getprofile()
    return None if callable(tracer) else tracer


@contextlib.contextmanager
def _paused():
    """Leaves out what this thread calls. The profiler sees the begin of the call that stops it and the end of the call that
    starts it again, and takes both for one call."""
    tracer = _tracer()
    function = _function_of(tracer)
    if function is None:
        yield
        return
    switch = ctypes.pythonapi.PyEval_SetProfile
    switch.argtypes, switch.restype = (ctypes.c_void_p, ctypes.py_object), None
    switch(None, None)
    try:
        yield
    finally:
        switch(function, tracer)


def _function_of(tracer):
    """The address of the profiler's function on this thread; None if it is not found."""
    if tracer is None:
        return None
    words = ctypes.cast(thread_state(), ctypes.POINTER(ctypes.c_void_p))
    return next((words[at - 2] for at in range(2, WORDS) if words[at] == id(tracer)), None)


def thread_state():
    """The address of the interpreter's state of this thread."""
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    return ctypes.c_void_p(get())

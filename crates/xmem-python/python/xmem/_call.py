"""The script that calls a function in a separate process. `xmem.record` runs it with the path of a pickle."""

from __future__ import annotations

import importlib
import os
import pickle
import runpy
import sys
import types
from typing import Any, Callable, Dict, Mapping, Optional, Sequence

__all__ = ["ENVIRONMENT", "NAME", "describe", "is_child"]

NAME = "__mp_main__"
"""The name of the script of the calling process here, as in multiprocessing: not `__main__`, so that its guard holds."""

ENVIRONMENT = "XMEM_CALLED"
"""The variable that is set in such a process."""


def is_child() -> bool:
    """Return whether this process was started to call a function."""
    return ENVIRONMENT in os.environ


def describe(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
    """Return a call as a pickle. Raises `TypeError` with what to do, if another process could not make it."""
    shown = getattr(function, "__qualname__", repr(function))
    if getattr(function, "__module__", None) == "__main__":
        _main(shown)
    try:
        call = pickle.dumps((function, tuple(args), dict(kwargs)))
    except Exception as error:
        raise TypeError(
            f"`{shown}` and its arguments cannot be passed to another process ({error}): give a function at the top "
            "of a module, or a script"
        ) from error
    # What the function is given may be of the script as well.
    main = _main(shown) if b"__main__" in call else None
    paths = [os.path.abspath(path) if path == "" else path for path in sys.path]
    return pickle.dumps({"paths": paths, "argv": sys.argv, "main": main, "call": call})


def _main(shown: str) -> Dict[str, Optional[str]]:
    """Return the script of this process, as `_restore` loads it. Raises `TypeError` in a session, which has none."""
    module = sys.modules["__main__"]
    path = getattr(module, "__file__", None)
    spec = getattr(module, "__spec__", None)
    if path is None or not os.path.isfile(path):
        raise TypeError(
            f"`{shown}` or what it is given was defined in a session, where another process cannot import it: write it to "
            "a module, or use the cell magic %%xmem"
        )
    return {"path": os.path.abspath(path), "module": spec.name if spec is not None else None}


def _restore(main: Mapping[str, Optional[str]]) -> None:
    """Load the script of the calling process, which defines the function, under another name than `__main__`."""
    if main["module"] is not None:
        loaded = runpy.run_module(main["module"], run_name=NAME, alter_sys=True)
    else:
        loaded = runpy.run_path(str(main["path"]), run_name=NAME)
    module = types.ModuleType(NAME)
    module.__dict__.update(loaded)
    sys.modules["__main__"] = sys.modules[NAME] = module


def _call(path: str) -> None:
    with open(path, "rb") as file:
        told = pickle.load(file)
    # The folder of this file must not hide modules of the job.
    sys.path[:] = told["paths"]
    sys.argv[:] = told["argv"]
    importlib.invalidate_caches()
    if told["main"] is not None:
        _restore(told["main"])
    function, args, kwargs = pickle.loads(told["call"])
    function(*args, **kwargs)


if __name__ == "__main__":
    _call(sys.argv[1])

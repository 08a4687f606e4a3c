"""The engine of this process: the CPU, or a virtual GPU.

For a virtual GPU, `xmem profile` prepares libraries that stand for CUDA's; they are loaded before torch
(`virtual.library`).
"""

import json
import os
import sys
import time

from . import session
from .virtual import library

CPU = "cpu"
VIRTUAL_GPU = "virtual-gpu"

# Folders of each kind in the question to `xmem profile`.
MAX_FOLDERS = 8
# Longest wait for the answer of `xmem profile`, in seconds.
ANSWER_TIMEOUT = 120


class _Choice:
    """The choice of the engine, made once in each process."""

    def __init__(self):
        # None until torch is found.
        self.engine = None
        self.answer = None
        self.error = None
        self.has_no_kernels = False


_choice = _Choice()


def chosen():
    """The engine of this process; the CPU until torch is found."""
    return _choice.engine or CPU


def answer():
    """The answer of `xmem profile` to this process; None if it was not asked."""
    return _choice.answer


def is_virtual():
    """Returns whether the engine of this process is a virtual GPU."""
    return _choice.engine == VIRTUAL_GPU


def error():
    """The reason why the requested engine is unavailable; None if it is available."""
    return _choice.error


def has_no_kernels():
    """Returns whether that reason is that PyTorch has no kernels for the device."""
    return _choice.has_no_kernels


def choose(spec):
    """Chooses the engine when torch is found, before it is loaded; `spec` is its module spec."""
    if _choice.engine is not None:
        return
    _choice.engine = session.settings().get("engine", CPU)
    if _choice.engine == CPU:
        return
    if not spec.origin or not spec.submodule_search_locations:
        _choice.engine = CPU
        return
    answer = session.settings().get("answer") or _ask(os.path.dirname(os.path.realpath(spec.origin)))
    _choice.answer = answer
    for text in answer.get("notes", ()):
        session.note(text)
    _choice.engine = answer.get("engine", CPU)
    _choice.error = answer.get("error")
    _choice.has_no_kernels = bool(answer.get("no_kernels"))
    if _choice.error is None and is_virtual():
        _load(answer)


def _ask(folder):
    """Asks `xmem profile` for the engine with torch in `folder`."""
    path = os.path.join(session.folder(), f"engine-{os.getpid()}.json")
    session.send("engine", path=folder, packages=_packages(folder), libraries=_libraries_of_cuda())
    deadline = time.monotonic() + ANSWER_TIMEOUT
    while time.monotonic() < deadline:
        try:
            with open(path, encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            time.sleep(0.002)
    return {"engine": CPU, "error": f"no answer from xmem within {ANSWER_TIMEOUT} s"}


def _packages(folder):
    """The folders of packages that have some of NVIDIA's, that of torch first."""
    found = [os.path.dirname(folder)]
    for path in sys.path:
        if path not in found and os.path.isdir(os.path.join(path, "nvidia")):
            found.append(path)
    return found[:MAX_FOLDERS]


def _libraries_of_cuda():
    """Folders with libraries: the environment's, the search path's, the toolkit's."""
    found = [os.path.join(sys.prefix, "lib")]
    found += filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            found.append(os.path.join(os.environ[name], "lib64"))
    return found[:MAX_FOLDERS]


def _load(answer):
    os.environ.update(answer.get("variables", {}))
    for name in answer.get("removed", ()):
        os.environ.pop(name, None)
    try:
        library.load(answer["libraries"], answer.get("log"))
    except OSError as failure:
        _choice.error = f"its libraries cannot be loaded: {failure}"

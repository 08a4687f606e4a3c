"""The engine of this process: the CPU, or a virtual GPU.

For a virtual GPU, `xmem profile` prepares libraries that stand for CUDA's. They are loaded before torch:
the dynamic loader takes a library that is loaded already for every later one of the same name (SONAME).
"""

import ctypes
import json
import os
import sys
import time

from . import session

CPU = "cpu"
VIRTUAL_GPU = "virtual-gpu"

# Folders of each kind in the question to `xmem profile`, and entries of the log in the metadata.
MAX_FOLDERS = 8
MAX_LOGGED = 100
MAX_COMMUNICATORS = 4096
# Longest wait for the answer of `xmem profile`, in seconds.
ANSWER_TIMEOUT = 120

_chosen = None
_error = None
_no_kernels = False
_libraries = []
_log = None


def chosen():
    """The engine of this process; the CPU until torch is found."""
    return _chosen or CPU


def error():
    """The reason why the requested engine cannot be had; None if it can."""
    return _error


def has_no_kernels():
    """Whether that reason is that PyTorch has no kernels for the device."""
    return _no_kernels


def log():
    """What the libraries of the virtual GPU could not do: pairs of a kind and a text, each once.

    Kinds are `call` (a function that is not implemented, with the status that it returned), `size` (a function
    whose size is not known), `estimate` (one whose size is estimated), `cudnn` and `error` (the reason).
    """
    if _log is None:
        return []
    try:
        with open(_log, encoding="utf-8", errors="replace") as file:
            lines = sorted({line.rstrip("\n") for line in file})
    except OSError:
        return []
    return [tuple(line.split(" ", 1)) for line in lines if " " in line][:MAX_LOGGED]


def choose(spec):
    """Chooses the engine when torch is found, before it is loaded; `spec` is its module spec."""
    global _chosen, _error, _no_kernels
    if _chosen is not None:
        return
    _chosen = session.settings().get("engine", CPU)
    if _chosen == CPU:
        return
    if not spec.origin or not spec.submodule_search_locations:
        _chosen = CPU
        return
    answer = _ask(os.path.dirname(os.path.realpath(spec.origin)))
    for text in answer.get("notes", ()):
        session.note(text)
    _chosen = answer.get("engine", CPU)
    _error = answer.get("error")
    _no_kernels = bool(answer.get("no_kernels"))
    if _error is None and _chosen == VIRTUAL_GPU:
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


def drop_calls_of_c():
    """Leaves calls of functions written in C out of the Python stacks of this thread, which torch's profiler
    records: nothing reads them, and each takes 1.5 KB of memory."""
    if not _libraries or not hasattr(_libraries[0], "vgpu_drop_c_calls"):
        return
    state = ctypes.pythonapi.PyThreadState_Get
    state.restype = ctypes.c_void_p
    tracer = sys.getprofile()
    _libraries[0].vgpu_drop_c_calls(ctypes.c_void_p(state()), ctypes.c_void_p(id(tracer)))


def communicators():
    """The numbers of ranks of the communicators of NCCL in this process; None without a virtual GPU."""
    if not _libraries or not hasattr(_libraries[0], "vgpu_communicators"):
        return None
    sizes = (ctypes.c_int * MAX_COMMUNICATORS)()
    count = _libraries[0].vgpu_communicators(sizes, MAX_COMMUNICATORS)
    return sorted(sizes[: min(count, MAX_COMMUNICATORS)], reverse=True)


def size_of_split(ranks):
    """Tells NCCL's stand-in the number of ranks of the communicator that is split next; 0 if it is not known."""
    if _libraries and hasattr(_libraries[0], "vgpu_size_of_split"):
        _libraries[0].vgpu_size_of_split(ranks)


def log_activity(on):
    """Switches the log of what streams are told."""
    if _libraries and hasattr(_libraries[0], "vgpu_log_activity"):
        _libraries[0].vgpu_log_activity(on)


def activity(entry):
    """The entries of that log as an array of `entry`, a ctypes structure; None if some are missing."""
    if not _libraries or not hasattr(_libraries[0], "vgpu_activity"):
        return None
    read = _libraries[0].vgpu_activity
    read.restype = ctypes.c_long
    entries = ctypes.POINTER(entry)()
    count = read(ctypes.byref(entries))
    return None if count < 0 else entries[:count]


def function(name):
    """A function of the stand-ins for CUDA's libraries; None if there is none."""
    return getattr(_libraries[0], f"vgpu_{name}", None) if _libraries else None


def end_iteration():
    """Tells the virtual GPU that an iteration has ended."""
    if _libraries and hasattr(_libraries[0], "vgpu_iteration"):
        _libraries[0].vgpu_iteration()


def _load(answer):
    global _error, _log
    _log = answer.get("log")
    os.environ.update(answer.get("variables", {}))
    for name in answer.get("removed", ()):
        os.environ.pop(name, None)
    try:
        for path in answer["libraries"]:
            _libraries.append(ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL))
    except OSError as failure:
        _error = f"its libraries cannot be loaded: {failure}"
        return
    # For processes that the script starts without the hook, such as the workers of torch's compiler.
    before = os.environ.get("LD_PRELOAD")
    preloaded = answer["libraries"] + ([before] if before else [])
    os.environ["LD_PRELOAD"] = ":".join(preloaded)

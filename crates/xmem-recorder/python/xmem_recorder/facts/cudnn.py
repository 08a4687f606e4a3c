"""`torch.backends.cudnn` as the iterations of the script saw it, and the cuDNN library of its environment."""

import os
import re
import sys

# Whether `benchmark` was on when a model was called; None before the first call.
_benchmarks = None


def sample(torch):
    """Notes the switches at the call of a model: scripts set them before and after their imports, and
    some around a part of their loop."""
    global _benchmarks
    _benchmarks = bool(_benchmarks) or bool(torch.backends.cudnn.benchmark)


def benchmarks(torch):
    """Whether convolutions were benchmarked at any call of a model, or are now if none was called."""
    return bool(torch.backends.cudnn.benchmark) if _benchmarks is None else _benchmarks


def benchmark_limit(torch):
    """The number of plans that are timed; None where the script leaves PyTorch's default.

    PyTorch's CPU build keeps what the script assigns and has no default
    (torch/backends/cudnn/__init__.py)."""
    limit = getattr(torch.backends.cudnn, "benchmark_limit", None)
    return limit if isinstance(limit, int) and not isinstance(limit, bool) else None


def library(torch):
    """The path and the release of the cuDNN that PyTorch would load: from NVIDIA's package, else from PyTorch's
    own folder or the environment's; None if there is none. Nothing is loaded."""
    for folder in _folders(torch):
        for number in (9, 8):
            path = os.path.join(folder, f"libcudnn.so.{number}")
            if os.path.isfile(path):
                return {"library": _without_home(os.path.realpath(path)), "release": _release(folder, path)}
    return None


def _without_home(path):
    """A path below the user's home as `~/…`, so that the trace does not have the name of the user."""
    home = os.path.realpath(os.path.expanduser("~"))
    return "~" + path[len(home) :] if home != "/" and path.startswith(home + os.sep) else path


def _folders(torch):
    own = os.path.dirname(os.path.realpath(torch.__file__))
    for packages in [os.path.dirname(own), *sys.path]:
        yield os.path.join(packages, "nvidia", "cudnn", "lib")
    yield os.path.join(own, "lib")
    yield os.path.join(sys.prefix, "lib")


def _release(folder, path):
    """The release (`9.19.0`), from the header of the package, else from the name of the file."""
    try:
        header = os.path.join(os.path.dirname(folder), "include", "cudnn_version.h")
        with open(header, encoding="utf-8", errors="replace") as file:
            found = dict(re.findall(r"#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) (\d+)", file.read()))
        return "{MAJOR}.{MINOR}.{PATCHLEVEL}".format(**found)
    except (OSError, KeyError):
        named = re.search(r"libcudnn\.so\.(\d+\.\d+\.\d+)", os.path.realpath(path))
        return named and named[1]

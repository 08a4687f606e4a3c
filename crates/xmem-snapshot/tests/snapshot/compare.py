"""Compares a snapshot that PyTorch recorded with the copy that xmem-snapshot wrote of it.

Prints `same`, or fails with the first difference. What PyTorch's own _memory_viz.py says about the
two is compared if that file is found: at XMEM_MEMORY_VIZ, or in an installed PyTorch.
"""

import importlib.util
import os
import pickle
import sys


# What these say when there is nothing to say, which is not written.
SILENT = {"compile_context": "N/A", "user_metadata": ""}


def differences(original, copy, path):
    """Places where the two differ."""
    if type(original) is not type(copy):
        yield f"{path}: {type(original)} became {type(copy)}"
    elif isinstance(original, dict):
        told = {key for key in original if key not in SILENT or original[key] != SILENT[key]}
        if told != copy.keys():
            yield f"{path}: keys {sorted(original)} became {sorted(copy)}"
        for key in original.keys() & copy.keys():
            yield from differences(original[key], copy[key], f"{path}[{key!r}]")
    elif isinstance(original, (list, tuple)):
        if len(original) != len(copy):
            yield f"{path}: {len(original)} elements became {len(copy)}"
        for i, (a, b) in enumerate(zip(original, copy)):
            yield from differences(a, b, f"{path}[{i}]")
    elif original != copy:
        yield f"{path}: {original!r} became {copy!r}"


def memory_viz():
    """PyTorch's module, which needs nothing of PyTorch."""
    path = os.environ.get("XMEM_MEMORY_VIZ")
    if not path:
        torch = importlib.util.find_spec("torch")
        if not torch or not torch.origin:
            return None
        path = os.path.join(os.path.dirname(torch.origin), "cuda", "_memory_viz.py")
    spec = importlib.util.spec_from_file_location("memory_viz", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    with open(sys.argv[1], "rb") as original, open(sys.argv[2], "rb") as copy:
        original, copy = pickle.load(original), pickle.load(copy)
    for difference in differences(original, copy, "snapshot"):
        sys.exit(difference)
    viz = memory_viz()
    if viz:
        views = {
            "segsum": viz.segsum,
            "trace": viz.trace,
            # Without format_flamegraph, which downloads a script.
            "segments": lambda snapshot: viz.segments(snapshot, format_flamegraph=str),
            "memory": lambda snapshot: viz.memory(snapshot, format_flamegraph=str),
        }
        for name, view in views.items():
            said = view(original)
            if not said:
                sys.exit(f"{name} says nothing")
            if said != view(copy):
                sys.exit(f"{name} says something else about the copy")
    else:
        print("without _memory_viz.py: set XMEM_MEMORY_VIZ to its path", file=sys.stderr)
    print("same")


main()

"""Opens a snapshot with Python's own pickle and replays its trace.

Prints the peaks as JSON. PyTorch's own _memory_viz.py has to find something to show too, if that file
is found: at XMEM_MEMORY_VIZ, or in an installed PyTorch.
"""

import importlib.util
import json
import os
import pickle
import sys


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


def peaks(trace):
    """The largest sums of what was asked for and of segments; the trace begins with nothing."""
    held, requested, reserved = {}, [0], [0]
    for entry in trace:
        action, size = entry["action"], entry.get("size")
        assert entry["frames"], entry
        if action == "alloc":
            assert entry["addr"] not in held, entry
            held[entry["addr"]] = size
            requested.append(requested[-1] + size)
        elif action == "free_completed":
            requested.append(requested[-1] - held.pop(entry["addr"]))
        elif action in ("segment_alloc", "segment_map"):
            reserved.append(reserved[-1] + size)
        elif action in ("segment_free", "segment_unmap"):
            reserved.append(reserved[-1] - size)
        elif action == "oom":
            assert entry["device_free"] >= 0 and "addr" not in entry, entry
        else:
            assert action == "free_requested", entry
    return {"requested_peak": max(requested), "reserved_peak": max(reserved)}


def main():
    with open(sys.argv[1], "rb") as file:
        snapshot = pickle.load(file)
    (trace,) = snapshot["device_traces"]
    stages = [annotation["stage"] for annotation in snapshot["external_annotations"]]
    assert stages and stages.count("START") == stages.count("END"), stages
    viz = memory_viz()
    if viz:
        for view in (
            viz.segsum,
            viz.trace,
            viz.trace_plot,
            viz.segment_plot,
            # Without format_flamegraph, which downloads a script.
            lambda snapshot: viz.segments(snapshot, format_flamegraph=str),
            lambda snapshot: viz.memory(snapshot, format_flamegraph=str),
        ):
            assert view(snapshot), view
        assert "role: parameter" in viz.memory(snapshot, format_flamegraph=str)
    else:
        print("without _memory_viz.py: set XMEM_MEMORY_VIZ to its path", file=sys.stderr)
    print(json.dumps(peaks(trace)))


main()

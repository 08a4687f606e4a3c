"""Runs a script as it is, and writes the peaks that PyTorch counted when it ends.

    python count.py PEAKS.json STEPS SCRIPT [ARGUMENT...]

A script that would run for hours is ended as `xmem profile` ends it: by SystemExit, after every optimizer has made
STEPS steps; 0 lets it run to its end. Nothing else of the run is touched, and no tensor is made here.
"""

import atexit
import json
import os
import runpy
import sys


def main():
    peaks, steps, script = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    owner = os.getpid()

    def write():
        torch = sys.modules.get("torch")
        # Forked processes of data loaders inherit this function.
        if os.getpid() != owner or torch is None or not torch.cuda.is_initialized():
            return
        found = {
            "allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved(),
            "torch": torch.__version__,
        }
        with open(peaks, "w") as file:
            json.dump(found, file)

    atexit.register(write)
    if steps:
        stop_after(steps)
    sys.argv = sys.argv[3:]
    # As Python does for a script that is named on the command line.
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")


def stop_after(steps):
    from torch.optim.optimizer import register_optimizer_step_post_hook

    made = {}

    def count(optimizer, *_):
        made[id(optimizer)] = made.get(id(optimizer), 0) + 1
        if min(made.values()) >= steps:
            sys.exit(0)

    register_optimizer_step_post_hook(count)


if __name__ == "__main__":
    main()

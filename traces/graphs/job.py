"""The job of a recorded case, as `record.py` runs it, on CUDA and without a profiler:

    job.py NAME

or of one of the networks:

    job.py networks/NAME

`xmem export -o NAME.pt2 -- python job.py NAME` writes its graph.
"""

import os
import runpy
import shlex
import sys
from pathlib import Path

TRACES = Path(__file__).resolve().parent.parent


def run_case(name):
    import torch

    sys.path.insert(0, str(TRACES))
    import record

    text = (TRACES / name / "meta.toml").read_text()
    command = next(line for line in text.splitlines() if line.startswith("command = "))
    # A string of TOML with no escape but that of quotes.
    arguments = shlex.split(command.partition("= ")[2].strip('"').replace('\\"', '"'))
    options = record.parser().parse_args(arguments[1:])
    os.chdir(TRACES.parent)
    torch.manual_seed(0)
    record.import_lazily_loaded_modules(options)
    record.run_job(options, torch.device("cuda"), lambda _: None, lambda: None)


def main(name):
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    if name.startswith("networks/"):
        names = runpy.run_path(str(TRACES / "networks" / "train.py"))
        names["main"](name.partition("/")[2])
    else:
        run_case(name)


if __name__ == "__main__":
    main(sys.argv[1])

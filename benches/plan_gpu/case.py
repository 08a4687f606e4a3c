"""Runs a recorded job of `traces` on a GPU: case.py NAME ITERATIONS. Prints the peaks that PyTorch counts."""

import json
import shlex
import sys
import tomllib
import warnings
from pathlib import Path

TRACES = Path(__file__).resolve().parents[2] / "traces"
sys.path.insert(0, str(TRACES))

import record  # noqa: E402


def main() -> None:
    warnings.filterwarnings("ignore")
    name, iterations = sys.argv[1:]
    command = tomllib.loads((TRACES / name / "meta.toml").read_text())["command"]
    options = record.parser().parse_args(shlex.split(command)[1:])
    options.iterations = int(iterations)
    if options.job:
        options.job = str(TRACES.parent / options.job)

    import torch

    # PyTorch 2.6 cannot import it where the device is "meta".
    import torch._dynamo

    record.import_lazily_loaded_modules(options)
    torch.manual_seed(0)
    record.run_job(options, torch.device("cuda"), lambda _: None, lambda: None)
    memory = torch.cuda.memory
    print(json.dumps({"allocated": memory.max_memory_allocated(), "reserved": memory.max_memory_reserved()}))


if __name__ == "__main__":
    main()

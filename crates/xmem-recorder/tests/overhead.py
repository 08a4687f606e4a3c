"""The cost of a recording: models of `models.toml` alone, recorded by hand, and by `xmem profile`.

    overhead.py --program target/release/xmem [--rounds 3] MODEL…

Run with the Python of an environment of `cargo xtask test-torch`. Prints a table in Markdown: medians of
CPU time, wall time, memory of the largest process and size of the trace.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent


def ways(xmem, folder):
    """Each way to run the job: its name, the command before the model's arguments, and the trace."""
    train = [sys.executable, str(HERE / "train.py")]
    profile = [xmem, "profile", "-o"]
    hand, stacks, bare = (folder / name for name in ("hand.json", "stacks.json.zst", "bare.json.zst"))
    return [
        ("alone, not recorded", [*train, "--plain"], None),
        ("by hand, with stacks", [*train, "--by-hand", str(hand)], hand),
        ("`xmem profile`", [*profile, str(stacks), "--", *train], stacks),
        ("`xmem profile --no-stacks`", [*profile, str(bare), "--no-stacks", "--", *train], bare),
    ]


def measured(command, folder):
    """CPU time and wall time in seconds, and the memory of the largest process in bytes."""
    start = time.monotonic()
    with open(folder / "output", "wb") as output:
        child = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{command} failed:\n{(folder / 'output').read_text()}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - start, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("model", nargs="+")
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
    models = tomllib.loads((HERE / "models.toml").read_text())["model"]
    print("| model | way | CPU | wall | memory | trace |\n|---|---|--:|--:|--:|--:|")
    for model in options.model:
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            runs = {name: [] for name, _, _ in ways(options.program, folder)}
            for _ in range(options.rounds):
                for name, command, _ in ways(options.program, folder):
                    command = [*command, "--", *models[model]["arguments"]]
                    runs[name].append(measured(command, folder))
            for name, _, trace in ways(options.program, folder):
                cpu, wall, memory = map(statistics.median, zip(*runs[name]))
                size = f"{trace.stat().st_size / 1e6:.1f} MB" if trace else "–"
                print(f"| `{model}` | {name} | {cpu:.1f} s | {wall:.1f} s | {memory / 2**20:.0f} MiB | {size} |",
                      flush=True)


if __name__ == "__main__":
    main()

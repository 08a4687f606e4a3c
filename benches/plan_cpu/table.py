"""Compares a static memory plan on the CPU with other allocators: latency, time of the processor, page faults and peak of the resident memory.

For each job there is a process with each allocator, and their iterations are run in turns, so that what else the machine does
meets all of them. The best times, medians and the range between the quartiles are printed as a table.

    python benches/plan_cpu/table.py --xmem target/release/xmem --libraries /usr/lib/x86_64-linux-gnu

The libraries are those of Debian's packages libjemalloc2, libtcmalloc-minimal4 and libmimalloc2.0; those that are not there
are left out. The Python that runs this needs torch, torchvision and transformers.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

JOB = Path(__file__).with_name("job.py")
PRELOADED = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": "libmimalloc.so.2"}
# glibc that keeps freed memory: no large block is mapped by itself, and the top of the heap is never trimmed.
KEPT = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=18446744073709551615"
PLAIN = "PyTorch"
PLAN = "plan"


def jobs() -> Iterator[list[str]]:
    """The arguments of each job."""
    for model in ("resnet18", "resnet50", "bert", "gpt2"):
        for batch in ("1", "8"):
            for threads in ("1", "2"):
                yield [model, "--batch", batch, "--threads", threads]
    for model, batch in (("resnet18", "8"), ("resnet50", "4"), ("bert", "2"), ("gpt2", "1")):
        yield [model, "--batch", batch, "--threads", "2", "--train"]


class Process:
    """A job with one allocator."""

    def __init__(self, name: str, options: argparse.Namespace, job: list[str]) -> None:
        self.name = name
        self.figures: list[dict[str, object]] = []
        # A thread that spins while it waits takes the processor from others, where the machine has other work.
        variables = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
        command = [sys.executable, str(JOB), *job]
        if name in PRELOADED:
            variables["LD_PRELOAD"] = str(options.libraries / PRELOADED[name])
        elif name == "glibc, kept":
            variables["GLIBC_TUNABLES"] = KEPT
        elif name == PLAN:
            command = [options.xmem, "--quiet", "run", "--cpu", "--plan", "auto", "--", *command]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe, text=True, bufsize=1)

    def read(self) -> dict[str, object]:
        """The next line."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def iterate(self) -> None:
        """Runs an iteration."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.figures.append(self.read())

    def end(self) -> None:
        """Ends the job."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def row(process: Process, plain: Process, before: int) -> list[str]:
    """The cells of an allocator; `before` is the resident memory before the first iteration, in KiB."""

    def of(key: str, which: Process) -> list[float]:
        return [float(figures[key]) for figures in which.figures]

    times, median = of("seconds", process), statistics.median(of("seconds", plain))
    used, most = statistics.median(of("processor", process)), statistics.median(of("processor", plain))
    low, middle, high = statistics.quantiles(times, n=4)
    same = all(a["value"] == b["value"] for a, b in zip(process.figures, plain.figures, strict=True))
    return [
        process.name,
        f"{min(times) * 1e3:.1f}",
        f"{middle * 1e3:.1f}",
        f"{low * 1e3:.1f}–{high * 1e3:.1f}",
        f"{100 * (middle / median - 1):+.0f} %",
        f"{used * 1e3:.1f}",
        f"{100 * (used / most - 1):+.0f} %",
        f"{statistics.median(of('faults', process)):.0f}",
        f"{(max(of('peak', process)) - before) / 1024:.0f}",
        "yes" if same else "no",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="A static memory plan on the CPU, compared with other allocators.")
    parser.add_argument("--xmem", default="xmem")
    parser.add_argument("--libraries", type=Path, default=Path("/usr/lib/x86_64-linux-gnu"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default="", help="jobs whose arguments contain this text")
    options = parser.parse_args()
    there = [name for name, file in PRELOADED.items() if (options.libraries / file).exists()]
    names = [PLAIN, "glibc, kept", *there, PLAN]
    print("| job | allocator | best ms | median ms | quartiles | to PyTorch | CPU ms | to PyTorch | page faults | peak MiB | same values |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|")
    for job in jobs():
        if options.only not in " ".join(job):
            continue
        processes = [Process(name, options, job) for name in names]
        # The least of them: an allocator may keep what building the model has freed.
        before = min(int(process.read()["before"]) for process in processes)
        for turn in range(options.rounds):
            # Each is the first one in its turn.
            for at in range(len(processes)):
                processes[(at + turn) % len(processes)].iterate()
        for process in processes:
            process.end()
            name = " ".join(job).replace("--", "") if process.name == PLAIN else ""
            print("| " + " | ".join([name, *row(process, processes[0], before)]) + " |", flush=True)


if __name__ == "__main__":
    main()

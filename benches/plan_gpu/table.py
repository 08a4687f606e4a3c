"""Runs the recorded jobs of `traces` with a static memory plan on a virtual GPU, beside PyTorch's allocator.

Each job is recorded on the virtual GPU, its recording is planned, and the job runs with the plan; with --limits, also with as
much memory as it took then, and with 2 MiB less. A row says what became of it.

    python benches/plan_gpu/table.py --xmem target/release/xmem [--only gpt2] [--jobs 2] [--limits]

The Python that runs this needs the packages of traces/packages.txt.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASE = Path(__file__).with_name("case.py")
MIB = 1 << 20
EXPANDABLE = "expandable_segments:True"


@dataclass
class Row:
    """What became of a job."""

    name: str
    requests: int
    planned: int
    misses: int
    collisions: int
    reserved: int
    expandable: int
    plan: int
    simulated: int
    under: list[str]

    def cells(self) -> list[str]:
        share = f"{100 * self.planned / self.requests:.1f} %"
        sizes = [f"{size / MIB:,.0f}" for size in (self.reserved, self.expandable, self.plan, self.simulated)]
        counts = [f"{self.misses:,}", str(self.collisions)]
        return [f"`{self.name}`", share, *counts, *sizes, *self.under]


class FailedError(Exception):
    """A command that failed."""


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else "no message"


class Bench:
    """The program and the virtual GPU."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.folder = folder

    def cells(self, name: str) -> list[str]:
        """The row of a job, or the error that it ended with."""
        try:
            return self.row(name).cells()
        except FailedError as error:
            return [f"`{name}`", str(error)]

    def row(self, name: str) -> Row:
        trace, report = self.folder / f"{name}.json.zst", self.folder / f"{name}.report.json"
        device = ["--virtual-gpu", self.options.device]
        case = ["--", sys.executable, str(CASE), name]
        self.xmem("profile", *device, "--no-stacks", "--steps", "3", "-o", str(trace), *case, "3")
        usual, expandable = (self.reserved(trace, conf) for conf in ([], ["--alloc-conf", EXPANDABLE]))
        against = ["--against", str(trace), "--format", "json"]
        simulated = json.loads(self.xmem("plan", str(trace), *against))["driver_peak_bytes"]
        followed = ["--plan", str(trace), "--check-plan", "--report", str(report)]
        self.xmem("run", *device, *followed, *case, self.options.iterations)
        run = json.loads(report.read_text())
        peak = run["driver_peak_bytes"]
        limits = (peak, peak - 2 * MIB) if self.options.limits else ()
        under = [self.under(name, trace, size) for size in limits]
        trace.unlink()
        return Row(
            name,
            run["requests"],
            run["planned"],
            run["misses"],
            run["collisions"],
            usual,
            expandable,
            peak,
            simulated,
            under,
        )

    def reserved(self, trace: Path, conf: list[str]) -> int:
        answer = self.xmem("replay", str(trace), "--device", self.options.device, "--format", "json", *conf)
        return json.loads(answer)["peak"]["reserved_bytes"]

    def under(self, name: str, trace: Path, capacity: int) -> str:
        """What becomes of the job with so much memory."""
        report = self.folder / f"{name}.{capacity}.json"
        command = ["run", "--virtual-gpu", self.options.device, "--capacity", str(capacity), "--plan", str(trace)]
        command += [
            "--check-plan",
            "--report",
            str(report),
            "--",
            sys.executable,
            str(CASE),
            name,
            self.options.iterations,
        ]
        ran = self.call(*command)
        collisions = json.loads(report.read_text())["collisions"] if report.exists() else 0
        if collisions:
            return f"{collisions} collisions"
        if ran.returncode == 0:
            return "runs"
        return "out of memory" if "OutOfMemoryError" in ran.stderr else last_line(ran.stderr)

    def xmem(self, *arguments: str) -> str:
        ran = self.call(*arguments)
        if ran.returncode not in (0, 1):
            raise FailedError(f"xmem {arguments[0]}: {last_line(ran.stderr)}")
        return ran.stdout

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
        command = [self.options.xmem, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=variables, cwd=ROOT, check=False)


def names(only: str) -> Iterator[str]:
    for trace in sorted((ROOT / "traces").glob("*/trace.json.zst")):
        if only in trace.parent.name:
            yield trace.parent.name


def main() -> None:
    parser = argparse.ArgumentParser(description="The recorded jobs with a static memory plan, on a virtual GPU.")
    parser.add_argument("--xmem", default="xmem")
    parser.add_argument("--device", default="a100-40g")
    parser.add_argument("--iterations", default="6")
    parser.add_argument("--only", default="", help="jobs whose names contain this text")
    parser.add_argument("--jobs", type=int, default=1, help="jobs side by side")
    parser.add_argument(
        "--limits", action="store_true", help="run each also with as much memory as it took, and with less"
    )
    options = parser.parse_args()
    columns = ["job", "at their address", "differ", "collisions", "PyTorch", "expandable", "plan", "simulated"]
    columns += ["as much", "2 MiB less"] if options.limits else []
    print(f"| {' | '.join(columns)} |\n|---{'|--:' * (len(columns) - 1)}|", flush=True)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        for cells in pool.map(Bench(options, Path(folder)).cells, names(options.only)):
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

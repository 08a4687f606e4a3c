"""Records the scripts of this folder as `xmem profile` does by itself, and compares with what PyTorch counts without it.

    python measure.py RESULTS.jsonl --xmem XMEM --virtual RUN [--only NAME,…] [--stage truth|record] [--values known|computed]

XMEM is the program; RUN is the example of crates/xmem-virtual-gpu that runs a command on a virtual GPU (`cargo build -p
xmem-virtual-gpu --example run`); the Python that runs this is that of the scripts. The truth is what PyTorch has counted when
the script's own process ends, recorded with PyTorch's CUDA build, kernels stubbed, without a recorder in the process. A job that
does not end there without values, or takes another course, is counted with `--values` (see counted.py).

RESULTS has one line for each script: its name, the truth, the recording, and the answer of `xmem replay`.
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = ("counted", "measure")
DEVICE = "a100-40g"


def run(command, folder, tools, **variables):
    """The exit status, the seconds, the resident memory of the largest process so far, and the end of what was said."""
    begin = time.monotonic()
    environment = dict(os.environ, **variables)
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **pipes) as process:
        try:
            _, said = process.communicate(timeout=tools.limit)
            code = process.returncode
        except subprocess.TimeoutExpired:
            # Also the script, which the program has started.
            os.killpg(process.pid, signal.SIGKILL)
            _, said = process.communicate()
            code = 124
    lines = [line for line in said.decode(errors="replace").splitlines() if not line.startswith("log: ")]
    return {
        "code": code,
        "seconds": round(time.monotonic() - begin, 1),
        "rss_mib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10,
        "stderr": lines[-20:],
    }


def truth(script, tools):
    with tempfile.TemporaryDirectory() as folder:
        peaks = os.path.join(folder, "peaks.json")
        command = [tools.virtual, DEVICE, sys.executable, str(HERE / "counted.py"), peaks, str(script)]
        found = run(command, folder, tools, COUNTED_VALUES=tools.values or "")
        if os.path.exists(peaks):
            with open(peaks) as file:
                found |= json.load(file)
    return found


def record(script, tools):
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "t.json.zst")
        recording = run([tools.xmem, "profile", "-o", trace, "--", sys.executable, str(script)], folder, tools)
        if not os.path.exists(trace):
            return recording, None
        recording["bytes"] = os.path.getsize(trace)
        command = [tools.xmem, "replay", "-q", "-f", "json", "-d", DEVICE, trace]
        replayed = subprocess.run(command, capture_output=True, text=True)
        if tools.keep:
            os.makedirs(tools.keep, exist_ok=True)
            shutil.move(trace, os.path.join(tools.keep, f"{script.stem}.json.zst"))
    try:
        found = json.loads(replayed.stdout)
    except ValueError:
        return recording, {"code": replayed.returncode, "error": replayed.stderr[-400:]}
    keys = ("verdict", "summary", "withheld", "coverage", "peak", "range")
    answer = {"code": replayed.returncode, **{key: found.get(key) for key in keys}}
    answer["condition"] = found["integrity"]["condition"]
    answer["notes"] = [note["code"] for note in found["diagnostics"]]
    return recording, answer


def judge(row):
    """One line about a script."""
    counted, recording, answer = (row.get(key) or {} for key in ("truth", "recording", "answer"))
    if not answer.get("peak"):
        return f"{row['name']}: no answer ({recording.get('code')})"
    found = [answer["peak"][f"{what}_bytes"] for what in ("allocated", "reserved")]
    real = [counted.get(what) for what in ("allocated", "reserved")]
    reserved = answer["range"]["reserved_bytes"]
    if found == real:
        verdict = "exact"
    elif real[1] and reserved["low"] <= real[1] <= reserved["high"]:
        verdict = "in range"
    else:
        verdict = "missed"
    engine = "cpu" if any(": recorded again on the CPU" in line for line in recording["stderr"]) else "virtual-gpu"
    sizes = " ".join("–" if size is None else f"{size / (1 << 20):.1f}" for size in found + real)
    return f"{row['name']}: {engine} {verdict} {answer['range']['confidence']} {answer['verdict']} {sizes} {answer['notes']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--xmem", required=True)
    parser.add_argument("--virtual", required=True)
    parser.add_argument("--scripts", type=pathlib.Path, default=HERE)
    parser.add_argument("--only", type=lambda names: names.split(","))
    parser.add_argument("--stage", choices=["truth", "record"])
    parser.add_argument("--values", choices=["known", "computed"])
    parser.add_argument("--keep", help="a folder for the recordings")
    parser.add_argument("--limit", type=int, default=400, help="seconds for each run")
    tools = parser.parse_args()
    rows = {}
    if os.path.exists(tools.results):
        with open(tools.results) as file:
            rows = {row["name"]: row for row in map(json.loads, file)}
    for script in sorted(tools.scripts.resolve().glob("*.py")):
        if script.stem in TOOLS or tools.only and script.stem not in tools.only:
            continue
        row = rows.setdefault(script.stem, {"name": script.stem})
        if tools.stage != "record" and (tools.only or "truth" not in row):
            row["truth"] = truth(script, tools)
        if tools.stage != "truth" and (tools.only or "recording" not in row):
            row["recording"], row["answer"] = record(script, tools)
        print(judge(row), flush=True)
        with open(f"{tools.results}.new", "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows.values())
        os.replace(f"{tools.results}.new", tools.results)


if __name__ == "__main__":
    main()

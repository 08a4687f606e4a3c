"""Checks the measures by the losses of small jobs on the CPU, with and without each measure, in processes of their own.

    python losses.py [--only MEASURE] [--quick]

Prints a line for each case; the exit status is 1 if one fails. What is checked depends on what a measure says that it
changes: with "nothing" the losses are the same bit for bit; with "rounding" they differ by less than TOLERANCES; with
"training" they are finite and fall. Where a measure does not apply it must say so, and nothing may change.
"""

import argparse
import ast
import functools
import importlib
import importlib.util
import json
import math
import os
import pathlib
import re
import runpy
import socket
import sys
import tempfile
import traceback

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE.parent.parent / "python"
MEASURES = PYTHON / "xmem_recorder" / "measures"

# Largest difference of a loss, relative to the largest loss of the job.
TOLERANCES = {
    "fused": 1e-3,
    "chunked-cross-entropy": 1e-4,
    "sdpa": 1e-4,
    "autocast": 5e-2,
    "host-optimizer": 1e-6,
    "host-parameters": 1e-6,
    "fsdp": 1e-5,
    "micro-batches": 1e-4,
    "compile": 1e-3,
}

# Measures that change the training by the number of processes: one computes what it would without.
ALONE = {"fsdp": "nothing"}

# Measures that need FSDP2, which runs on the CPU with releases after 2.6.
SHARDING = ("fsdp", "host-parameters")

# What measures share, in the order in which it is joined into one file.
SHARED = ("common", "blocks", "sharding")

# Cases of measures that change nothing with another tolerance: a Hugging Face model that had a cache of keys and
# values, with copies of them, multiplies tensors with other strides without it.
CACHES = {("checkpointing", "llama early"): 1e-6, ("checkpointing=2", "llama early"): 1e-6}

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "XMEM_MEASURES_TEST": "1",
    "PYTHONWARNINGS": "ignore",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
}

# Measures, job, and whether they apply (APPLIES) or why not (a part of the reason).
APPLIES = "applies"
CASES = [
    ("fused", "transformer early", APPLIES),
    ("fused", "resnet sgd", APPLIES),
    ("fused", "linear adagrad", APPLIES),
    ("fused", "transformer adam", APPLIES),
    ("fused", "linear scheduler", APPLIES),
    ("fused", "linear scaler_on", APPLIES),
    ("fused", "linear fused", "fused already"),
    ("fused", "llama trainer_clip", "fused already"),
    ("fused", "linear lightning", APPLIES),
    ("foreach-off", "transformer clip", APPLIES),
    ("foreach-off", "resnet sgd", APPLIES),
    ("foreach-off", "linear adagrad", APPLIES),
    ("foreach-off", "linear fused", "fused"),
    ("early-zero-grad", "transformer scheduler", APPLIES),
    ("early-zero-grad", "resnet sgd", APPLIES),
    ("early-zero-grad", "transformer accumulate", APPLIES),
    ("early-zero-grad", "linear closure", APPLIES),
    ("early-zero-grad", "linear scaler_on", APPLIES),
    ("early-zero-grad", "linear gan", APPLIES),
    ("early-zero-grad", "linear keeps_zeros", "as zeros"),
    ("early-zero-grad", "linear reads", APPLIES),
    ("early-zero-grad", "linear reads_late", "reads gradients after the step"),
    ("early-zero-grad", "llama trainer_clip", APPLIES),
    ("early-zero-grad", "linear lightning", APPLIES),
    ("step-in-backward", "transformer early", APPLIES),
    ("step-in-backward", "resnet sgd", APPLIES),
    ("step-in-backward", "transformer adam", APPLIES),
    ("step-in-backward", "linear adagrad", APPLIES),
    ("step-in-backward", "linear scheduler", APPLIES),
    ("step-in-backward", "linear sets_rate", APPLIES),
    ("step-in-backward", "linear closure", APPLIES),
    ("step-in-backward", "linear scaler", APPLIES),
    ("step-in-backward", "transformer accumulate", "accumulated"),
    ("step-in-backward", "linear clip", "clipped"),
    ("step-in-backward", "linear reads", "reads gradients"),
    ("step-in-backward", "linear scaler_on", "GradScaler"),
    ("step-in-backward", "linear lbfgs", "LBFGS"),
    ("step-in-backward", "linear gan", "accumulated"),
    ("step-in-backward", "linear keeps_zeros", "as zeros"),
    ("step-in-backward", "llama trainer", "reads gradients"),
    ("step-in-backward", "llama trainer_clip", "gradients"),
    ("step-in-backward", "linear lightning", APPLIES),
    ("chunked-cross-entropy", "lm early", APPLIES),
    ("chunked-cross-entropy", "llama early", APPLIES),
    ("chunked-cross-entropy", "transformer early", None),
    ("checkpointing", "transformer early", APPLIES),
    ("checkpointing=3", "transformer accumulate", APPLIES),
    ("checkpointing", "resnet sgd", APPLIES),
    ("checkpointing=2", "resnet clip", APPLIES),
    ("checkpointing", "llama early", APPLIES),
    ("checkpointing=2", "llama early", APPLIES),
    ("checkpointing", "llama_uncached early", APPLIES),
    ("checkpointing=2", "llama_uncached early", APPLIES),
    ("checkpointing", "llama trainer", APPLIES),
    ("checkpointing", "lm early", "repeats"),
    ("host-activations", "transformer early", APPLIES),
    ("host-activations", "resnet sgd", APPLIES),
    ("host-activations", "llama early", APPLIES),
    ("host-activations", "linear lightning", APPLIES),
    ("host-activations", "transformer accumulate", APPLIES),
    ("sdpa", "llama early", APPLIES),
    ("sdpa", "llama_sdpa early", "is sdpa"),
    ("sdpa", "transformer early", None),
    ("autocast", "transformer early", APPLIES),
    ("autocast", "resnet sgd", APPLIES),
    ("autocast", "llama early", APPLIES),
    ("autocast", "linear lightning", APPLIES),
    ("autocast", "transformer autocast", "already"),
    ("bfloat16", "transformer early", APPLIES),
    ("bfloat16", "resnet sgd", APPLIES),
    ("bfloat16", "llama trainer", APPLIES),
    ("bfloat16", "linear lightning", APPLIES),
    ("host-optimizer", "transformer scheduler", APPLIES),
    ("host-optimizer", "resnet sgd", APPLIES),
    ("host-optimizer", "linear adagrad", APPLIES),
    ("host-optimizer", "linear closure", APPLIES),
    ("host-optimizer", "linear fused", APPLIES),
    ("host-optimizer", "linear lbfgs", "LBFGS"),
    ("host-optimizer", "llama trainer_clip", APPLIES),
    ("host-parameters", "transformer scheduler", APPLIES),
    ("host-parameters", "resnet clip", APPLIES),
    ("host-parameters", "llama trainer_clip", APPLIES),
    ("host-parameters", "transformer resumes", APPLIES),
    ("fsdp", "transformer scheduler", APPLIES),
    ("fsdp", "transformer accumulate", APPLIES),
    ("fsdp", "transformer groups", APPLIES),
    ("fsdp", "transformer resumes", APPLIES),
    ("fsdp", "resnet sgd", APPLIES),
    ("fsdp", "linear closure", APPLIES),
    ("fsdp", "linear scaler_on", APPLIES),
    ("fsdp", "linear gan", APPLIES),
    ("fsdp", "linear lightning", APPLIES),
    ("fsdp", "llama early", APPLIES),
    ("fsdp", "llama trainer_clip", APPLIES),
    ("fsdp", "linear hooks", "have hooks"),
    ("fsdp", "linear distributed", "makes a process group itself"),
    ("adafactor", "transformer scheduler", APPLIES),
    ("adafactor", "transformer adam", APPLIES),
    ("adafactor", "llama trainer", APPLIES),
    ("adafactor", "resnet sgd", None),
    ("micro-batches=2", "plain_transformer loader", APPLIES),
    ("micro-batches=4", "plain_transformer loader", APPLIES),
    ("micro-batches=3", "plain_transformer loader", "cannot be divided"),
    ("micro-batches", "transformer early", "no DataLoader"),
    ("micro-batches", "linear closure", "no DataLoader"),
    ("batch-size=4", "llama trainer", APPLIES),
    ("batch-size=4", "linear lightning", APPLIES),
    ("batch-size=4", "transformer early", "no DataLoader"),
    ("lora", "llama early", APPLIES),
    ("lora", "llama trainer", APPLIES),
    ("lora", "transformer early", "no Hugging Face model"),
    ("compile", "plain_transformer early", APPLIES),
    # Several.
    ("fused,foreach-off", "transformer clip", APPLIES),
    ("step-in-backward,host-optimizer", "transformer early", APPLIES),
    ("early-zero-grad,checkpointing,host-activations", "transformer early", APPLIES),
    ("chunked-cross-entropy,checkpointing,sdpa,autocast", "llama early", APPLIES),
    ("early-zero-grad,step-in-backward", "transformer early", APPLIES),
    ("adafactor,foreach-off", "transformer early", APPLIES),
    ("early-zero-grad,checkpointing,fsdp", "transformer groups", APPLIES),
    ("checkpointing=2,host-parameters,chunked-cross-entropy", "llama early", APPLIES),
    ("bfloat16,checkpointing=2,step-in-backward,adafactor", "llama early", APPLIES),
]
# The joined sources of these measures, as a script of their own.
STANDALONE = [
    ("fused,checkpointing=2", "transformer early", APPLIES),
    ("step-in-backward,checkpointing", "resnet sgd", APPLIES),
    ("step-in-backward", "linear reads", "reads gradients"),
    ("checkpointing,fsdp", "transformer groups", APPLIES),
]


def modules():
    """The package's measures, without importing torch."""
    sys.path.insert(0, str(PYTHON))
    return importlib.import_module("xmem_recorder.measures")


def changes_of(package, measures):
    """What the measures together do to the numbers."""
    order = ["nothing", "rounding", "training"]
    names = [text.split("=")[0] for text in measures]
    return max((ALONE.get(name) or package.load(name).CHANGES for name in names), key=order.index)


def run_standalone(job, wrapper):
    """Runs a job by a wrapper."""
    sys.argv = [wrapper, str(HERE / "jobs.py"), *job.split()]
    runpy.run_path(wrapper, run_name="__main__")


def run_job(job, measures, package):
    """Runs a job with measures in this process; what they report goes to standard error."""
    import torch

    package.install(torch, measures, report_to_stderr)
    sys.argv = ["jobs.py", *job.split()]
    runpy.run_path(str(HERE / "jobs.py"), run_name="__main__")


def run_two(job, measures, package):
    """Runs a job as two processes, of which this one becomes the first."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    os.environ.update(WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    other = os.fork()
    os.environ["RANK"] = os.environ["LOCAL_RANK"] = "0" if other else "1"
    if other:
        run_job(job, measures, package)
        status = os.waitpid(other, 0)[1]
        if status:
            raise RuntimeError(f"the other process ended with {status}")
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        run_job(job, measures, package)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def report_to_stderr(name, applied, text):
    """Reports as a line that is easily found."""
    print("REPORT", json.dumps([name, applied, text]), file=sys.stderr, flush=True)


def losses(run):
    """The numbers that `run()` prints in a process of its own, what it reports, and its error.

    The process is forked once torch has been imported, which takes longer than most of the jobs.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            status = 1
            try:
                run()
                status = 0
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        status = os.waitpid(child, 0)[1]
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read())
    reports = [json.loads(line[7:]) for line in texts[1].splitlines() if line.startswith("REPORT ")]
    numbers = [float.fromhex(word) for word in texts[0].split() if re.match(r"-?(0x|nan|inf)", word)]
    return numbers, reports, (texts[1][-3000:] or f"status {status}") if status else ""


def standalone(measures, package):
    """One file with the sources of some measures, which runs the script of its command line with them.

    Docstrings become comments; constants and imports of the package are left out; `install` is renamed.
    """
    names = sorted((text.partition("=")[0] for text in measures), key=package.NAMES.index)
    options = dict(text.partition("=")[::2] for text in measures)
    parts = ["import json\nimport runpy\nimport sys\n\nimport torch\n", *(source_of(module, "") for module in SHARED)]
    calls = []
    for name in names:
        module = name.replace("-", "_")
        parts.append(source_of(module, "install_" + module))
        option = options[name] or package.load(name).OPTION
        calls.append(f"install_{module}(torch, {option!r}, lambda n, text: report({name!r}, n, text))")
    parts.append(
        "def report(name, applied, text):\n"
        '    print("REPORT", json.dumps([name, applied, text]), file=sys.stderr, flush=True)\n\n\n'
        + "\n".join(calls)
        + '\nsys.argv.pop(0)\nrunpy.run_path(sys.argv[0], run_name="__main__")\n'
    )
    return "\n\n".join(parts)


def source_of(module, name_of_install):
    """The source of a module for the joined file."""
    text = (MEASURES / f"{module}.py").read_text()
    docstring = ast.get_docstring(ast.parse(text))
    rest = text[text.index('"""', 3) + 3 :].lstrip("\n")
    rest = re.sub(rf"^from \.({'|'.join(SHARED)}) import .*\n\n?", "", rest, flags=re.MULTILINE)
    rest = re.sub(r'^(NAME|TITLE|CHANGES|NEEDS|OPTION|GPUS|EXCLUDES|CODE) = ".*"\n', "", rest, flags=re.MULTILINE)
    rest = re.sub(r"^def install\(", f"def {name_of_install}(", rest, flags=re.MULTILINE)
    return "\n".join(f"# {line}".rstrip() for line in docstring.splitlines()) + "\n" + rest


def check_sources(package):
    """What can be seen without running anything: constants, imports, names."""
    problems = []
    owners = {}
    constants = ("NAME", "TITLE", "CHANGES", "NEEDS", "OPTION", "CODE")
    for module in (*SHARED, *(name.replace("-", "_") for name in package.NAMES)):
        text = (MEASURES / f"{module}.py").read_text()
        names = set()
        for node in ast.parse(text).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(node.name)
            elif isinstance(node, ast.Assign):
                names.update(target.id for target in node.targets)
            elif isinstance(node, ast.ImportFrom) and node.level and node.module not in SHARED:
                problems.append(f"{module} imports {node.module}")
        if module not in SHARED:
            lines = [name for name in constants if re.search(rf'^{name} = "[^"\\]*"$', text, re.MULTILINE)]
            if lines != list(constants) or "install" not in names:
                problems.append(f"{module} lacks constants or install")
            if f'NAME = "{module.replace("_", "-")}"' not in text:
                problems.append(f"{module} has another name")
        for name in names - {*constants, "EXCLUDES", "GPUS", "install"}:
            if name in owners:
                problems.append(f"{name} is defined in {owners[name]} and {module}")
            owners[name] = module
    try:
        package.install(None, ["unknown"], None)
        problems.append("an unknown name is accepted")
    except ValueError:
        pass
    return problems


def judge(measures, job, expected, changes, without, with_measures):
    """What is wrong with the losses or reports of a case, and their largest difference."""
    before, _, error_before = without
    after, reports, error = with_measures
    if error_before or error:
        return "fails: " + " | ".join((error_before or error).strip().splitlines()[-3:]), 0
    if len(before) < 4 or len(before) != len(after):
        return f"{len(before)} and {len(after)} losses", 0
    difference = max(abs(a - b) for a, b in zip(after, before)) / max(map(abs, before))
    last = {name: (applied, text) for name, applied, text in reports}
    names = [text.split("=")[0] for text in measures]
    if expected == APPLIES:
        if any(last.get(name, (0, ""))[0] < 1 for name in names):
            return f"not applied: {reports}", difference
    else:
        if expected is None and last or expected and not any(n == 0 and expected in t for n, t in last.values()):
            return f"wrong reports: {reports}", difference
        changes = "nothing"
    if changes == "nothing" and (",".join(measures), job) in CACHES:
        changes, TOLERANCES["checkpointing"] = "rounding", CACHES[",".join(measures), job]
    if changes == "nothing":
        return ("" if before == after else "losses differ"), difference
    if changes == "rounding":
        tolerance = max(TOLERANCES.get(name, 0) for name in names)
        return ("" if difference <= tolerance else f"losses differ by more than {tolerance}"), difference
    if not all(math.isfinite(loss) for loss in after):
        return "losses are not finite", difference
    half = len(after) // 2
    falls = sum(after[half:]) / (len(after) - half) < sum(after[:half]) / half
    return ("" if falls else "losses do not fall"), difference


def quick(cases):
    """The first case of each measure alone that applies, without the compiler, and the first of a joined file."""
    chosen = {}
    for case in cases:
        kind, measures, _, expected = case
        key = measures if kind == "package" else kind
        if expected is APPLIES and key not in chosen and "compile" not in measures and "," not in key:
            chosen[key] = case
    return list(chosen.values())


def main():
    """Runs the cases."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", help="the cases of one measure (or standalone, sources, processes)")
    parser.add_argument("--quick", action="store_true", help="the first case of each measure, and one of a joined file")
    arguments = parser.parse_args()
    package = modules()
    os.environ.update(ENVIRONMENT)
    importlib.import_module("torch").set_num_threads(1)
    failures = 0

    def line(kind, measures, job, problem, note):
        nonlocal failures
        failures += bool(problem)
        print(f"{'FAILED' if problem else 'ok':6}  {kind:10}  {measures:40}  {job:26}  {note}  {problem}", flush=True)

    if arguments.only in (None, "sources"):
        line("sources", "all", "-", "; ".join(check_sources(package)), "")
    can_shard = hasattr(importlib.import_module("torch.cpu").Stream, "record_event")
    if can_shard and arguments.only in (None, "processes", "fsdp"):
        job = "plain_transformer loader"
        # Each has half of the batch, which is that of one process with batches of twice as many samples.
        one = losses(functools.partial(run_job, job, ["batch-size=16"], package))
        two = losses(functools.partial(run_two, job, ["fsdp"], package))
        problem, difference = judge(["fsdp"], job, APPLIES, "rounding", one, two)
        line("processes", "fsdp", job, problem, f"two processes, {difference:.1e}")
    known = {}
    with tempfile.TemporaryDirectory() as folder:
        cases = [("package", *case) for case in CASES] + [("standalone", *case) for case in STANDALONE]
        if arguments.quick:
            cases = quick(cases)
        for kind, measures, job, expected in cases:
            names = [text.split("=")[0] for text in measures.split(",")]
            if arguments.only not in (None, kind, *names):
                continue
            needed = {package.load(name).NEEDS for name in names} - {""}
            if missing := [name for name in needed if importlib.util.find_spec(name) is None]:
                print(f"skipped {measures}: {', '.join(missing)} is not installed", flush=True)
                continue
            if not can_shard and any(name in SHARDING for name in names):
                print(f"skipped {measures}: this release of PyTorch shards nothing on the CPU", flush=True)
                continue
            if job not in known:
                known[job] = losses(functools.partial(run_job, job, [], package))
            run = functools.partial(run_job, job, measures.split(","), package)
            if kind == "standalone":
                wrapper = pathlib.Path(folder) / "wrapper.py"
                wrapper.write_text(standalone(measures.split(","), package))
                run = functools.partial(run_standalone, job, str(wrapper))
            result = losses(run)
            changes = changes_of(package, measures.split(","))
            problem, difference = judge(measures.split(","), job, expected, changes, known[job], result)
            texts = "; ".join(f"{n}: {text}" for n, text in {r[0]: r[1:] for r in result[1]}.values())
            line(kind, measures, job, problem, f"{changes}, {difference:.1e}, {texts or 'no report'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

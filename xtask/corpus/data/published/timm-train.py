"""Runs a benchmark of image models in training, and writes down the batch size of each with which it runs.

    python timm-train.py CHECKOUT GROUP RESULTS.json

The benchmark takes a smaller batch when memory runs out: 512, 384, 256, 192, 128 and so on. It begins two sizes above that of the
table, in place of 512, and makes 7 steps in place of 50. Images have the sizes in the table, those of the models' own training, and
gradients are set to zero where they are, as PyTorch did up to 1.13. Two models run side by side.
"""

import concurrent.futures
import json
import os
import subprocess
import sys

checkout, group, results = sys.argv[1:4]
OPTIONS = ["--bench", "train", "--amp", "--use-train-size", "--num-warm-iter", "2", "--num-bench-iter", "5"]
# As in `decay_batch_step` of timm/utils/decay_batch.py.
SIZES = [512, 384, 256, 192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4]
# Runs the benchmark with the default of `Optimizer.zero_grad` up to PyTorch 1.13.
PROGRAM = """
import runpy, torch
zero = torch.optim.Optimizer.zero_grad
torch.optim.Optimizer.zero_grad = lambda optimizer, set_to_none=False: zero(optimizer, set_to_none)
runpy.run_path("benchmark.py", run_name="__main__")
"""
# Seconds.
LONGEST = 900
found = {}


def run(model, images):
    first = SIZES[max(0, SIZES.index(images) - 2)]
    command = [sys.executable, "-c", PROGRAM, "--model", model, "-b", str(first), *OPTIONS]
    try:
        ran = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=LONGEST)
        _, _, text = ran.stdout.partition("--result\n")
        result = json.loads(text) if text else {"error": ran.stderr.strip().splitlines()[-1:]}
    except subprocess.TimeoutExpired:
        result = {"error": f"no result after {LONGEST} s"}
    if "train_batch_size" in result:
        return {"value": result["train_batch_size"]}
    return {"error": str(result.get("error"))[:200]}


with open(os.path.splitext(__file__)[0] + ".tsv") as file:
    rows = [line.rstrip("\n").split("\t") for line in file][1:]
models = {row[4]: int(row[5]) for row in rows if row[3] == group}
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for model, result in zip(models, pool.map(run, models, models.values())):
        found[model] = result
        with open(results, "w") as file:
            json.dump(found, file)

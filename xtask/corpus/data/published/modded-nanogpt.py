"""Runs the script that a log of modded-nanogpt begins with, and writes down the peaks that it prints at its end.

    python modded-nanogpt.py CHECKOUT GROUP RESULTS.json

The script runs as rank 0 of 8, whose collectives the virtual GPU completes immediately, on random tokens, with fewer steps and
fewer batches to validate with: the first step of each length of attention compiles for minutes, later ones are alike.
"""

import datetime
import glob
import os
import re
import sys
import tempfile

import listening
import torch
import torch._inductor.config
import torch.distributed as dist

STEPS, VALIDATION_BATCHES = 12, 2
checkout, group, results = sys.argv[1:4]
(log,) = glob.glob(os.path.join(checkout, "records", "track_1_short", group, "*.txt"))
with open(log, encoding="utf-8", errors="replace") as file:
    code = re.split(r"^={20,}$", file.read(), maxsplit=1, flags=re.M)[0]
code = re.sub(r"(num_iterations\s*(?::\s*int\s*)?=\s*)\d+", rf"\g<1>{STEPS}", code, count=1)
lengths = re.search(r"val_seq_len\s*(?::\s*int\s*)?=\s*([\d*]+)", code)
batch = 8 * (eval(lengths[1], {}) if lengths else 64 * 1024)
code = re.sub(r"(val_tokens\s*(?::\s*int\s*)?=\s*)\d+", rf"\g<1>{VALIDATION_BATCHES * batch}", code, count=1)

folder = tempfile.mkdtemp()
os.makedirs(os.path.join(folder, "data", "fineweb10B"))
for name in ("train_000001", "val_000000"):
    header = torch.zeros(256, dtype=torch.int32)
    header[:3] = torch.tensor([20240520, 1, 16_000_000])
    tokens = torch.randint(0, 50257, (16_000_000,), dtype=torch.int32).to(torch.uint16)
    # Documents of 1,000 tokens.
    tokens[::1000] = 50256
    with open(os.path.join(folder, "data", "fineweb10B", f"fineweb_{name}.bin"), "wb") as file:
        file.write(header.numpy().tobytes() + tokens.numpy().tobytes())
script = os.path.join(folder, "train_gpt.py")
with open(script, "w") as file:
    file.write(code)
os.chdir(folder)
# The log has the output of nvidia-smi.
os.makedirs("logs")
os.makedirs("bin")
with open(os.path.join("bin", "nvidia-smi"), "w") as file:
    file.write("#!/bin/sh\n")
os.chmod(os.path.join("bin", "nvidia-smi"), 0o700)
os.environ["PATH"] = os.path.join(folder, "bin") + os.pathsep + os.environ["PATH"]
os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="8", MASTER_ADDR="localhost", MASTER_PORT="29500")
# Newer releases check the strides of the scripts' own operators, some of which differ from what they declare.
torch._inductor.config.size_asserts = False
begin = dist.init_process_group


def alone(backend=None, device_id=None, **_):
    timeout = datetime.timedelta(seconds=60)
    begin(backend, store=dist.HashStore(), rank=0, world_size=8, timeout=timeout, device_id=device_id)


dist.init_process_group = alone
PATTERNS = {
    "allocated": r".*peak memory (?:allocated|consumption): (\d+) MiB",
    "reserved": r".*peak memory allocated: \d+ MiB reserved: (\d+) MiB",
}
listening.run(script, [], results, PATTERNS)
# What is left of the process group needs its other ranks.
sys.stdout.flush()
os._exit(0)

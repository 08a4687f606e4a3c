"""Trains a model of `traces/record.py` on CUDA, as a script without xmem does, or
records it by hand on the CPU.

    train.py -- --model gpt2 --optimizer adamw --batch 8
    train.py --by-hand trace.json -- --model gpt2 --optimizer adamw --batch 8
    train.py --plain -- --model gpt2 --optimizer adamw --batch 8      # on the CPU, not recorded
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "traces"))
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import record  # noqa: E402
import torch  # noqa: E402
import torch._dynamo  # noqa: E402,F401  (2.6 cannot import it later, on the meta device)


def train(options, device):
    record.run_job(options, torch.device(device), lambda _: None, lambda: None)


def train_by_hand(options, trace):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True,
                 record_shapes=True, with_stack=True) as prof:
        train(options, "cpu")
    prof.export_chrome_trace(trace)


def main():
    split = sys.argv.index("--")
    own = argparse.ArgumentParser()
    own.add_argument("--by-hand", metavar="TRACE")
    own.add_argument("--plain", action="store_true")
    own = own.parse_args(sys.argv[1:split])
    options = record.parser().parse_args(["job", *sys.argv[split + 1 :]])
    torch.manual_seed(0)
    record.import_lazily_loaded_modules(options)
    if own.by_hand:
        train_by_hand(options, own.by_hand)
    else:
        train(options, "cpu" if own.plain else "cuda")


if __name__ == "__main__":
    main()

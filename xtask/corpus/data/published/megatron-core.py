"""Runs a functional test of Megatron-LM as one of its ranks, and writes down the memory that it logs.

    python megatron-core.py CHECKOUT GROUP RESULTS.json

GROUP is a test of a GPT, such as `gpt/gpt3_mcore_tp1_pp2`. It runs with its own arguments, as the last of eight ranks, which is
the one that logs. Text and vocabulary are stand-ins of the same sizes. It ends after a few iterations, as later ones are alike.
"""

import datetime
import importlib.util
import json
import os
import runpy
import subprocess
import sys
import sysconfig
import tempfile
import traceback
import types
import typing

import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg
import yaml

RANK, RANKS = 7, 8
# Iterations whose loss overflows, in float16, and iterations that train.
OVERFLOWS, TRAINS = 2, 4
# Arguments about checkpoints, which are not written; about a folder that all ranks share; about text and vocabulary; and about
# times, of which masks choose the extremes.
LEFT_OUT = {
    *("--save", "--load", "--async-save", "--use-persistent-ckpt-worker", "--verify-integrity"),
    *("--data-cache-path", "--data-path", "--vocab-file", "--merge-file", "--log-timers-to-tensorboard"),
}
STAND_INS = ["--timing-log-option", "all", "--mock-data", "--tokenizer-type", "NullTokenizer"]
# With the end of a text, these are the 50,257 entries of GPT-2's vocabulary.
STAND_INS += ["--vocab-size", "50256"]
MEMORY = {"mem-allocated-bytes": "allocated", "mem-max-allocated-bytes": "peak"}
# The two containers in which each test was measured.
CONTAINERS = ("dev", "lts")

checkout, group, results = sys.argv[1:4]
folder = tempfile.mkdtemp()
with open(os.path.join(checkout, "tests", "functional_tests", "test_cases", group, "model_config.yaml")) as file:
    test = yaml.safe_load(file)
given = []
for name, value in test["MODEL_ARGS"].items():
    if name == "--tensorboard-dir":
        value = os.path.join(folder, "tensorboard")
    if name not in LEFT_OUT and value is not False:
        given += [name] if value is True else [name, *str(value).split()]
given += STAND_INS
is_half = "--fp16" in given
last = TRAINS + (OVERFLOWS if is_half else 0)


class Present(dist.Store):
    """A store in which every rank has put what it puts there."""

    def set(self, key, value):
        pass

    def get(self, key):
        return b"\1" * 128

    def add(self, key, count):
        return RANKS

    def wait(self, *_):
        pass

    def check(self, keys):
        return True

    def set_timeout(self, timeout):
        pass


store = Present()
begin, new_group, broadcast = dist.init_process_group, dist.new_group, dist.broadcast


def begin_alone(*_, **__):
    begin("nccl", store=store, rank=RANK, world_size=RANKS, timeout=datetime.timedelta(seconds=60))


def group_alone(*arguments, **options):
    if options.get("backend") == "gloo":
        options["backend"] = "fake"
    return new_group(*arguments, **options)


def broadcast_alone(tensor, *arguments, **options):
    """Rank 0 tells the others whether there is text to train, validate and test with."""
    if tensor.dtype == torch.long and tensor.numel() == 3:
        tensor.copy_(torch.ones(3, dtype=torch.long))
    return broadcast(tensor, *arguments, **options)


def compile_helpers():
    """Megatron's loops over texts, which it compiles at its start."""
    name = "megatron.core.datasets.helpers_cpp"
    source = os.path.join(checkout, "megatron", "core", "datasets", "helpers.cpp")
    headers = [os.path.join(os.path.dirname(torch.__file__), "include"), sysconfig.get_paths()["include"]]
    library = os.path.join(folder, "helpers_cpp" + sysconfig.get_config_var("EXT_SUFFIX"))
    options = ["-O1", "-shared", "-fPIC", "-std=c++17", *(f"-I{header}" for header in headers)]
    subprocess.run(["g++", *options, source, "-o", library], check=True)
    spec = importlib.util.spec_from_file_location(name, library)
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])


def let_losses_overflow():
    """In float16, the first scales of the loss are too large, which only values show."""
    from megatron.core.optimizer.optimizer import MixedPrecisionOptimizer

    check, left = MixedPrecisionOptimizer._unscale_main_grads_and_check_for_nan, [OVERFLOWS]

    def overflows(self):
        found = check(self)
        left[0] -= 1
        return left[0] >= 0 or found

    MixedPrecisionOptimizer._unscale_main_grads_and_check_for_nan = overflows


found = {}


class SummaryWriter:
    """Takes the place of TensorBoard's."""

    def __init__(self, *_, **__):
        pass

    def add_scalar(self, name, value, iteration=None, *_, **__):
        if name in MEMORY and iteration in (1, last):
            when = "first iteration" if iteration == 1 else "iteration 45"
            for container in CONTAINERS:
                found[f"{container}: {MEMORY[name]}, {when}"] = {"value": float(value)}
        if name == "mem-max-allocated-bytes" and iteration == last:
            finish()

    def __getattr__(self, name):
        return lambda *_, **__: None


def finish():
    with open(results, "w") as file:
        json.dump(found, file)
    sys.stdout.flush()
    # What is left of the process group needs its other ranks.
    os._exit(0)


os.environ.update({name: str(value) for name, value in test["ENV_VARS"].items()})
os.environ.update(RANK=str(RANK), LOCAL_RANK="0", WORLD_SIZE=str(RANKS), LOCAL_WORLD_SIZE=str(RANKS))
os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29500")
dist.init_process_group, dist.new_group, dist.broadcast = begin_alone, group_alone, broadcast_alone
# Groups of all ranks get communicators of their own, as other groups do.
dist.distributed_c10d._get_split_source = lambda _: None
tensorboard = types.ModuleType("torch.utils.tensorboard")
tensorboard.SummaryWriter = SummaryWriter
sys.modules["torch.utils.tensorboard"] = tensorboard
if not hasattr(typing, "override"):
    typing.override = lambda function: function
# Some tests remove Apex before they run.
if "uninstall -y Apex" not in test.get("BEFORE_SCRIPT", ""):
    import apexless

    apexless.install()
sys.path.insert(0, checkout)
try:
    compile_helpers()
    if is_half:
        let_losses_overflow()
    if os.path.exists(os.path.join(checkout, "megatron", "legacy", "fused_kernels")):
        import megatron.legacy.fused_kernels

        # Asks a compiler for its version, and compiles nothing.
        megatron.legacy.fused_kernels.load = lambda _: None
    script = os.path.join(checkout, "pretrain_gpt.py")
    sys.argv = [script, *given]
    runpy.run_path(script, run_name="__main__")
except BaseException as error:
    traceback.print_exc()
    found.setdefault("*", {"error": f"{type(error).__name__}: {error}"[:200]})
finish()

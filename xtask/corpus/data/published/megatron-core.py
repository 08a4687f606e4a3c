"""Runs a functional test of Megatron-LM as one of its ranks, and writes down the memory that it logs.

    python megatron-core.py CHECKOUT GROUP RESULTS.json

GROUP is a test, such as `gpt/gpt3_mcore_tp1_pp2`. It runs with its own arguments, as the last of its ranks, which is the one that
logs. Text and vocabulary are stand-ins of the same sizes. It ends after a few iterations, as later ones are alike.
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

RANKS = 8
# Up to five for each of six tensors.
SIZES_OF_A_BATCH = 5 * 6
# Ranks of a test whose name ends with `_1node`: a node has four GB200.
RANKS_OF_A_NODE = 4
# Iterations whose loss overflows, in float16, and iterations that train.
OVERFLOWS, TRAINS = 2, 4
# Arguments about checkpoints, which are not written; about a folder that all ranks share; about text and vocabulary; and about
# times, of which masks choose the extremes.
LEFT_OUT = {
    *("--save", "--load", "--async-save", "--use-persistent-ckpt-worker", "--verify-integrity"),
    *("--data-cache-path", "--data-path", "--vocab-file", "--merge-file", "--log-timers-to-tensorboard"),
}
STAND_INS = ["--timing-log-option", "all", "--mock-data"]
# Of each kind of model, the script and the entries of its vocabulary without the end of a text: those of GPT-2, of the cased BERT
# with 100 more, and of the uncased BERT.
KINDS = {
    "gpt": ("pretrain_gpt.py", 50256),
    "moe": ("pretrain_gpt.py", 50256),
    "t5": ("pretrain_t5.py", 29095),
    "bert": ("pretrain_bert.py", 30521),
}
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
kind = group.partition("/")[0]
program, entries = KINDS[kind]
# Some tests have no vocabulary of their own.
if "--vocab-size" not in given:
    given += ["--tokenizer-type", "NullTokenizer", "--vocab-size", str(entries)]
if group.endswith("_1node"):
    RANKS = RANKS_OF_A_NODE
RANK = RANKS - 1
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
    """Rank 0 tells the others whether there is text to train, validate and test with, and of T5 and BERT the sizes of a batch."""
    if tensor.dtype == torch.long and tensor.numel() == 3:
        tensor.copy_(torch.ones(3, dtype=torch.long))
    if kind in ("t5", "bert") and tensor.dtype == torch.long and tensor.dim() == 1 and tensor.numel() == SIZES_OF_A_BATCH:
        tensor.copy_(sizes_of_a_batch())
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


class Texts(torch.utils.data.Dataset):
    """Texts in pairs, for a T5, or with gaps, for a BERT. Megatron has stand-ins only for those of a GPT."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        from megatron.training import get_args

        options = get_args()
        if kind == "t5":
            encoder = torch.ones(options.encoder_seq_length, dtype=torch.long)
            decoder = torch.ones(options.decoder_seq_length, dtype=torch.long)
            sample = {"text_enc": encoder, "text_dec": decoder, "labels": decoder, "loss_mask": decoder}
            return {**sample, "enc_mask": encoder, "dec_mask": decoder}
        text = torch.ones(options.seq_length, dtype=torch.long)
        sample = {"text": text, "types": text, "labels": text, "is_random": torch.tensor(0)}
        return {**sample, "loss_mask": text, "padding_mask": text}


def sizes_of_a_batch():
    from megatron.training import get_args

    sizes = torch.zeros(SIZES_OF_A_BATCH // 5, 5, dtype=torch.long)
    for row, part in zip(sizes, Texts(1)[0].values()):
        row[: part.dim() + 1] = torch.tensor([get_args().micro_batch_size, *part.shape])
    return sizes.flatten()


class TextsBuilder:
    """Takes the place of Megatron's builder of data sets."""

    def __init__(self, _, sizes, *__):
        self.sizes = sizes

    def build(self):
        return [Texts(size or 1) for size in self.sizes]


def replace_texts():
    from megatron.core.datasets import bert_dataset, blended_megatron_dataset_builder, t5_dataset

    blended_megatron_dataset_builder.BlendedMegatronDatasetBuilder = TextsBuilder
    t5_dataset.T5MaskedWordPieceDatasetConfig = bert_dataset.BERTMaskedWordPieceDatasetConfig = types.SimpleNamespace


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
# A watch that reads in the store that another rank has failed, and ends the process after ten minutes.
os.environ["TORCH_NCCL_ENABLE_MONITORING"] = "0"
# Where Transformer Engine finds CUDA's headers, for kernels that it compiles when they are needed.
os.environ.setdefault("NVTE_CUDA_INCLUDE_DIR", os.path.join(sysconfig.get_path("purelib"), "nvidia", "cu13", "include"))
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
    # Adds to the gradient of a weight in place.
    weights = types.ModuleType("fused_weight_gradient_mlp_cuda")
    weights.wgrad_gemm_accum_fp32 = weights.wgrad_gemm_accum_fp16 = lambda *_: None
    sys.modules[weights.__name__] = weights
sys.path.insert(0, checkout)
try:
    compile_helpers()
    if is_half:
        let_losses_overflow()
    if os.path.exists(os.path.join(checkout, "megatron", "legacy", "fused_kernels")):
        import megatron.legacy.fused_kernels

        # Asks a compiler for its version, and compiles nothing.
        megatron.legacy.fused_kernels.load = lambda _: None
    if kind in ("t5", "bert"):
        replace_texts()
    # Those of T5 and BERT moved.
    places = (os.path.join(checkout, folder, program) for folder in ("", os.path.join("examples", kind)))
    script = next(place for place in places if os.path.exists(place))
    sys.argv = [script, *given]
    runpy.run_path(script, run_name="__main__")
except BaseException as error:
    traceback.print_exc()
    found.setdefault("*", {"error": f"{type(error).__name__}: {error}"[:200]})
finish()

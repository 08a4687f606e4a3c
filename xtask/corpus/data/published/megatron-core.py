"""Runs a functional test of Megatron-LM as one of its ranks, and writes down the memory that it logs.

    xmem run --virtual-gpu h100-80g --ranks 8 --rank 7 -- python megatron-core.py CHECKOUT GROUP RESULTS.json

GROUP is a test, such as `gpt/gpt3_mcore_tp1_pp2`. It runs with its own arguments; the last of its ranks is the one that logs. Text
and vocabulary are stand-ins of the same sizes. It ends after a few iterations, as later ones are alike.
"""

import json
import os
import sys
import sysconfig
import tempfile
import traceback
import types
import typing

import megatron_job
import torch
import yaml

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
is_half = "--fp16" in given
last = TRAINS + (OVERFLOWS if is_half else 0)


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
    megatron_job.end()


os.environ.update({name: str(value) for name, value in test["ENV_VARS"].items()})
# Where Transformer Engine finds CUDA's headers, for kernels that it compiles when they are needed.
os.environ.setdefault("NVTE_CUDA_INCLUDE_DIR", os.path.join(sysconfig.get_path("purelib"), "nvidia", "cu13", "include"))
tensorboard = types.ModuleType("torch.utils.tensorboard")
tensorboard.SummaryWriter = SummaryWriter
sys.modules["torch.utils.tensorboard"] = tensorboard
if not hasattr(typing, "override"):
    typing.override = lambda function: function
# Some tests remove Apex before they run.
if "uninstall -y Apex" not in test.get("BEFORE_SCRIPT", ""):
    import apexless

    apexless.install()
    megatron_job.add_products()
megatron_job.prepare(checkout)
try:
    if is_half:
        let_losses_overflow()
    if kind in ("t5", "bert"):
        replace_texts()
    # Those of T5 and BERT moved.
    places = (os.path.join(checkout, folder, program) for folder in ("", os.path.join("examples", kind)))
    script = next(place for place in places if os.path.exists(place))
    megatron_job.run(script, given)
except BaseException as error:
    traceback.print_exc()
    found.setdefault("*", {"error": f"{type(error).__name__}: {error}"[:200]})
finish()

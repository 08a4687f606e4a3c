"""Runs benchmarks of diffusers with torchao, and writes down the memory that they show.

    python diffusers-torchao.py CHECKOUT GROUP RESULTS.json

GROUP is a script and a kind of quantization, after "compiled" if models are compiled. The script runs as it is, each row of the table
in a process. The models have their shapes without their weights, and the tokenizers make a token of a character. There are 2 steps
to an image or a video, which is not timed, and nothing is deleted from the folder for temporary files.
"""

import csv
import functools
import importlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
import types

checkout, group, results, *row = sys.argv[1:]
folder = os.path.join(checkout, "inference")
sys.path.insert(0, folder)

import diffusers  # noqa: E402
import torch  # noqa: E402
import torchao.dtypes  # noqa: E402
import torchao.quantization  # noqa: E402
import transformers  # noqa: E402
from weightless import empty, register  # noqa: E402

STEPS = 2
*compiled, script, quantization = group.split()


class Tokens(types.SimpleNamespace):
    def __getitem__(self, name):
        return getattr(self, name)


class Tokenizer:
    def __init__(self, model_max_length):
        self.model_max_length, self.added_tokens_encoder = model_max_length, {}

    def __call__(self, text, padding=None, max_length=None, **_):
        text = [text] if isinstance(text, str) else text
        longest = min(max(map(len, text)), max_length or self.model_max_length)
        length = max_length if padding == "max_length" else longest
        ids = torch.ones(len(text), length, dtype=torch.long)
        return Tokens(input_ids=ids, attention_mask=torch.ones_like(ids))

    def tokenize(self, text):
        return list(text)

    def batch_decode(self, ids):
        return [""]


def t5():
    return transformers.T5EncoderModel(
        transformers.T5Config(
            vocab_size=32128, d_model=4096, d_kv=64, d_ff=10240, num_layers=24, num_heads=64, feed_forward_proj="gated-gelu"
        )
    )


def image(ckpt_id, torch_dtype):
    """black-forest-labs/FLUX.1-dev."""
    blocks = (128, 256, 512, 512)
    vae = functools.partial(
        diffusers.AutoencoderKL, block_out_channels=blocks, layers_per_block=2, latent_channels=16, sample_size=1024,
        down_block_types=["DownEncoderBlock2D"] * 4, up_block_types=["UpDecoderBlock2D"] * 4, scaling_factor=0.3611,
        shift_factor=0.1159, use_quant_conv=False, use_post_quant_conv=False,
    )  # fmt: skip
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0, use_dynamic_shifting=True)
    # A virtual GPU does not find a step by its time.
    scheduler.index_for_timestep = lambda *_, **__: 0
    return diffusers.FluxPipeline(
        scheduler=scheduler,
        vae=empty(vae, torch_dtype),
        text_encoder=empty(lambda: transformers.CLIPTextModel(transformers.CLIPTextConfig(
            hidden_size=768, intermediate_size=3072, projection_dim=768, eos_token_id=2)), torch_dtype),
        tokenizer=Tokenizer(77),
        text_encoder_2=empty(t5, torch_dtype),
        tokenizer_2=Tokenizer(512),
        transformer=empty(lambda: diffusers.FluxTransformer2DModel(guidance_embeds=True), torch_dtype),
    )  # fmt: skip


def video(model_id, torch_dtype):
    """THUDM/CogVideoX-2b and -5b."""
    large = model_id.endswith("5b")
    heads, layers = (48, 42) if large else (30, 30)
    transformer = functools.partial(
        diffusers.CogVideoXTransformer3DModel, num_attention_heads=heads, num_layers=layers,
        use_rotary_positional_embeddings=large,
    )  # fmt: skip
    vae = functools.partial(
        diffusers.AutoencoderKLCogVideoX, block_out_channels=(128, 256, 256, 512), layers_per_block=3, norm_num_groups=32,
        down_block_types=["CogVideoXDownBlock3D"] * 4, up_block_types=["CogVideoXUpBlock3D"] * 4, latent_channels=16,
        scaling_factor=0.7 if large else 1.15258426,
    )  # fmt: skip
    return diffusers.CogVideoXPipeline(
        tokenizer=Tokenizer(226),
        text_encoder=empty(t5, torch_dtype),
        vae=empty(vae, torch_dtype),
        transformer=empty(transformer, torch_dtype),
        scheduler=diffusers.CogVideoXDDIMScheduler(),
    )


def call(kind):
    run = kind.__call__
    kind.__call__ = lambda self, **options: run(self, **(options | {"num_inference_steps": STEPS}))
    kind.register_modules = register


for kind in (diffusers.FluxPipeline, diffusers.CogVideoXPipeline):
    call(kind)
diffusers.DiffusionPipeline.from_pretrained = image
diffusers.CogVideoXPipeline.from_pretrained = video
# As later releases of torchao spell them.
sparse = functools.partial(torchao.quantization.int8_dynamic_activation_int8_weight, layout=torchao.dtypes.SemiSparseLayout())
torchao.quantization.int8_dynamic_activation_int8_semi_sparse_weight = sparse
fp6 = functools.partial(torchao.quantization.fpx_weight_only, 3, 2)
sys.modules["torchao.prototype.quant_llm"] = types.SimpleNamespace(fp6_llm_weight_only=fp6)
sys.modules["tabulate"] = types.SimpleNamespace(tabulate=lambda *_, **__: "")
utils = importlib.import_module("utils")
utils.cleanup_tmp_directory = lambda: None
utils.benchmark_fn = lambda *_: 0
diffusers.utils.export_to_video = lambda *_, **__: None


def arguments(key):
    """Of a row."""
    what, *options = key.split(", ")
    if script == "image":
        found = ["--batch_size", what.removeprefix("batch "), "--quantization", quantization]
        fuse = "--fuse_attn_projections"
    else:
        found = ["--model_id", f"THUDM/CogVideoX-{what.lower()}", "--dtype", quantization]
        fuse = "--fuse_qkv"
    return found + [fuse] * ("fused" in options) + ["--compile"] * bool(compiled)


def measure(key):
    def show(info, *_, **__):
        found = {f"{key}: {name}": {"value": float(info[f"{name}_memory"])} for name in ("model", "inference")}
        with open(results, "w") as opened:
            json.dump(found, opened)
        sys.stdout.flush()
        # An image or a video that is kept does not count.
        os._exit(0)

    utils.pretty_print_results = show
    sys.argv = ["benchmark", *arguments(key)]
    try:
        runpy.run_path(os.path.join(folder, f"benchmark_{script}.py"), run_name="__main__")
    except BaseException as error:
        traceback.print_exc()
        with open(results, "w") as opened:
            json.dump({f"{key}: model": {"error": f"{type(error).__name__}: {error}"[:200]}}, opened)
        sys.stderr.flush()
    os._exit(1)


if row:
    measure(*row)
with open(os.path.splitext(__file__)[0] + ".tsv") as file:
    figures = [figure for figure in csv.DictReader(file, delimiter="\t") if figure["group"] == group]
device = torch.cuda.get_device_name().lower()
rows = [figure["key"].split(": ")[0] for figure in figures if figure["device"].split("-")[0] in device]
found = {}
for key in dict.fromkeys(rows):
    subprocess.run([sys.executable, os.path.abspath(__file__), *sys.argv[1:4], key], cwd=tempfile.mkdtemp())
    with open(results) as opened:
        found |= json.load(opened)
    with open(results, "w") as opened:
        json.dump(found, opened)

"""Runs an experiment of PEFT's comparison of methods for image generation, and writes down the memory that it would log.

    python peft-image-gen.py CHECKOUT GROUP RESULTS.json

GROUP is METHOD--EXPERIMENT. The script runs as it is. The models have their shapes without their weights, the tokenizer makes a
token of a character, and the images are black. It ends after 120 of its 750 steps, 20 after its first evaluation. Its figures are
the means over the first 100 steps, and the peak of reserved memory outside of the evaluation.
"""

import builtins
import dataclasses
import importlib
import json
import math
import os
import runpy
import sys

checkout, group, results = sys.argv[1:4]
folder = os.path.join(checkout, "method_comparison", "image-gen")
sys.path[:0] = [folder, os.path.join(checkout, "src")]
os.chdir(folder)

import datasets  # noqa: E402
import diffusers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from PIL import Image  # noqa: E402
from weightless import empty, register  # noqa: E402

IMAGES, STEPS = 20, 120


class Tokenizer:
    def apply_chat_template(self, messages, **_):
        return messages[0]["content"]

    def __call__(self, text, max_length, **_):
        mask = torch.zeros(1, max_length, dtype=torch.long)
        mask[:, : len(text)] = 1
        return {"input_ids": torch.ones(1, max_length, dtype=torch.long), "attention_mask": mask}


def pipeline(model_id, torch_dtype):
    # Of black-forest-labs/FLUX.2-klein-base-4B.
    text = transformers.Qwen3Config(
        vocab_size=151936, hidden_size=2560, intermediate_size=9728, num_hidden_layers=36, num_attention_heads=32,
        num_key_value_heads=8, head_dim=128, tie_word_embeddings=True,
    )  # fmt: skip
    shape = {"num_layers": 5, "num_single_layers": 20, "num_attention_heads": 24, "joint_attention_dim": 7680}
    return diffusers.Flux2KleinPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0, use_dynamic_shifting=True),
        vae=empty(diffusers.AutoencoderKLFlux2, torch_dtype),
        text_encoder=empty(lambda: transformers.Qwen3ForCausalLM(text), torch_dtype),
        tokenizer=Tokenizer(),
        transformer=empty(lambda: diffusers.Flux2Transformer2DModel(guidance_embeds=False, **shape), torch_dtype),
    )


class Images(list):
    def select(self, indices):
        return Images(self[index] for index in indices)

    def __getitem__(self, at):
        return list(self) if isinstance(at, str) else super().__getitem__(at)


def encoder(model_id, image_size):
    # Of facebook/dinov2-base.
    model = transformers.Dinov2Model(transformers.Dinov2Config(image_size=518)).to("cuda").eval()
    return transformers.BitImageProcessor(size={"shortest_edge": 256}, crop_size=image_size), model


datasets.load_dataset = lambda *_, **__: Images(Image.new("RGB", (512, 512)) for _ in range(IMAGES))
diffusers.Flux2KleinPipeline.register_modules = register
diffusers.Flux2KleinPipeline.from_pretrained = pipeline
unpack = diffusers.Flux2KleinPipeline._unpack_latents_with_ids


def unpack_square(x, x_ids, height=None, width=None):
    side = math.isqrt(x.shape[1])
    return unpack(x, x_ids, height or side, width or side)


# A virtual GPU does not know the largest position.
diffusers.Flux2KleinPipeline._unpack_latents_with_ids = staticmethod(unpack_square)
# Whether a matrix has an inverse is not known either.
torch.linalg.solve = lambda matrix, right, *, left=True: torch.linalg.solve_ex(matrix, right, left=left).result
torch.linalg.inv = lambda matrix: torch.linalg.inv_ex(matrix).inverse
utils = importlib.import_module("utils")
configured = utils.get_train_config


def listen(*words, **options):
    """What the script shows; it is canceled when it has trained."""
    if str(words[0]).startswith("Training finished"):
        raise KeyboardInterrupt
    show(*words, **options)


found = {}
show, builtins.print = builtins.print, listen


def log(*, train_result, **_):
    if train_result.error_msg != "manually canceled":
        found["reserved, peak"] = {"error": train_result.error_msg[:200]}
        return
    for key, value in {
        "reserved, peak": train_result.accelerator_memory_max_train,
        "reserved, mean": train_result.metrics[0]["mem reserved avg"],
        "allocated, mean": train_result.metrics[0]["mem allocated avg"],
    }.items():
        found[key] = {"value": value / 2**20}


utils.get_train_config = lambda path: dataclasses.replace(configured(path), max_steps=STEPS, sample_image_prompts=[])
utils.get_dino_encoder = encoder
utils.get_peft_branch = lambda: "main"
utils.get_file_size = lambda *_, **__: 0
utils.log_results = log
sys.argv = ["run.py", "-v", os.path.join("experiments", *group.split("--"))]
try:
    runpy.run_path("run.py", run_name="__main__")
except BaseException as error:
    found.setdefault("reserved, peak", {"error": f"{type(error).__name__}: {error}"[:200]})
    show(error)
with open(results, "w") as file:
    json.dump(found, file)

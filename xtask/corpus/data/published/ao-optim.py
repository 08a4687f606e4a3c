"""Runs torchao's benchmark of low-bit optimizers, and writes down the peak that it prints.

    python ao-optim.py CHECKOUT GROUP RESULTS.json

The script runs as it is, for one epoch, on a few random images instead of resisc45, and without pretrained weights.
"""

import os
import sys

import datasets
import listening
import timm
from PIL import Image

checkout, group, results = sys.argv[1:4]
HUGE = "--model timm/vit_huge_patch14_224.orig_in21k --amp bf16 --compile --batch_size 8 --cosine_lr_scheduler"
GIANT = '--model timm/vit_giant_patch14_dinov2.lvd142m --model_kwargs {"img_size":224} --batch_size 32 --checkpoint_activations'
GROUPS = {
    "huge-fused": f"{HUGE} --optim AdamW",
    "huge-8bit-bnb": f"{HUGE} --optim AdamW8bitBnb",
    "huge-8bit": f"{HUGE} --optim AdamW8bitAo",
    "huge-fp8": f"{HUGE} --optim AdamWFp8Ao",
    "huge-4bit": f"{HUGE} --optim AdamW4bitAo",
    "giant": f"{GIANT} --full_bf16 --optim AdamW",
    "giant-offload": f"{GIANT} --full_bf16 --optim AdamW --optim_cpu_offload ao",
    "giant-offload-gradients": f"{GIANT} --full_bf16 --optim AdamW --optim_cpu_offload ao_offload_grads",
    "giant-compiled": f"{GIANT} --full_bf16 --compile --optim AdamW",
    "giant-compiled-offload": f"{GIANT} --full_bf16 --compile --optim AdamW --optim_cpu_offload ao",
    "giant-amp-offload": f"{GIANT} --amp bf16 --optim AdamW --optim_cpu_offload ao",
}
script = os.path.join(checkout, "benchmarks", "benchmark_low_bit_adam.py")


class Images:
    """256 × 256 images: enough for some steps, and for a last batch that is smaller."""

    def __init__(self, count):
        self.count, self.transform = count, None

    def select_columns(self, _):
        return self

    def set_transform(self, transform):
        self.transform = transform

    def __len__(self):
        return self.count

    def __getitem__(self, _):
        one = self.transform({"image": Image.new("RGB", (256, 256)), "label": 0})
        return {"image": one["image"], "label": one["label"]}


datasets.load_dataset = lambda _, split: Images(200 if split == "train" else 76)
create = timm.create_model


def unloaded(name, pretrained, **options):
    return create(name.removeprefix("timm/"), pretrained=False, **options)


timm.create_model = unloaded
arguments = [*GROUPS[group].split(), "--n_epochs", "1", "--n_workers", "0"]
listening.run(script, arguments, results, {"allocated": r"Max memory used: ([\d.]+) GB"})

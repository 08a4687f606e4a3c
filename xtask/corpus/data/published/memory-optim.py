"""Runs one script of pytorch-memory-optim, and writes down the memory that it prints.

    python memory-optim.py CHECKOUT GROUP RESULTS.json

The script runs as it is, with random images instead of CIFAR-10, fewer batches of the same sizes, and weights that are not
loaded.
"""

import os
import sys
import types

import listening
import torch
import torchvision.models

checkout, group, results = sys.argv[1:4]
sys.path.insert(0, checkout)

# CIFAR-10: 45,000 images to train with, 5,000 to validate, 10,000 to test. The last batches are as they would be.
BATCHES, SIZES = 12, {"train": 45_000, "validation": 5_000, "test": 10_000}


class Images(torch.utils.data.Dataset):
    def __init__(self, count, transform):
        self.count = count
        self.size = next(step.size for step in transform.transforms if hasattr(step, "size"))

    def __len__(self):
        return self.count

    def __getitem__(self, _):
        return torch.zeros(3, *self.size), 1


def loaders(batch_size, num_workers=0, validation_fraction=None, train_transforms=None, test_transforms=None):
    def loader(name, transform):
        count = SIZES[name]
        few = min(count, batch_size * BATCHES + count % batch_size)
        return torch.utils.data.DataLoader(Images(few, transform), batch_size, drop_last=name == "train")

    return loader("train", train_transforms), loader("validation", test_transforms), loader("test", test_transforms)


sys.modules["local_utilities"] = types.SimpleNamespace(get_dataloaders_cifar10=loaders)
sys.modules["watermark"] = types.SimpleNamespace(watermark=lambda **_: "")
build = torchvision.models.vit_l_16
torchvision.models.vit_l_16 = lambda weights: build()
script = os.path.join(checkout, f"{group}.py")
listening.run(script, [], results, {"reserved": r"(?:GPU )?Memory used: ([\d.]+) GB"})

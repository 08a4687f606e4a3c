"""The networks of Sekiyama et al. with what Chainer does: no activation works in place, and GoogLeNet has no
normalization and two more classifiers.

train.py NETWORK training|inference
"""

import sys

import timm
import torch
import torchvision
from torch import nn
from torch.nn import functional

relu = functional.relu
functional.relu = lambda x, inplace=False: relu(x)


def googlenet():
    model = torchvision.models.googlenet(init_weights=False, aux_logits=True)
    for module in list(model.modules()):
        if isinstance(getattr(module, "bn", None), nn.BatchNorm2d):
            module.bn = nn.Identity()
    return model


# Network: how it is made, height and width of images.
NETWORKS = {
    "alexnet": (torchvision.models.alexnet, 224),
    "googlenet": (googlenet, 224),
    "resnet50": (torchvision.models.resnet50, 224),
    "inception_resnet_v2": (lambda: timm.create_model("inception_resnet_v2"), 299),
}


def main(network, use):
    make, side = NETWORKS[network]
    model = make().to("cuda")
    for module in model.modules():
        if hasattr(module, "inplace"):
            module.inplace = False

    def images(count):
        return torch.randn(count, 3, side, side, device="cuda")

    if use == "inference":
        model.eval()
        with torch.no_grad():
            for _ in range(2):
                model(images(1))
        return
    labels = torch.randint(0, 1000, (32,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        outputs = model(images(32))
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        weights = (1.0, 0.3, 0.3)
        losses = (w * functional.cross_entropy(x, labels) for w, x in zip(weights, outputs))
        sum(losses).backward()
        optimizer.step()


if __name__ == "__main__":
    main(*sys.argv[1:])

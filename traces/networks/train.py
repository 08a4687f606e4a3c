"""Convolutional networks of papers about planned and offloaded memory, trained or applied twice.

    train.py NETWORK [inference]
"""

import sys

import torch
import torchvision
from torch import nn
from torch.nn.functional import cross_entropy


class Block(nn.Module):
    """A residual block of two convolutions, without batch normalization."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1)
        same = inputs == outputs
        self.shortcut = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x):
        y = self.conv2(self.relu(self.conv1(x)))
        return self.relu(y + self.shortcut(x))


def resnet32():
    """The ResNet-32 for images of 32 x 32 (He et al., section 4.2), without batch normalization."""
    layers, inputs = [nn.Conv2d(3, 16, 3, 1, 1), nn.ReLU()], 16
    for outputs in (16, 32, 64):
        for _ in range(5):
            layers.append(Block(inputs, outputs, 1 if inputs == outputs else 2))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Bottleneck(nn.Module):
    """A residual block of convolutions of 1 x 1, 3 x 3 and 1 x 1, without batch normalization."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1)
        self.conv3 = nn.Conv2d(width, outputs, 1)
        self.relu = nn.ReLU()
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x):
        y = self.relu(self.conv2(self.relu(self.conv1(x))))
        return self.relu(self.conv3(y) + self.shortcut(x))


def resnet32_bottleneck():
    """32 layers of bottlenecks (He et al., table 1, with 3, 4 and 3 of them) for images of 32 x 32, without batch
    normalization: the blocks that Dymem shows have convolutions of 1 x 1 and 3 x 3."""
    layers, inputs = [nn.Conv2d(3, 64, 3, 1, 1), nn.ReLU()], 64
    for width, blocks in (64, 3), (128, 4), (256, 3):
        for block in range(blocks):
            stride = 2 if width > 64 and block == 0 else 1
            layers.append(Bottleneck(inputs, width, stride))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


def inception_v4():
    import timm

    return timm.create_model("inception_v4")


# Network: how it is made, batch, height and width of images, classes.
NETWORKS = {
    "alexnet": (torchvision.models.alexnet, 128, 224, 1000),
    "vgg16": (torchvision.models.vgg16, 64, 224, 1000),
    "googlenet": (
        lambda: torchvision.models.googlenet(init_weights=False, aux_logits=False),
        128,
        224,
        1000,
    ),
    "inception_v3": (
        lambda: torchvision.models.inception_v3(init_weights=False, aux_logits=False),
        64,
        299,
        1000,
    ),
    "inception_v4": (inception_v4, 32, 299, 1000),
    "resnet32": (resnet32, 100, 32, 10),
    "resnet32_bottleneck": (resnet32_bottleneck, 100, 32, 10),
    "resnet50": (torchvision.models.resnet50, 32, 224, 1000),
    "resnet101": (torchvision.models.resnet101, 32, 224, 1000),
}


def main(network, use="training"):
    make, batch, side, classes = NETWORKS[network]
    device = torch.device("cuda")
    torch.manual_seed(0)
    model = make().to(device)

    def images(count):
        return torch.randn(count, 3, side, side, device=device)

    if use == "inference":
        model.eval()
        with torch.no_grad():
            for _ in range(2):
                model(images(1))
        return
    labels = torch.randint(0, classes, (batch,), device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        cross_entropy(model(images(batch)), labels).backward()
        optimizer.step()


if __name__ == "__main__":
    main(*sys.argv[1:])

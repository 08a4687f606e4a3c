"""Segmentation: DeepLabV3 on ResNet-50 of torchvision, with its auxiliary loss; SGD with weight decay."""

import torch
from torch.nn.functional import cross_entropy
from torchvision.models.segmentation import deeplabv3_resnet50

COVERS = ["segmentation", "cnn", "sgd-momentum"]


def setup(device):
    model = deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=21, aux_loss=True).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, weight_decay=1e-4)

    def step():
        images = torch.randn(6, 3, 128, 128).to(device)
        labels = torch.randint(0, 21, (6, 128, 128)).to(device)
        outputs = model(images)
        loss = cross_entropy(outputs["out"], labels) + 0.5 * cross_entropy(outputs["aux"], labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return model, step

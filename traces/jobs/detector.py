"""Detection: ResNet-18 with a feature pyramid and an anchor-free head; AdamW. The loss has no sizes
that depend on data."""

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, interpolate, smooth_l1_loss
from torchvision.models import resnet18

COVERS = ["detection", "cnn", "adamw"]
WIDTH, CLASSES = 96, 20


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        body = resnet18(weights=None)
        self.stem = nn.Sequential(body.conv1, body.bn1, body.relu, body.maxpool)
        self.stages = nn.ModuleList([body.layer1, body.layer2, body.layer3, body.layer4])
        self.lateral = nn.ModuleList(nn.Conv2d(w, WIDTH, 1) for w in (64, 128, 256, 512))
        self.smooth = nn.ModuleList(nn.Conv2d(WIDTH, WIDTH, 3, padding=1) for _ in range(4))
        tower = [nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.GroupNorm(8, WIDTH), nn.SiLU()]
        self.tower = nn.Sequential(*tower)
        self.classes = nn.Conv2d(WIDTH, CLASSES, 3, padding=1)
        self.boxes = nn.Conv2d(WIDTH, 4, 3, padding=1)

    def forward(self, x):
        x, levels = self.stem(x), []
        for stage in self.stages:
            x = stage(x)
            levels.append(x)
        levels = [lateral(level) for lateral, level in zip(self.lateral, levels)]
        for index in range(len(levels) - 2, -1, -1):
            larger = interpolate(levels[index + 1], size=levels[index].shape[-2:], mode="nearest")
            levels[index] = levels[index] + larger
        towers = [self.tower(smooth(level)) for smooth, level in zip(self.smooth, levels)]

        def flat(head):
            return torch.cat([head(t).flatten(2).transpose(1, 2) for t in towers], dim=1)

        return flat(self.classes), flat(self.boxes)


def focal(logits, targets):
    plain = binary_cross_entropy_with_logits(logits, targets, reduction="none")
    chance = torch.sigmoid(logits)
    missed = chance * (1 - targets) + (1 - chance) * targets
    return (plain * missed**2).mean()


def setup(device):
    model = Detector().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step():
        classes, boxes = model(torch.randn(4, 3, 192, 192).to(device))
        truth = (torch.rand(classes.shape) < 0.01).float().to(device)
        places = torch.randn(boxes.shape).to(device)
        loss = focal(classes, truth) + smooth_l1_loss(boxes, places)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return model, step

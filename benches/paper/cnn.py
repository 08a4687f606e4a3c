"""The convolutional networks of the xMem paper's evaluation, as a training script of our own.

Facts (nothing of it is copied) from Stone-ResearchLife/xMem, file @ commit:

- exp/trainer/train_loop.py @ 5aad72f, 0fa57ba: order of the calls, names that live on into the next batch, learning
  rate 0.001, StepLR(7, 0.1), CrossEntropyLoss, a print per batch. The loop ends when the index of a batch reaches 3, so
  that four batches are trained on. Gradients are set to None at one of three places (0, 1 and 2 there; here "start",
  "backward" and "end").
- exp/trainer/trainer.py @ 5aad72f, 0715122: the place is 1 ("backward": after forward, just before backward) where the
  caller names none, and exp/trainer/__init__.py @ 0715122 names none: so it is in runs whose results have no mode.
  Later runs have the mode of their configuration (exp/run.py @ 06ab550, da92c55).
- perf_estimator/dataset.py @ 08f757e: CIFAR-10, resized to 86 x 86, batches drawn in random order in the main process,
  not pinned, the last one not dropped (it is not reached: 50,000 images).
- perf_estimator/models.py @ 401b849: MobileNetV3 and MnasNet are built with 10 classes, all others with 1,000, without
  weights. The two MobileNetV3 are built from lists of blocks of their own, which say what torchvision's say.
- paper_container/config.py @ 0715122: PyTorch 2.6.0, CUDA 12.4, cuDNN 9.
"""

import argparse
from collections.abc import Callable, Iterable

import torch
import torchvision
from torch.utils.data import DataLoader, Dataset

IMAGES = 50_000


def named(name: str) -> Callable[[int], torch.nn.Module]:
    return lambda classes: torchvision.models.get_model(name, weights=None, num_classes=classes)


# Names as in the paper's results, with the number of classes of its runs.
MODELS: dict[str, tuple[Callable[[int], torch.nn.Module], int]] = {
    "VGG11": (named("vgg11"), 1000),
    "VGG16": (named("vgg16"), 1000),
    "VGG19": (named("vgg19"), 1000),
    "ResNet50": (named("resnet50"), 1000),
    "ResNet101": (named("resnet101"), 1000),
    "ResNet152": (named("resnet152"), 1000),
    "MobileNetV2": (named("mobilenet_v2"), 1000),
    "MobeNetV3Small": (named("mobilenet_v3_small"), 10),
    "MobeNetV3Large": (named("mobilenet_v3_large"), 10),
    "MnasNet": (named("mnasnet1_0"), 10),
    "ConvNeXtTiny": (named("convnext_tiny"), 1000),
    "ConvNeXtBase": (named("convnext_base"), 1000),
    "RegNetX400MF": (named("regnet_x_400mf"), 1000),
    "RegNetY400MF": (named("regnet_y_400mf"), 1000),
}


class Images(Dataset[tuple[torch.Tensor, int]]):
    """As many images as CIFAR-10 has for training: one of gray, in memory once."""

    def __init__(self, size: int) -> None:
        self.image = torch.zeros(3, size, size)

    def __len__(self) -> int:
        return IMAGES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.image, index % 10


def train(
    model: torch.nn.Module,
    batches: Iterable[tuple[torch.Tensor, torch.Tensor]],
    optimizer_class: type[torch.optim.Optimizer],
    device: torch.device,
    zero_grad: str,
    last_index: int,
) -> None:
    """One pass in the authors' order. What a name holds stays on the GPU until the name is given another value."""
    model.to(device)
    model.train()
    optimizer = optimizer_class(model.parameters(), lr=0.001)  # type: ignore[call-arg]
    criterion = torch.nn.CrossEntropyLoss()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=7, gamma=0.1)
    for index, (images, labels) in enumerate(batches):
        if zero_grad == "start":
            optimizer.zero_grad()
        images, labels = images.to(device), labels.to(device)
        scores = model(images)
        loss = criterion(scores, labels)
        if zero_grad == "backward":
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        best, predicted = torch.max(scores, 1)
        if zero_grad == "end":
            optimizer.zero_grad()
        scheduler.step()
        print(f"batch {index}", flush=True)
        if index >= last_index:
            break


def main() -> None:
    parser = argparse.ArgumentParser(description="A convolutional network of the xMem paper's evaluation.")
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--optimizer", default="SGD", help="class of torch.optim (default: SGD)")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--zero-grad", choices=("start", "backward", "end"), default="backward")
    parser.add_argument("--iterations", type=int, default=3, help="index of the last batch: 3 trains on four of them")
    parser.add_argument("--classes", type=int, help="default: 10 for MobileNetV3 and MnasNet, else 1000")
    parser.add_argument("--size", type=int, default=86, help="height and width of the images (default: 86)")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()

    build, classes = MODELS[arguments.model]
    train(
        build(arguments.classes or classes),
        DataLoader(Images(arguments.size), batch_size=arguments.batch, shuffle=True),
        getattr(torch.optim, arguments.optimizer),
        torch.device(arguments.device),
        arguments.zero_grad,
        arguments.iterations,
    )


if __name__ == "__main__":
    main()

"""The models of the DNNMem paper (Gao et al., ESEC/FSE 2020) as a training script of our own.

Table 7 of the paper has VGG16, ResNet50, Inception V3 and an LSTM, with batches of 128. What it does not say is chosen here:
torchvision's networks, SGD without momentum (DNNMem counts no state of an optimizer), and an LSTM of two layers and 1,024
units over 128 words, which is another one than that of the paper. BERT base is added.
"""

import argparse
from collections.abc import Callable

import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn

STEPS = 3
CLASSES = 1000
LENGTH = 128


class LanguageModel(nn.Module):
    """Words to scores of the next word, by an LSTM."""

    def __init__(self, units: int = 1024, layers: int = 2, words: int = 10_000) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, units)
        self.lstm = nn.LSTM(units, units, layers, batch_first=True)
        self.scores = nn.Linear(units, words)

    def forward(self, words: Tensor) -> Tensor:
        states, _ = self.lstm(self.embedding(words))
        return self.scores(states)


def bert() -> nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    return BertForSequenceClassification(BertConfig())


def vision(name: str, **options: object) -> Callable[[], nn.Module]:
    return lambda: torchvision.models.get_model(name, weights=None, num_classes=CLASSES, **options)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "VGG16": vision("vgg16"),
    "ResNet50": vision("resnet50"),
    "InceptionV3": vision("inception_v3", init_weights=False),
    "LSTM": LanguageModel,
    "BERT": bert,
}


def image_loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    scores = model(images)
    if not isinstance(scores, Tensor):  # Inception has a second classifier
        return F.cross_entropy(scores.logits, labels) + 0.4 * F.cross_entropy(scores.aux_logits, labels)
    return F.cross_entropy(scores, labels)


def word_loss(model: nn.Module, words: Tensor, following: Tensor) -> Tensor:
    return F.cross_entropy(model(words).flatten(0, 1), following.flatten())


def sentence_loss(model: nn.Module, words: Tensor, labels: Tensor) -> Tensor:
    return model(input_ids=words, labels=labels).loss


def batch(arguments: argparse.Namespace) -> tuple[Tensor, Tensor]:
    count = arguments.batch
    match arguments.model:
        case "LSTM":
            return (torch.ones(count, arguments.length, dtype=torch.long),) * 2
        case "BERT":
            return torch.ones(count, arguments.length, dtype=torch.long), torch.zeros(count, dtype=torch.long)
        case _:
            images = torch.zeros(count, 3, arguments.height, arguments.width)
            return images, torch.zeros(count, dtype=torch.long)


def main() -> None:
    parser = argparse.ArgumentParser(description="A model of the DNNMem paper.")
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--height", type=int, default=224, help="of images (default: 224)")
    parser.add_argument("--width", type=int, default=224, help="of images (default: 224)")
    parser.add_argument("--length", type=int, default=LENGTH, help="of texts, in words (default: 128)")
    arguments = parser.parse_args()

    device = torch.device("cuda")
    model = MODELS[arguments.model]().to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = {"LSTM": word_loss, "BERT": sentence_loss}.get(arguments.model, image_loss)
    for _ in range(STEPS + 1):
        inputs, labels = (tensor.to(device) for tensor in batch(arguments))
        optimizer.zero_grad()
        loss = loss_of(model, inputs, labels)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()

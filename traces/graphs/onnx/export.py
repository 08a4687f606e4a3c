"""The models of this folder, exported and trained:

    export.py MODEL --by torchscript|dynamo|export -o FILE   writes a graph, without weights
    export.py MODEL --train --batch N                        trains on CUDA for three steps

`torchscript` and `dynamo` are the two exporters of torch.onnx, of a model in eval mode and with their defaults;
`torchscript-train` exports in train mode, without constants folded. `export` is torch.export. Weights are random, as
those of a trained model: exporters write equal tensors once, and leave out zeros.
"""

import argparse
import contextlib
import io
import os
from pathlib import Path

import torch
from torch import nn

os.environ.setdefault("HF_HUB_OFFLINE", "1")

# Notes of the exporter that are read.
KEPT = (
    "pkg.torch.onnx.name_scopes",
    "pkg.torch.onnx.class_hierarchy",
    "pkg.torch.export.graph_signature.InputSpec.kind",
    "pkg.onnxscript",
)

# Tensors with more bytes are written without their data: they are weights.
MOST_BYTES = 1024


class Logits(nn.Module):
    """A model of transformers that returns its logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids).logits


class DoubleConv(nn.Sequential):
    def __init__(self, inputs, outputs):
        layers = []
        for size in (inputs, outputs):
            layers += [
                nn.Conv2d(size, outputs, 3, padding=1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(inplace=True),
            ]
        super().__init__(*layers)


class UNet(nn.Module):
    def __init__(self, classes=8, width=32, depth=3):
        super().__init__()
        sizes = [width << level for level in range(depth + 1)]
        self.first = DoubleConv(3, width)
        self.down = nn.ModuleList(DoubleConv(a, b) for a, b in zip(sizes, sizes[1:]))
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(sizes, sizes[1:]))
        self.merge = nn.ModuleList(DoubleConv(b, a) for a, b in zip(sizes, sizes[1:]))
        self.last = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        levels = [self.first(x)]
        for down in self.down:
            levels.append(down(self.pool(levels[-1])))
        x = levels.pop()
        for up, merge in zip(reversed(self.up), reversed(self.merge)):
            x = merge(torch.cat([levels.pop(), up(x)], dim=1))
        return self.last(x)


def vision(name, **options):
    import torchvision

    return getattr(torchvision.models, name)(**options)


def vit():
    import torchvision

    return torchvision.models.VisionTransformer(
        image_size=224, patch_size=32, num_layers=2, num_heads=4, hidden_dim=256, mlp_dim=1024
    )


def gpt2():
    import transformers

    config = transformers.GPT2Config(
        n_layer=2, n_embd=256, n_head=4, vocab_size=8192, n_positions=256, use_cache=False,
        bos_token_id=0, eos_token_id=0,
    )
    return Logits(transformers.GPT2LMHeadModel(config))


def bert():
    import transformers

    config = transformers.BertConfig(
        num_hidden_layers=2, hidden_size=256, num_attention_heads=4, intermediate_size=1024, vocab_size=8192,
        num_labels=16,
    )
    return Logits(transformers.BertForSequenceClassification(config))


def mlp():
    return nn.Sequential(
        nn.Linear(784, 1024), nn.ReLU(), nn.Dropout(0.2), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    )


IMAGE = (3, 224, 224)
MODELS = {
    "resnet18": (lambda: vision("resnet18"), IMAGE, 1000),
    "resnet50": (lambda: vision("resnet50"), IMAGE, 1000),
    "mobilenet_v3_small": (lambda: vision("mobilenet_v3_small"), IMAGE, 1000),
    "vgg11": (lambda: vision("vgg11"), IMAGE, 1000),
    "vit_b_32": (lambda: vision("vit_b_32"), IMAGE, 1000),
    "efficientnet_b0": (lambda: vision("efficientnet_b0"), IMAGE, 1000),
    "convnext_tiny": (lambda: vision("convnext_tiny"), IMAGE, 1000),
    "densenet121": (lambda: vision("densenet121"), IMAGE, 1000),
    "vit": (vit, IMAGE, 1000),
    "unet": (UNet, (3, 128, 128), 8),
    "gpt2": (gpt2, 128, 8192),
    "bert": (bert, 128, 16),
    "mlp": (mlp, (784,), 10),
}


def batch_of(size, of, device="cpu"):
    if isinstance(of, int):
        return torch.randint(0, 1000, (size, of), device=device)
    return torch.randn(size, *of, device=device)


def strip(model):
    """Leaves out the data of weights."""
    tensors = list(model.graph.initializer)
    tensors += [a.t for node in model.graph.node for a in node.attribute if a.HasField("t")]
    for tensor in tensors:
        del tensor.external_data[:]
        tensor.ClearField("data_location")
        if len(tensor.raw_data) > MOST_BYTES:
            tensor.ClearField("raw_data")
    values = [*model.graph.value_info, *model.graph.input, *model.graph.output]
    for item in [*model.graph.node, *values]:
        kept = [(p.key, p.value) for p in item.metadata_props if p.key.startswith(KEPT)]
        del item.metadata_props[:]
        for key, value in kept:
            item.metadata_props.add(key=key, value=value)
        item.doc_string = ""
    del model.metadata_props[:]
    del model.graph.metadata_props[:]


def to_onnx(model, example, by, path, opset):
    import onnx

    trains = by == "torchscript-train"
    model.train(trains)
    scratch = path.with_suffix(".scratch.onnx")
    with contextlib.redirect_stdout(io.StringIO()):
        if by == "dynamo":
            batch = torch.export.Dim("batch")
            torch.onnx.export(
                model, (example,), scratch, dynamo=True, dynamic_shapes=({0: batch},), opset_version=opset
            )
        else:
            mode = torch.onnx.TrainingMode
            torch.onnx.export(
                model,
                (example,),
                scratch,
                dynamo=False,
                input_names=["input"],
                output_names=["output"],
                dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}},
                training=mode.TRAINING if trains else mode.EVAL,
                do_constant_folding=not trains,
                opset_version=opset or 17,
            )
    exported = onnx.load(scratch)
    strip(exported)
    path.write_bytes(exported.SerializeToString(deterministic=True))
    for left in path.parent.glob(scratch.name + "*"):
        left.unlink()


def to_export(model, example, path):
    exported = torch.export.export(model.train(), (example,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    torch.export.save(exported, path)


def train(model, of, classes, size):
    device = torch.device("cuda")
    model = model.to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for _ in range(3):
        batch = batch_of(size, of).to(device)
        optimizer.zero_grad()
        output = model(batch)
        if output.dim() == 3:
            output = output.view(-1, output.size(-1))
        target = torch.randint(0, classes, (output.size(0), *output.shape[2:])).to(device)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--by", choices=("torchscript", "torchscript-train", "dynamo", "export"))
    parser.add_argument("--opset", type=int)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    make, of, classes = MODELS[options.model]
    model = make()
    if options.train:
        train(model, of, classes, options.batch)
        return
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            if tensor.is_floating_point():
                tensor.uniform_(0.5, 1.5)
    example = batch_of(options.batch, of)
    if options.by == "export":
        to_export(model, example, options.output)
    else:
        to_onnx(model, example, options.by, options.output, options.opset)


if __name__ == "__main__":
    main()

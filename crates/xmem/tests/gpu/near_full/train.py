"""Jobs that nearly fill a card, or just do not fit: three iterations of training.

    train.py JOB BATCH

The last line says what PyTorch counted, and whether it ran out of memory. Losses are not scaled: whether a step is
skipped would depend on values that stubbed kernels do not compute.
"""

import json
import sys

import torch
from torch import nn



def twice(inputs, outputs):
    layers = []
    for channels in (inputs, outputs):
        layers += [nn.Conv2d(channels, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, widths=(64, 128, 256, 512)):
        super().__init__()
        self.down = nn.ModuleList([twice(i, o) for i, o in zip((3, *widths[:-1]), widths)])
        self.pool = nn.MaxPool2d(2)
        self.middle = twice(widths[-1], 2 * widths[-1])
        self.up = nn.ModuleList([nn.ConvTranspose2d(2 * width, width, 2, 2) for width in reversed(widths)])
        self.join = nn.ModuleList([twice(2 * width, width) for width in reversed(widths)])
        self.out = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x):
        kept = []
        for down in self.down:
            x = down(x)
            kept.append(x)
            x = self.pool(x)
        x = self.middle(x)
        for up, join, skip in zip(self.up, self.join, reversed(kept)):
            x = join(torch.cat([up(x), skip], 1))
        return self.out(x)


def vision(name):
    import torchvision

    return getattr(torchvision.models, name)()


def fcn():
    import torchvision

    return torchvision.models.segmentation.fcn_resnet50(weights=None, weights_backbone=None)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config())


def bert():
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(BertConfig())


def job(model, size, optimizer, amp=None, channels_last=False, benchmark=False, **arguments):
    return model, size, optimizer, arguments, amp, channels_last, benchmark


# The model, the edge of its images (0: sequences of 512 tokens), the optimizer; autocast, memory format, cudnn.benchmark.
JOBS = {
    "vgg19_adamw": job("vgg19", 86, "AdamW"),
    "resnet50_sgdm": job("resnet50", 224, "SGD", momentum=0.9),
    "resnet50_amp16_cl_adam": job("resnet50", 224, "Adam", torch.float16, channels_last=True),
    "vgg16_adam": job("vgg16", 224, "Adam"),
    "convnext_tiny_ampbf16_adamw": job("convnext_tiny", 224, "AdamW", torch.bfloat16),
    "efficientnet_b0_rmsprop": job("efficientnet_b0", 224, "RMSprop"),
    "densenet121_sgd": job("densenet121", 224, "SGD"),
    "unet_adam": job(UNet, 256, "Adam"),
    "resnet50_bench_sgdm": job("resnet50", 192, "SGD", benchmark=True, momentum=0.9),
    "vgg11_bench_amp16_adam": job("vgg11", 160, "Adam", torch.float16, benchmark=True),
    "gpt2_adamw": job(gpt2, 0, "AdamW"),
    "bert_amp16_adamw": job(bert, 0, "AdamW", torch.float16),
    "vit_b_16_ampbf16_adamw": job("vit_b_16", 224, "AdamW", torch.bfloat16),
    "mobilenetv3l_amp16_cl_sgdm": job(
        "mobilenet_v3_large", 224, "SGD", torch.float16, channels_last=True, momentum=0.9
    ),
    "resnet152_ampbf16_cl_adam": job("resnet152", 224, "Adam", torch.bfloat16, channels_last=True),
    "vgg19_bn_sgd": job("vgg19_bn", 128, "SGD"),
    "resnet18_adamw": job("resnet18", 64, "AdamW"),
    "unet_amp16_cl_adamw": job(UNet, 320, "AdamW", torch.float16, channels_last=True),
    "convnext_base_sgdm": job("convnext_base", 224, "SGD", momentum=0.9),
    "fcn_resnet50_adam": job(fcn, 256, "Adam"),
}


def train(name, batch):
    model, size, optimizer, arguments, amp, channels_last, benchmark = JOBS[name]
    torch.backends.cudnn.benchmark = benchmark
    layout = torch.channels_last if channels_last else torch.contiguous_format
    model = (vision(model) if isinstance(model, str) else model()).cuda()
    if size:
        model = model.to(memory_format=layout)
    optimizer = getattr(torch.optim, optimizer)(model.parameters(), lr=1e-3, **arguments)
    for _ in range(3):
        if size:
            inputs = torch.randn(batch, 3, size, size).cuda().contiguous(memory_format=layout)
            labels = torch.randint(0, 1000, (batch,)).cuda()
        else:
            inputs = torch.randint(0, 30000, (batch, 512)).cuda()
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=amp or torch.float16, enabled=amp is not None):
            if not size:
                loss = model(input_ids=inputs, labels=inputs).loss
            else:
                outputs = model(inputs)
                outputs = outputs["out"] if isinstance(outputs, dict) else outputs
                if outputs.dim() == 4:
                    loss = outputs.float().square().mean()
                else:
                    loss = nn.functional.cross_entropy(outputs, labels)
        loss.backward()
        optimizer.step()


def main(name, batch):
    ran_out = False
    try:
        train(name, int(batch))
    except torch.OutOfMemoryError:
        ran_out = True
    counted = {
        "out_of_memory": ran_out,
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
        "retries": torch.cuda.memory_stats()["num_alloc_retries"],
    }
    print(json.dumps(counted), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A training job that says what each iteration cost: plan_jobs.py NAME ITERATIONS OUT.json

Deterministic, so that two runs can be compared bit by bit. `used` is the device's memory in use after each iteration.
"""

import json, sys, time, warnings

warnings.filterwarnings("ignore")
import torch
from torch import nn
import torch.nn.functional as F

NAMES = "resnet50 vgg16 densenet121 gpt2 vit unet lengths".split()


def gpt2():
    import os

    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers

    return transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        c = lambda i, o: nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1),
            nn.BatchNorm2d(o),
            nn.ReLU(),
            nn.Conv2d(o, o, 3, padding=1),
            nn.BatchNorm2d(o),
            nn.ReLU(),
        )
        w = [32, 64, 128, 256, 512]
        self.down = nn.ModuleList(c(i, o) for i, o in zip([3] + w, w))
        self.up = nn.ModuleList(nn.ConvTranspose2d(o, i, 2, 2) for i, o in zip(w, w[1:]))
        self.mix = nn.ModuleList(c(2 * i, i) for i in w[:-1])
        self.head = nn.Conv2d(w[0], 4, 1)

    def forward(self, x):
        kept = []
        for i, d in enumerate(self.down):
            x = d(x if i == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for i in reversed(range(len(self.up))):
            x = self.mix[i](torch.cat([self.up[i](x), kept[i]], 1))
        return self.head(x)


def main(name, iterations, out):
    import torchvision

    torch.manual_seed(0)
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True, warn_only=True)
    dev = "cuda"
    text = name in ("gpt2", "lengths")
    if text:
        model = gpt2()
    elif name == "unet":
        model = UNet()
    elif name == "vit":
        model = torchvision.models.vit_b_16()
    else:
        model = getattr(torchvision.models, name)()
    model.to(dev).train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    lengths = [512, 384, 448, 256, 512, 320]
    rows = []
    for i in range(iterations):
        start = time.perf_counter()
        g = torch.Generator().manual_seed(i)
        optimizer.zero_grad()
        if text:
            x = torch.randint(0, 50000, (8, lengths[i % 6] if name == "lengths" else 512), generator=g).to(dev)
            with torch.autocast("cuda", torch.bfloat16):
                loss = model(input_ids=x, labels=x).loss
        elif name == "unet":
            x = torch.randn(8, 3, 256, 256, generator=g).to(dev)
            y = torch.randint(0, 4, (8, 256, 256), generator=g).to(dev)
            loss = F.cross_entropy(model(x), y)
        else:
            x = torch.randn(64, 3, 224, 224, generator=g).to(dev)
            y = torch.randint(0, 1000, (64,), generator=g).to(dev)
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        value = loss.item()
        free, total = torch.cuda.mem_get_info()
        rows.append(dict(seconds=time.perf_counter() - start, loss=value.hex(), used=total - free))
    weights = sum(float(p.detach().cpu().double().sum()) for p in model.parameters())
    body = dict(
        job=name,
        rows=rows,
        weights=weights.hex(),
        allocated=torch.cuda.max_memory_allocated(),
        reserved=torch.cuda.max_memory_reserved(),
    )
    json.dump(body, open(out, "w"))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])

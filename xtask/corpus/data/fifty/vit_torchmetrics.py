# timm ViT with mixup, layer decay and torchmetrics on every batch
import argparse
import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from torchmetrics import MetricCollection
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassAUROC,
    MulticlassCalibrationError,
    MulticlassF1Score,
)

ap = argparse.ArgumentParser()
ap.add_argument("--model", default="vit_small_patch16_224")
ap.add_argument("--batch-size", type=int, default=16)
args = ap.parse_args()
classes = 50
model = timm.create_model(args.model, pretrained=False, num_classes=classes, drop_path_rate=0.1, img_size=160).cuda()
groups = {}
for n, p in model.named_parameters():
    depth = int(n.split(".")[1]) + 1 if n.startswith("blocks") else (0 if "embed" in n or "token" in n else 13)
    groups.setdefault(depth, {"params": [], "lr": 1e-3 * 0.75 ** (13 - depth)})["params"].append(p)
opt = torch.optim.AdamW(groups.values(), weight_decay=0.05)
mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=classes)
crit = SoftTargetCrossEntropy()
metrics = MetricCollection(
    {
        "acc": MulticlassAccuracy(classes),
        "top5": MulticlassAccuracy(classes, top_k=5),
        "f1": MulticlassF1Score(classes),
        "auroc": MulticlassAUROC(classes),
        "ece": MulticlassCalibrationError(classes),
    }
).cuda()
for epoch in range(2):
    model.train()
    for i in range(4):
        x, y = torch.randn(args.batch_size, 3, 160, 160).cuda(), torch.randint(0, classes, (args.batch_size,)).cuda()
        x, y = mixup(x, y)
        with torch.autocast("cuda", torch.float16):
            loss = crit(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        for i in range(3):
            logits = model(torch.randn(32, 3, 160, 160).cuda())
            metrics.update(logits.softmax(-1), torch.randint(0, classes, (32,)).cuda())
    print(epoch, loss.item(), {k: round(v.item(), 4) for k, v in metrics.compute().items()})
    metrics.reset()

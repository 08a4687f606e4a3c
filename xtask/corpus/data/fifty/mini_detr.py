# DETR in 150 lines: transformer, set loss with the Hungarian matcher of scipy
import torch
import torch.nn as nn
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
from torchvision.models import resnet18
from torchvision.ops import box_convert, generalized_box_iou


class DETR(nn.Module):
    def __init__(self, classes, d=256, queries=50):
        super().__init__()
        b = resnet18(weights=None)
        self.backbone = nn.Sequential(*list(b.children())[:-2])
        self.conv = nn.Conv2d(512, d, 1)
        self.transformer = nn.Transformer(d, 8, 3, 3, 1024, batch_first=True)
        self.cls, self.box = nn.Linear(d, classes + 1), nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, 4))
        self.query = nn.Parameter(torch.rand(queries, d))
        self.row, self.col = nn.Parameter(torch.rand(50, d // 2)), nn.Parameter(torch.rand(50, d // 2))

    def forward(self, x):
        h = self.conv(self.backbone(x))
        H, W = h.shape[-2:]
        pos = torch.cat(
            [self.col[:W].unsqueeze(0).repeat(H, 1, 1), self.row[:H].unsqueeze(1).repeat(1, W, 1)], -1
        ).flatten(0, 1)
        h = self.transformer(pos + h.flatten(2).transpose(1, 2), self.query.expand(x.size(0), -1, -1))
        return self.cls(h), self.box(h).sigmoid()


@torch.no_grad()
def match(logits, boxes, targets):
    out = []
    for l, b, t in zip(logits, boxes, targets):
        cost = -l.softmax(-1)[:, t["labels"]] + 5 * torch.cdist(b, t["boxes"], p=1)
        cost = cost - 2 * generalized_box_iou(
            box_convert(b, "cxcywh", "xyxy"), box_convert(t["boxes"], "cxcywh", "xyxy")
        )
        i, j = linear_sum_assignment(cost.nan_to_num().cpu().numpy())
        out.append((torch.as_tensor(i, device=l.device), torch.as_tensor(j, device=l.device)))
    return out


def set_loss(logits, boxes, targets, classes, weight):
    idx = match(logits, boxes, targets)
    target = torch.full(logits.shape[:2], classes, dtype=torch.int64, device=logits.device)
    for k, (i, j) in enumerate(idx):
        target[k, i] = targets[k]["labels"][j]
    ce = F.cross_entropy(logits.transpose(1, 2), target, weight)
    src = torch.cat([boxes[k, i] for k, (i, _) in enumerate(idx)])
    tgt = torch.cat([targets[k]["boxes"][j] for k, (_, j) in enumerate(idx)])
    giou = 1 - torch.diag(generalized_box_iou(box_convert(src, "cxcywh", "xyxy"), box_convert(tgt, "cxcywh", "xyxy")))
    return ce + 5 * F.l1_loss(src, tgt) + 2 * giou.mean()


classes = 20
model = DETR(classes).cuda()
weight = torch.ones(classes + 1, device="cuda")
weight[-1] = 0.1
opt = torch.optim.AdamW(
    [
        {"params": model.backbone.parameters(), "lr": 1e-5},
        {"params": [p for n, p in model.named_parameters() if not n.startswith("backbone")]},
    ],
    lr=1e-4,
)
for step in range(6):
    x = torch.randn(4, 3, 256, 256).cuda()
    targets = [
        {"labels": torch.randint(0, classes, (3,)).cuda(), "boxes": (torch.rand(3, 4) * 0.4 + 0.2).cuda()}
        for _ in range(4)
    ]
    logits, boxes = model(x)
    loss = set_loss(logits, boxes, targets, classes, weight)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    opt.step()
    print(step, loss.item())
